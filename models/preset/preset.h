// Model presets and their dimensions, without LibTorch: what `--model` and the dimension flags
// mean. models/model.h builds the model.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policies/plan/rejected.h"

namespace rematch {

enum class ModelFamily : std::uint8_t { kLlama, kDit };

// Everything that shapes a model and its batch. Keys of `dimensions` are the flag names with
// underscores: layers dim heads kv_heads ffn vocab batch tokens text_tokens frames height width.
struct ModelSpec {
  std::string preset;  // "wan_small"
  ModelFamily family = ModelFamily::kLlama;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";  // or "bfloat16": parameters and activations; fp32 master weights

  std::int64_t at(const std::string& dimension) const { return dimensions.at(dimension); }
};

struct PresetEntry {
  std::string_view name;
  std::string_view description;  // one line, with the source of its sizes
};

const std::vector<PresetEntry>& presets();

// Dimensions given by the user, on top of the preset's. Rejected: unknown preset (with the nearest
// known), a dimension the family does not have, a value out of range (heads must divide dim, ...).
std::variant<ModelSpec, Rejected> make_spec(std::string_view preset,
                                            const std::map<std::string, std::int64_t>& overrides,
                                            std::string_view dtype = "float32");

}  // namespace rematch
