#include "models/preset/preset.h"

#include <algorithm>
#include <cmath>

#include "policies/trace/suggest.h"

namespace rematch {
namespace {

using Dimensions = std::map<std::string, std::int64_t>;

struct Preset {
  PresetEntry entry;
  ModelFamily family;
  Dimensions dimensions;
};

Dimensions llama(std::int64_t layers, std::int64_t dim, std::int64_t heads, std::int64_t kv_heads,
                 std::int64_t ffn, std::int64_t vocab) {
  return {{"layers", layers},     {"dim", dim},     {"heads", heads},
          {"kv_heads", kv_heads}, {"ffn", ffn},     {"vocab", vocab},
          {"batch", 1},           {"tokens", 8192}, {"tied", 0}};
}

Dimensions with(Dimensions dimensions, const Dimensions& changes) {
  for (const auto& [name, value] : changes) dimensions[name] = value;
  return dimensions;
}

// The small presets are fixed: golden files depend on them. In both, what the blocks save for
// backward outweighs parameters, head and loss, so the peak tells about checkpointing.
const std::vector<Preset>& table() {
  static const std::vector<Preset> presets = {
      {{"llama3_1b", "Llama 3.2 1B: 16 layers, dim 2048, tied head, 1 x 8192 tokens"},
       ModelFamily::kLlama,
       with(llama(16, 2048, 32, 8, 8192, 128'256), {{"tied", 1}})},
      {{"llama3_8b", "Llama 3 8B: 32 layers, dim 4096, 1 x 8192 tokens"},
       ModelFamily::kLlama,
       llama(32, 4096, 32, 8, 14'336, 128'256)},
      {{"llama_small", "Llama 3 in small, on bytes: 8 layers, dim 128, 2 x 128 tokens"},
       ModelFamily::kLlama,
       with(llama(8, 128, 4, 2, 352, 256), {{"batch", 2}, {"tokens", 128}})},
      {{"wan_1_3b", "Wan 2.1 T2V 1.3B: 30 layers, dim 1536, video 77x480x832"},
       ModelFamily::kDit,
       {{"layers", 30},
        {"dim", 1536},
        {"heads", 12},
        {"ffn", 8960},
        {"batch", 1},
        {"tokens", 31'200},
        {"frames", 20},
        {"height", 30},
        {"width", 52},
        {"text_tokens", 512},
        {"text_dim", 4096},
        {"freq_dim", 256},
        {"channels", 16}}},
      {{"wan_small", "Wan 2.1 in small, on moving shapes: 8 layers, dim 96, 2 x 128 tokens"},
       ModelFamily::kDit,
       {{"layers", 8},
        {"dim", 96},
        {"heads", 4},
        {"ffn", 384},
        {"batch", 2},
        {"tokens", 128},
        {"frames", 2},
        {"height", 8},
        {"width", 8},
        {"text_tokens", 16},
        {"text_dim", 64},
        {"freq_dim", 64},
        {"channels", 4}}},
  };
  return presets;
}

using Checked = std::optional<Rejected>;

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
    spec.dimensions[name] = value;
  }
  return std::nullopt;
}

std::int64_t largest_divisor_below_root(std::int64_t number, double root) {
  std::int64_t divisor = std::max<std::int64_t>(1, std::llround(root));
  while (number % divisor != 0) --divisor;
  return divisor;
}

void choose_grid(Dimensions& dimensions) {
  const std::int64_t tokens = dimensions.at("tokens");
  const std::int64_t frames =
      largest_divisor_below_root(tokens, std::floor(std::cbrt(static_cast<double>(tokens)) + 1e-9));
  const std::int64_t plane = tokens / frames;
  const std::int64_t height =
      largest_divisor_below_root(plane, std::floor(std::sqrt(static_cast<double>(plane)) + 1e-9));
  dimensions["frames"] = frames;
  dimensions["height"] = height;
  dimensions["width"] = plane / height;
}

Checked settle_tokens(ModelSpec& spec, const Dimensions& overrides) {
  if (spec.family != ModelFamily::kDit) return std::nullopt;
  Dimensions& dimensions = spec.dimensions;
  const bool has_grid =
      overrides.contains("frames") || overrides.contains("height") || overrides.contains("width");
  if (overrides.contains("tokens") && !has_grid) {
    choose_grid(dimensions);
    return std::nullopt;
  }
  const std::int64_t product =
      dimensions.at("frames") * dimensions.at("height") * dimensions.at("width");
  if (overrides.contains("tokens") && product != dimensions.at("tokens")) {
    return Rejected{"tokens " + std::to_string(dimensions.at("tokens")) +
                    " is not frames x height x width = " + std::to_string(product) +
                    "; give one of the two"};
  }
  dimensions["tokens"] = product;
  return std::nullopt;
}

Checked divides(const ModelSpec& spec, const std::string& divisor, const std::string& number) {
  if (spec.at(number) % spec.at(divisor) == 0) return std::nullopt;
  return Rejected{divisor + " " + std::to_string(spec.at(divisor)) + " does not divide " + number +
                  " " + std::to_string(spec.at(number))};
}

Checked check_shapes(const ModelSpec& spec) {
  if (Checked rejected = divides(spec, "heads", "dim")) return rejected;
  const std::int64_t head_dim = spec.at("dim") / spec.at("heads");
  if (head_dim % 2 != 0) {
    return Rejected{"dim / heads = " + std::to_string(head_dim) +
                    " is odd, but rotary embedding turns pairs; change dim or heads"};
  }
  if (spec.family == ModelFamily::kLlama) return divides(spec, "kv_heads", "heads");
  if (spec.at("freq_dim") % 2 != 0) {
    return Rejected{"freq_dim " + std::to_string(spec.at("freq_dim")) +
                    " is odd; it holds pairs of cosine and sine"};
  }
  return std::nullopt;
}

}  // namespace

const std::vector<PresetEntry>& presets() {
  static const std::vector<PresetEntry> entries = [] {
    std::vector<PresetEntry> list;
    for (const Preset& preset : table()) list.push_back(preset.entry);
    return list;
  }();
  return entries;
}

std::variant<ModelSpec, Rejected> make_spec(std::string_view preset, const Dimensions& overrides,
                                            std::string_view dtype) {
  const auto found = std::find_if(table().begin(), table().end(), [&](const Preset& candidate) {
    return candidate.entry.name == preset;
  });
  if (found == table().end()) {
    std::vector<std::string_view> names;
    for (const Preset& known : table()) names.emplace_back(known.entry.name);
    return Rejected{"unknown model '" + std::string(preset) + "'" + did_you_mean(preset, names)};
  }
  if (dtype != "float32" && dtype != "bfloat16") {
    return Rejected{"unknown dtype '" + std::string(dtype) + "'; allowed are float32, bfloat16"};
  }
  ModelSpec spec{std::string(preset), found->family, found->dimensions, std::string(dtype)};
  if (Checked rejected = apply_overrides(spec, overrides)) return *rejected;
  if (Checked rejected = settle_tokens(spec, overrides)) return *rejected;
  if (Checked rejected = check_shapes(spec)) return *rejected;
  return spec;
}

}  // namespace rematch
