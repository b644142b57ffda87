#include "models/preset/preset.h"

#include <algorithm>

#include "models/preset/family.h"
#include "models/preset/parallel.h"
#include "policies/base/text.h"

namespace rematch {

namespace preset {

#define REMATCH_DECLARE(enumerator, name) const Family& name##_family();
REMATCH_MODEL_FAMILIES(REMATCH_DECLARE)
#undef REMATCH_DECLARE

Dimensions with(Dimensions dimensions, const Dimensions& changes) {
  for (const auto& [name, value] : changes) dimensions[name] = value;
  return dimensions;
}

const DimensionEntry* find_entry(const std::vector<DimensionEntry>& entries,
                                 std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(),
                   [name](const DimensionEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

std::vector<std::string_view> names_of(const std::vector<DimensionEntry>& entries) {
  std::vector<std::string_view> names;
  for (const DimensionEntry& entry : entries) names.push_back(entry.name);
  return names;
}

Checked require_divides(const ModelSpec& spec, const std::string& divisor,
                        const std::string& number) {
  if (spec.at(number) % spec.at(divisor) == 0) return std::nullopt;
  return Rejected{divisor + " " + std::to_string(spec.at(divisor)) + " does not divide " + number +
                  " " + std::to_string(spec.at(number))};
}

Checked require_rotary_heads(const ModelSpec& spec) {
  if (Checked rejected = require_divides(spec, "heads", "dim")) return rejected;
  const std::int64_t head_dim = spec.at("dim") / spec.at("heads");
  if (head_dim % 2 == 0) return std::nullopt;
  return Rejected{"dim / heads = " + std::to_string(head_dim) +
                  " is odd; rotary embedding needs an even width; change dim or heads"};
}

Checked require_fused_loss(const ModelSpec& spec) {
  const bool is_given = spec.option(std::string(kKeptLogitsName)) == 1;
  if (!is_given || spec.option("fused_ops") == 1) return std::nullopt;
  return Rejected{
      "kept_logits needs fused ops: with eager ops backward always has the logits; add --ops "
      "fused"};
}

Checked require_experts(const ModelSpec& spec) {
  if (spec.at("top_k") > spec.at("experts")) {
    return Rejected{"top_k " + std::to_string(spec.at("top_k")) + " is more than experts " +
                    std::to_string(spec.at("experts"))};
  }
  constexpr std::int64_t kRowElements = 8;  // 8 elements of bfloat16 take 16 bytes
  for (const char* width : {"dim", "expert_ffn"}) {
    if (spec.at(width) % kRowElements == 0) continue;
    return Rejected{std::string(width) + " " + std::to_string(spec.at(width)) +
                    " is not a multiple of 8, which grouped matmuls need"};
  }
  return std::nullopt;
}

}  // namespace preset

namespace {

using preset::Checked;
using preset::Dimensions;
using preset::Family;
using preset::Preset;

struct FamilyRow {
  ModelFamily family;
  const Family& (*facts)();
};

#define REMATCH_ROW(enumerator, name) {ModelFamily::enumerator, preset::name##_family},
constexpr FamilyRow kFamilies[] = {REMATCH_MODEL_FAMILIES(REMATCH_ROW)};
#undef REMATCH_ROW

const FamilyRow& row_of(ModelFamily family) { return kFamilies[static_cast<std::size_t>(family)]; }

Checked check_dtype(std::string_view dtype) {
  if (dtype == "float32" || dtype == "bfloat16") return std::nullopt;
  return Rejected{"unknown dtype '" + std::string(dtype) + "'; allowed: float32, bfloat16"};
}

Checked apply_overrides(ModelSpec& spec, const Dimensions& overrides) {
  const std::vector<DimensionEntry>& known = dimension_entries(spec.family);
  for (const auto& [name, value] : overrides) {
    const DimensionEntry* entry = preset::find_entry(layout_entries(), name);
    if (entry == nullptr) entry = preset::find_entry(known, name);
    if (entry == nullptr) entry = preset::find_entry(stage_entries(), name);
    if (entry == nullptr) {
      return Rejected{"model '" + spec.preset + "' has no dimension '" + name + "'" +
                      did_you_mean(name, preset::names_of(known))};
    }
    if (value < entry->minimum || value > entry->maximum) {
      return Rejected{name + " " + std::to_string(value) + " is out of range; allowed: " +
                      std::to_string(entry->minimum) + " to " + std::to_string(entry->maximum)};
    }
    if (entry->is_option && value == entry->minimum) {
      spec.dimensions.erase(name);
    } else {
      spec.dimensions[name] = value;
    }
  }
  return std::nullopt;
}

std::variant<ModelSpec, Rejected> settled(const FamilyRow& row, const Preset& found,
                                          const Dimensions& overrides, std::string_view dtype) {
  ModelSpec spec{std::string(found.entry.name), row.family, found.dimensions, std::string(dtype)};
  if (Checked rejected = check_dtype(dtype)) return *rejected;
  if (Checked rejected = apply_overrides(spec, overrides)) return *rejected;
  // Without this dimension, gradients of a float32 model are float32 anyway.
  if (dtype == "float32") spec.dimensions.erase(std::string(kFloat32Gradients));
  if (Checked rejected = row.facts().settle(spec, overrides)) return *rejected;
  if (Checked rejected = preset::settle_layout(spec, row.facts().layouts)) return *rejected;
  return spec;
}

}  // namespace

std::int64_t micro_batches(const ModelSpec& spec) {
  return std::max<std::int64_t>(1, spec.option(std::string(kAccumulate)));
}

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> families = [] {
    std::vector<ModelFamily> list;
    for (const FamilyRow& row : kFamilies) list.push_back(row.family);
    return list;
  }();
  return families;
}

const VideoLayout* video_layout(ModelFamily family) {
  const std::optional<VideoLayout>& video = row_of(family).facts().video;
  return video ? &*video : nullptr;
}

bool trains_on_text(ModelFamily family) { return video_layout(family) == nullptr; }

const std::vector<DimensionEntry>& dimension_entries(ModelFamily family) {
  return row_of(family).facts().dimensions;
}

const std::vector<PresetEntry>& presets() {
  static const std::vector<PresetEntry> entries = [] {
    std::vector<PresetEntry> list;
    for (const FamilyRow& row : kFamilies) {
      for (const Preset& preset : row.facts().presets) list.push_back(preset.entry);
    }
    return list;
  }();
  return entries;
}

std::variant<ModelSpec, Rejected> make_spec(std::string_view preset, const Dimensions& overrides,
                                            std::string_view dtype) {
  for (const FamilyRow& row : kFamilies) {
    for (const Preset& known : row.facts().presets) {
      if (known.entry.name == preset) return settled(row, known, overrides, dtype);
    }
  }
  std::vector<std::string_view> names;
  for (const PresetEntry& known : presets()) names.push_back(known.name);
  return Rejected{"unknown model '" + std::string(preset) + "'" + did_you_mean(preset, names)};
}

}  // namespace rematch
