#include "harness/sweep/sweep_group.h"

#include <algorithm>
#include <array>
#include <variant>

#include "models/preset/preset.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/trace/fused_ops.h"

namespace rematch {
namespace {

constexpr int kMaxRepeats = 1000;
// Axes that are not dimensions. Their values are words.
constexpr std::array<std::string_view, 3> kWordAxes = {"dtype", "ops", "video"};
const std::vector<std::string_view> kSchedules = {"whole_region", "on_demand", "both", "usual"};

std::vector<std::string_view> axes_of(const std::vector<std::string>& models) {
  std::vector<std::string_view> names(kWordAxes.begin(), kWordAxes.end());
  for (const std::string& model : models) {
    const auto spec = make_spec(model, {});
    if (!std::holds_alternative<ModelSpec>(spec)) continue;
    for (const DimensionEntry& entry : dimension_entries(std::get<ModelSpec>(spec).family)) {
      if (entry.name != kFusedOpsDimension) names.push_back(entry.name);
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

std::vector<std::string> models_of(const JsonField& group) {
  const auto one = group.find("model");
  const auto several = group.find("models");
  if (one.has_value() == several.has_value()) group.fail("needs either \"model\" or \"models\"");
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

// Returns the canonical spellings of policies, without duplicates.
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

SweepGroup group_of(const JsonField& field) {
  field.require_known_keys(
      {"model", "models", "policies", "schedule", "fixed", "axes", "skip", "seeds", "repetitions"});
  SweepGroup group;
  group.path = field.path();
  group.models = models_of(field);
  group.policies = policies_of(field.at("policies"));
  group.schedule = "usual";
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
    group.num_repeats = repeats->integer32(0, kMaxRepeats);
  }
  return group;
}

// A fixed dimension is an axis with one value.
std::vector<Axis> axes_of_group(const JsonField& field, const SweepGroup& group) {
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
      if (axis.name == *name) values.fail("is also listed in \"fixed\"");
    }
    Axis axis{*name, {}};
    for (const JsonField& value : values.elements()) axis.values.push_back(value_of(value, *name));
    if (axis.values.empty()) values.fail("is empty");
    axes.push_back(std::move(axis));
  }
  return axes;
}

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
    if (skip.values.empty()) rule.fail("is empty; name at least one axis");
    skips.push_back(std::move(skip));
  }
  return skips;
}

}  // namespace

std::string text_of(const AxisValue& value) {
  return value.word.empty() ? std::to_string(value.number) : value.word;
}

bool is_word_axis(std::string_view name) {
  return std::find(kWordAxes.begin(), kWordAxes.end(), name) != kWordAxes.end();
}

SweepGroup sweep_group_from_json(const JsonField& field) {
  SweepGroup group = group_of(field);
  group.axes = axes_of_group(field, group);
  group.skips = skips_of(field, group.axes);
  return group;
}

bool is_skipped(std::vector<Skip>& skips, const AxisValues& values) {
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

}  // namespace rematch
