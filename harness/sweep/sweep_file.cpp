#include "harness/sweep/sweep_file.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "harness/sweep/sweep_schemas.h"
#include "policies/catalogue/catalogue.h"
#include "policies/trace/in_quotes.h"
#include "policies/trace/json.h"
#include "policies/trace/sha256.h"
#include "policies/trace/suggest.h"

namespace rematch {
namespace {

constexpr std::size_t kMostComparisons = 100'000;
constexpr std::size_t kIdLetters = 12;
constexpr int kMostRepeats = 1000;
constexpr std::string_view kFusedOps = "fused_ops";
// Axes that are no dimension: their values are words.
constexpr std::array<std::string_view, 3> kWordAxes = {"dtype", "ops", "video"};
const std::vector<std::string_view> kSchedules = {"whole_region", "on_demand", "both"};
// What a group says, or the worker.
constexpr std::array<std::string_view, 11> kOwnFlags = {
    "--model",  "--policy", "--plan", "--schedule", "--seed", "--repeat-reference",
    "--output", "--shard",  "--json", "--snapshot", "--dtype"};

// A number, or a word for the axes in kWordAxes.
struct AxisValue {
  std::int64_t number = 0;
  std::string word;
  bool operator==(const AxisValue&) const = default;
};
std::string text_of(const AxisValue& value) {
  return value.word.empty() ? std::to_string(value.number) : value.word;
}

using Values = std::vector<std::pair<std::string, AxisValue>>;  // by axis, in the file's order

struct Axis {
  std::string name;
  std::vector<AxisValue> values;
};

struct Group {
  std::string path;
  std::vector<std::string> models;
  std::vector<std::string> policies;
  std::string schedule;
  std::vector<std::int64_t> seeds;
  int num_repeats = 0;
};

bool is_word_axis(std::string_view name) {
  return std::find(kWordAxes.begin(), kWordAxes.end(), name) != kWordAxes.end();
}

std::vector<std::string_view> axes_of(const std::vector<std::string>& models) {
  std::vector<std::string_view> names(kWordAxes.begin(), kWordAxes.end());
  for (const std::string& model : models) {
    const auto spec = make_spec(model, {});
    if (!std::holds_alternative<ModelSpec>(spec)) continue;
    for (const DimensionEntry& entry : dimension_entries(std::get<ModelSpec>(spec).family)) {
      if (entry.name != kFusedOps) names.push_back(entry.name);
    }
  }
  return names;
}

void require_axis(const JsonField& value, const std::string& name,
                  const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  value.fail("no axis " + in_quotes(name) + did_you_mean(on_one_line(name, 40), known));
}

AxisValue value_of(const JsonField& field, const std::string& axis) {
  if (!is_word_axis(axis)) return {field.integer(1, kLargestInteger), ""};
  const std::string& word = field.string();
  if (word.empty()) field.fail("is empty");
  return {0, word};
}

std::vector<std::string> words_of(const JsonField& field) {
  std::vector<std::string> words;
  for (const JsonField& element : field.elements()) {
    const std::string& word = element.string();
    const std::string flag = word.substr(0, word.find('='));
    const bool is_own = std::find(kOwnFlags.begin(), kOwnFlags.end(), flag) != kOwnFlags.end();
    if (is_own || flag == "-o") {
      element.fail(in_quotes(flag) +
                   " is the sweep's to say: groups have models, policies, "
                   "schedules, axes, seeds and repetitions, and workers name the reports");
    }
    words.push_back(word);
  }
  return words;
}

std::vector<std::string> models_of(const JsonField& group) {
  const auto one = group.find("model");
  const auto several = group.find("models");
  if (one.has_value() == several.has_value())
    group.fail("needs \"model\" or \"models\", one of them");
  std::vector<JsonField> fields;
  if (one) fields.push_back(*one);
  if (several) fields = several->elements();
  if (fields.empty()) several->fail("is empty");
  std::vector<std::string> models;
  for (const JsonField& field : fields) {
    const auto spec = make_spec(field.string(), {});
    if (const auto* rejected = std::get_if<Rejected>(&spec)) field.fail(rejected->message);
    models.push_back(field.string());
  }
  return models;
}

// Canonical spellings, each once.
std::vector<std::string> policies_of(const JsonField& field) {
  std::vector<std::string> names;
  for (const JsonField& element : field.elements()) {
    const auto policy = parse_policy(element.string());
    if (const auto* rejected = std::get_if<Rejected>(&policy)) element.fail(rejected->message);
    const std::string& name = std::get<Policy>(policy).name;
    const bool is_file = element.string().ends_with(".json");
    const std::string& spelling = is_file ? element.string() : name;
    if (std::find(names.begin(), names.end(), spelling) == names.end()) names.push_back(spelling);
  }
  if (names.empty()) field.fail("is empty");
  return names;
}

Group group_of(const JsonField& field) {
  field.require_known_keys(
      {"model", "models", "policies", "schedule", "fixed", "axes", "skip", "seeds", "repetitions"});
  Group group;
  group.path = field.path();
  group.models = models_of(field);
  group.policies = policies_of(field.at("policies"));
  group.schedule = "on_demand";
  if (const auto schedule = field.find("schedule")) {
    group.schedule = schedule->string();
    if (std::find(kSchedules.begin(), kSchedules.end(), group.schedule) == kSchedules.end()) {
      schedule->fail("unknown schedule " + in_quotes(group.schedule) +
                     did_you_mean(on_one_line(group.schedule, 40), kSchedules));
    }
  }
  group.seeds = {0};
  if (const auto seeds = field.find("seeds")) {
    group.seeds.clear();
    for (const JsonField& seed : seeds->elements())
      group.seeds.push_back(seed.integer(0, 1'000'000));
    if (group.seeds.empty()) seeds->fail("is empty");
  }
  if (const auto repeats = field.find("repetitions")) {
    group.num_repeats = repeats->integer32(0, kMostRepeats);
  }
  return group;
}

// Fixed dimensions are axes of one value.
std::vector<Axis> axes_of_group(const JsonField& field, const Group& group) {
  const std::vector<std::string_view> known = axes_of(group.models);
  std::vector<Axis> axes;
  if (const auto fixed = field.find("fixed")) {
    for (const auto& [name, value] : fixed->members()) {
      require_axis(value, *name, known);
      axes.push_back({*name, {value_of(value, *name)}});
    }
  }
  const auto varied = field.find("axes");
  if (!varied) return axes;
  for (const auto& [name, values] : varied->members()) {
    require_axis(values, *name, known);
    for (const Axis& axis : axes) {
      if (axis.name == *name) values.fail("stands among \"fixed\" as well");
    }
    Axis axis{*name, {}};
    for (const JsonField& value : values.elements()) axis.values.push_back(value_of(value, *name));
    if (axis.values.empty()) values.fail("is empty");
    axes.push_back(std::move(axis));
  }
  return axes;
}

// Combinations of values that are left out.
struct Skip {
  JsonField field;
  Values values;
  bool has_matched = false;
};

std::vector<Skip> skips_of(const JsonField& group, const std::vector<Axis>& axes) {
  std::vector<std::string_view> known;
  for (const Axis& axis : axes) known.push_back(axis.name);
  std::vector<Skip> skips;
  const auto list = group.find("skip");
  if (!list) return skips;
  for (const JsonField& rule : list->elements()) {
    Skip skip{rule, {}, false};
    for (const auto& [name, value] : rule.members()) {
      require_axis(value, *name, known);
      skip.values.emplace_back(*name, value_of(value, *name));
    }
    if (skip.values.empty()) rule.fail("names no axis");
    skips.push_back(std::move(skip));
  }
  return skips;
}

bool is_skipped(std::vector<Skip>& skips, const Values& values) {
  bool is_any = false;
  for (Skip& skip : skips) {
    const bool matches = std::all_of(skip.values.begin(), skip.values.end(), [&](const auto& rule) {
      return std::find(values.begin(), values.end(), rule) != values.end();
    });
    skip.has_matched = skip.has_matched || matches;
    is_any = is_any || matches;
  }
  return is_any;
}

std::string describe(const std::string& model, const Values& values) {
  std::string text = model;
  for (const auto& [name, value] : values) {
    text.append(", ").append(name).append(" ").append(text_of(value));
  }
  return text;
}

std::variant<ModelSpec, Rejected> spec_of(const std::string& model, const Values& values) {
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";
  for (const auto& [name, value] : values) {
    if (!is_word_axis(name)) dimensions[name] = value.number;
    if (name == "dtype") dtype = value.word;
    if (name == "ops" && value.word != "eager" && value.word != "fused") {
      return Rejected{"unknown ops " + in_quotes(value.word) + "; allowed are eager, fused"};
    }
    if (name == "ops" && value.word == "fused") dimensions[std::string(kFusedOps)] = 1;
    if (name != "video") continue;
    const auto plain = make_spec(model, {}, "float32");
    if (const auto* rejected = std::get_if<Rejected>(&plain)) return *rejected;
    const auto grid = video_dimensions(value.word, std::get<ModelSpec>(plain).family);
    if (const auto* rejected = std::get_if<Rejected>(&grid)) return *rejected;
    for (const auto& [extent, size] : std::get<0>(grid)) dimensions[extent] = size;
  }
  return make_spec(model, dimensions, dtype);
}

std::vector<std::string> arguments_of(const PlannedComparison& comparison, const Values& values,
                                      const std::vector<std::string>& run) {
  std::string policies;
  for (const std::string& policy : comparison.policies) {
    policies.append(policies.empty() ? "" : ",").append(policy);
  }
  std::vector<std::string> words = {"--model", comparison.spec.preset};
  for (const auto& [name, value] : values) {
    std::string flag = "--" + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    words.push_back(std::move(flag));
    words.push_back(text_of(value));
  }
  words.insert(words.end(), {"--policy", policies, "--schedule", comparison.schedule, "--seed",
                             std::to_string(comparison.seed)});
  if (comparison.num_repeats > 0) {
    words.insert(words.end(), {"--repeat-reference", std::to_string(comparison.num_repeats)});
  }
  words.insert(words.end(), run.begin(), run.end());
  return words;
}

// Hash of what makes two comparisons one.
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
  Expansion(const JsonField& document, SweepFile& sweep) : document_(document), sweep_(sweep) {
    const std::string reference = flag_among(sweep.run, "--reference");
    reference_ = reference.empty() ? "none" : reference;
  }

  void add(const JsonField& field) {
    const Group group = group_of(field);
    const std::vector<Axis> axes = axes_of_group(field, group);
    std::vector<Skip> skips = skips_of(field, axes);
    std::size_t num_combinations = group.models.size() * group.seeds.size();
    for (const Axis& axis : axes) {
      num_combinations *= axis.values.size();
      if (num_combinations > kMostComparisons) field.fail("asks for more than 100000 comparisons");
    }
    for (const std::string& model : group.models) {
      Values values;
      add_combinations(field, group, model, axes, skips, values);
    }
    for (const Skip& skip : skips) {
      if (!skip.has_matched) skip.field.fail("skips nothing: no combination has these values");
    }
  }

  void finish() {
    for (std::size_t index = 0; index < sweep_.comparisons.size(); ++index) {
      PlannedComparison& comparison = sweep_.comparisons[index];
      comparison.arguments = arguments_of(comparison, values_[index], sweep_.run);
      const int num_schedules = comparison.schedule == "both" ? 2 : 1;
      for (const std::string& policy : comparison.policies) {
        comparison.num_points += policy == "none" ? 1 : num_schedules;
      }
      std::string text;
      for (const std::string& word : comparison.arguments) text.append(word).append("\n");
      comparison.id = sha256_hex(text).substr(0, kIdLetters);
    }
  }

 private:
  void add_combinations(const JsonField& field, const Group& group, const std::string& model,
                        const std::vector<Axis>& axes, std::vector<Skip>& skips, Values& values) {
    if (values.size() < axes.size()) {
      const Axis& axis = axes[values.size()];
      for (const AxisValue& value : axis.values) {
        values.emplace_back(axis.name, value);
        add_combinations(field, group, model, axes, skips, values);
        values.pop_back();
      }
      return;
    }
    if (is_skipped(skips, values)) return;
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

  // What other groups ask of the same shape and seed is measured beside it.
  void take(const JsonField& field, PlannedComparison comparison,
            const std::vector<std::string>& policies, const Values& values) {
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
      field.fail(describe(common.spec.preset, values) + " is asked for in " + common.path +
                 " with another schedule or other repetitions; give both groups the same");
    }
    for (const std::string& policy : policies) {
      const bool is_there = std::find(common.policies.begin(), common.policies.end(), policy) !=
                            common.policies.end();
      if (is_there) ++sweep_.num_duplicates;
      if (!is_there) common.policies.push_back(policy);
    }
  }

  const JsonField& document_;
  SweepFile& sweep_;
  std::string reference_;
  std::map<std::string, std::size_t> by_identity_;
  std::vector<Values> values_;  // of each comparison, as it was first asked for
};

}  // namespace

SweepFile sweep_from_json(const Json& json) {
  require_schema(json, kSweepSchema.kind);
  const JsonField document(json);
  document.require_known_keys({"schema", "description", "run", "groups"});
  SweepFile sweep;
  if (const auto run = document.find("run")) sweep.run = words_of(*run);
  Expansion expansion(document, sweep);
  const JsonField groups = document.at("groups");
  for (const JsonField& group : groups.elements()) expansion.add(group);
  if (sweep.comparisons.empty()) groups.fail("asks for no comparison");
  expansion.finish();
  return sweep;
}

std::string flag_among(const std::vector<std::string>& words, const std::string& flag) {
  std::string value;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (words[index] == flag && index + 1 < words.size()) value = words[index + 1];
    if (words[index].starts_with(flag + "=")) value = words[index].substr(flag.size() + 1);
  }
  return value;
}

}  // namespace rematch
