#include "harness/sweep/sweep_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "harness/sweep/sweep_group.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/trace/fused_ops.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxComparisons = 100'000;
constexpr std::size_t kIdLetters = 12;
// Flags that the shared arguments must not contain, because a group or the worker sets them.
constexpr std::array<std::string_view, 11> kOwnFlags = {
    "--model",  "--policy", "--plan", "--schedule", "--seed", "--repeat-reference",
    "--output", "--shard",  "--json", "--snapshot", "--dtype"};

std::vector<std::string> words_of(const JsonField& field) {
  std::vector<std::string> words;
  for (const JsonField& element : field.elements()) {
    const std::string& word = element.string();
    const std::string flag = word.substr(0, word.find('='));
    const bool is_own = std::find(kOwnFlags.begin(), kOwnFlags.end(), flag) != kOwnFlags.end();
    if (is_own || flag == "-o") {
      element.fail(in_quotes(flag) +
                   " is not allowed among the arguments: the group sets models, policies, "
                   "schedules, axes, seeds and repetitions, and the worker sets the output files");
    }
    words.push_back(word);
  }
  return words;
}

// Returns the reference policy of all comparisons: the last value of --reference, or `none`.
std::string reference_among(const std::vector<std::string>& words) {
  const std::string flag = "--reference";
  std::string reference(kNonePolicy);
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (words[index] == flag && index + 1 < words.size()) reference = words[index + 1];
    if (words[index].starts_with(flag + "=")) reference = words[index].substr(flag.size() + 1);
  }
  return reference;
}

std::string describe(const std::string& model, const AxisValues& values) {
  std::string text = model;
  for (const auto& [name, value] : values) {
    text.append(", ").append(name).append(" ").append(text_of(value));
  }
  return text;
}

std::variant<ModelSpec, Rejected> spec_of(const std::string& model, const AxisValues& values) {
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";
  for (const auto& [name, value] : values) {
    if (!is_word_axis(name)) dimensions[name] = value.number;
    if (name == "dtype") dtype = value.word;
    if (name == "ops" && value.word != "eager" && value.word != "fused") {
      return Rejected{"unknown ops " + in_quotes(value.word) + "; allowed: eager, fused"};
    }
    if (name == "ops" && value.word == "fused") dimensions[std::string(kFusedOpsDimension)] = 1;
    if (name != "video") continue;
    const auto plain = make_spec(model, {}, "float32");
    if (const auto* rejected = std::get_if<Rejected>(&plain)) return *rejected;
    const auto grid = video_dimensions(value.word, std::get<ModelSpec>(plain).family);
    if (const auto* rejected = std::get_if<Rejected>(&grid)) return *rejected;
    for (const auto& [extent, size] : std::get<0>(grid)) dimensions[extent] = size;
  }
  return make_spec(model, dimensions, dtype);
}

std::vector<std::string> arguments_of(const PlannedComparison& comparison, const AxisValues& values,
                                      const std::vector<std::string>& run) {
  std::vector<std::string> words = {"--model", comparison.spec.preset};
  for (const auto& [name, value] : values) {
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    words.push_back(std::move(flag));
    words.push_back(text_of(value));
  }
  words.insert(words.end(), {"--policy", joined(comparison.policies, ","), "--schedule",
                             comparison.schedule, "--seed", std::to_string(comparison.seed)});
  if (comparison.num_repeats > 0) {
    words.insert(words.end(), {"--repeat-reference", std::to_string(comparison.num_repeats)});
  }
  words.insert(words.end(), run.begin(), run.end());
  return words;
}

// Returns the text that identifies a comparison. Points with the same text are merged into one
// comparison.
std::string identity_of(const PlannedComparison& comparison) {
  std::string text = comparison.spec.preset + "\n" + comparison.spec.dtype + "\n" +
                     std::to_string(comparison.seed) + "\n";
  for (const auto& [name, size] : comparison.spec.dimensions) {
    text.append(name).append("=").append(std::to_string(size)).append("\n");
  }
  return text;
}

class Expansion {
 public:
  explicit Expansion(SweepFile& sweep) : sweep_(sweep), reference_(reference_among(sweep.run)) {}

  void add(const JsonField& field) {
    SweepGroup group = sweep_group_from_json(field);
    std::size_t num_combinations = group.models.size() * group.seeds.size();
    for (const Axis& axis : group.axes) {
      num_combinations *= axis.values.size();
      if (num_combinations > kMaxComparisons) field.fail("contains more than 100000 comparisons");
    }
    for (const std::string& model : group.models) {
      AxisValues values;
      add_combinations(field, group, model, values);
    }
    for (const Skip& skip : group.skips) {
      if (!skip.has_matched) skip.field.fail("skips nothing: no combination has these values");
    }
  }

  void finish() {
    for (std::size_t index = 0; index < sweep_.comparisons.size(); ++index) {
      PlannedComparison& comparison = sweep_.comparisons[index];
      comparison.arguments = arguments_of(comparison, values_[index], sweep_.run);
      const int num_schedules = comparison.schedule == "both" ? 2 : 1;
      for (const std::string& policy : comparison.policies) {
        comparison.num_points += policy == kNonePolicy ? 1 : num_schedules;
      }
      std::string text;
      for (const std::string& word : comparison.arguments) text.append(word).append("\n");
      comparison.id = sha256_hex(text).substr(0, kIdLetters);
    }
  }

 private:
  void add_combinations(const JsonField& field, SweepGroup& group, const std::string& model,
                        AxisValues& values) {
    if (values.size() < group.axes.size()) {
      const Axis& axis = group.axes[values.size()];
      for (const AxisValue& value : axis.values) {
        values.emplace_back(axis.name, value);
        add_combinations(field, group, model, values);
        values.pop_back();
      }
      return;
    }
    if (is_skipped(group.skips, values)) return;
    const auto spec = spec_of(model, values);
    if (const auto* rejected = std::get_if<Rejected>(&spec)) {
      field.fail(describe(model, values) + ": " + rejected->message);
    }
    for (const std::int64_t seed : group.seeds) {
      PlannedComparison comparison;
      comparison.spec = std::get<ModelSpec>(spec);
      comparison.seed = static_cast<std::uint64_t>(seed);
      comparison.schedule = group.schedule;
      comparison.num_repeats = group.num_repeats;
      comparison.path = group.path;
      take(field, std::move(comparison), group.policies, values);
    }
  }

  // Adds a point. Points of other groups with the same shape and seed are measured in the same
  // comparison.
  void take(const JsonField& field, PlannedComparison comparison,
            const std::vector<std::string>& policies, const AxisValues& values) {
    const auto [place, is_new] =
        by_identity_.try_emplace(identity_of(comparison), sweep_.comparisons.size());
    if (is_new) {
      const bool has_reference =
          std::find(policies.begin(), policies.end(), reference_) != policies.end();
      if (!has_reference) comparison.policies.push_back(reference_);
      sweep_.comparisons.push_back(std::move(comparison));
      values_.push_back(values);
    }
    PlannedComparison& common = sweep_.comparisons[place->second];
    if (!is_new &&
        (common.schedule != comparison.schedule || common.num_repeats != comparison.num_repeats)) {
      field.fail(describe(common.spec.preset, values) + " is requested in " + common.path +
                 " with another schedule or other repetitions; give both groups the same schedule "
                 "and repetitions");
    }
    for (const std::string& policy : policies) {
      const bool is_there = std::find(common.policies.begin(), common.policies.end(), policy) !=
                            common.policies.end();
      if (is_there) ++sweep_.num_duplicates;
      if (!is_there) common.policies.push_back(policy);
    }
  }

  SweepFile& sweep_;
  std::string reference_;
  std::map<std::string, std::size_t> by_identity_;
  std::vector<AxisValues> values_;  // axis values of the group that first requested each comparison
};

}  // namespace

SweepFile sweep_from_json(const Json& json) {
  require_schema(json, kSweepSchema.kind);
  const JsonField document(json);
  document.require_known_keys({"schema", "description", "run", "groups"});
  SweepFile sweep;
  if (const auto run = document.find("run")) sweep.run = words_of(*run);
  Expansion expansion(sweep);
  const JsonField groups = document.at("groups");
  for (const JsonField& group : groups.elements()) expansion.add(group);
  if (sweep.comparisons.empty()) groups.fail("contains no comparison");
  expansion.finish();
  return sweep;
}

}  // namespace rematch
