#include "models/preset/preset.h"

#include "models/preset/family.h"
#include "policies/trace/suggest.h"

namespace rematch {
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

// In the order in which models are listed to a user.
constexpr FamilyRow kFamilies[] = {
    {ModelFamily::kLlama, "llama", preset::llama_family},
    {ModelFamily::kMoe, "moe", preset::moe_family},
    {ModelFamily::kDeepseek, "deepseek", preset::deepseek_family},
    {ModelFamily::kDit, "dit", preset::wan_family},
    {ModelFamily::kLtx, "ltx", preset::ltx_family},
};

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
    const DimensionEntry* entry = find_dimension(spec.family, name);
    if (entry == nullptr) {
      return Rejected{"model '" + spec.preset + "' has no dimension '" + name + "'" +
                      did_you_mean(name, dimension_names(spec.family))};
    }
    if (value < entry->minimum || value > entry->maximum) {
      return Rejected{name + " " + std::to_string(value) + " is out of range; allowed are " +
                      std::to_string(entry->minimum) + " to " + std::to_string(entry->maximum)};
    }
    if (entry->is_option && value == 0) {
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

bool trains_on_text(ModelFamily family) {
  return family != ModelFamily::kDit && family != ModelFamily::kLtx;
}

std::int64_t patch_extent(ModelFamily family) { return family == ModelFamily::kDit ? 2 : 1; }

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
