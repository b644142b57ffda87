#include "models/preset/preset.h"

#include "models/preset/family.h"
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
                  " is odd, but rotary embedding turns pairs; change dim or heads"};
}

Checked require_experts(const ModelSpec& spec) {
  if (spec.at("top_k") > spec.at("experts")) {
    return Rejected{"top_k " + std::to_string(spec.at("top_k")) + " is more than experts " +
                    std::to_string(spec.at("experts"))};
  }
  constexpr std::int64_t kRowElements = 8;  // 16 bytes of bfloat16
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
  std::string_view name;
  const Family& (*facts)();
};

#define REMATCH_ROW(enumerator, name) {ModelFamily::enumerator, #name, preset::name##_family},
constexpr FamilyRow kFamilies[] = {REMATCH_MODEL_FAMILIES(REMATCH_ROW)};
#undef REMATCH_ROW

const FamilyRow& row_of(ModelFamily family) { return kFamilies[static_cast<std::size_t>(family)]; }

Checked check_dtype(std::string_view dtype) {
  if (dtype == "float32" || dtype == "bfloat16") return std::nullopt;
  return Rejected{"unknown dtype '" + std::string(dtype) + "'; allowed are float32, bfloat16"};
}

const DimensionEntry* find_dimension(ModelFamily family, std::string_view name) {
  for (const DimensionEntry& entry : dimension_entries(family)) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::vector<std::string_view> dimension_names(ModelFamily family) {
  std::vector<std::string_view> names;
  for (const DimensionEntry& entry : dimension_entries(family)) names.push_back(entry.name);
  return names;
}

Checked apply_overrides(ModelSpec& spec, const Dimensions& overrides) {
  for (const auto& [name, value] : overrides) {
    const DimensionEntry* layout = preset::find_layout_entry(name);
    const DimensionEntry* entry = layout != nullptr ? layout : find_dimension(spec.family, name);
    if (entry == nullptr) {
      return Rejected{"model '" + spec.preset + "' has no dimension '" + name + "'" +
                      did_you_mean(name, dimension_names(spec.family))};
    }
    if (value < entry->minimum || value > entry->maximum) {
      return Rejected{name + " " + std::to_string(value) + " is out of range; allowed are " +
                      std::to_string(entry->minimum) + " to " + std::to_string(entry->maximum)};
    }
    if (layout != nullptr) {
      preset::set_layout_option(spec.dimensions, *layout, value);
    } else if (entry->is_option && value == 0) {
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
  if (Checked rejected = row.facts().settle(spec, overrides)) return *rejected;
  if (Checked rejected = preset::check_layout(spec, row.facts().layouts)) return *rejected;
  return spec;
}

}  // namespace

std::string_view to_string(ModelFamily family) { return row_of(family).name; }

std::optional<ModelFamily> family_from_string(std::string_view text) {
  for (const FamilyRow& row : kFamilies) {
    if (row.name == text) return row.family;
  }
  return std::nullopt;
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
