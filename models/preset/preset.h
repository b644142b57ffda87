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
// underscores; dimension_entries() lists them.
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

// A dimension of a family: a flag of the command line.
struct DimensionEntry {
  std::string_view name;         // "kv_heads"
  std::string_view description;  // one line
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
};

// In the order in which they are listed to a user.
const std::vector<DimensionEntry>& dimension_entries(ModelFamily family);

// Dimensions given by the user, on top of the preset's. Rejected: unknown preset (with the nearest
// known), a dimension the family does not have, a value out of range (heads must divide dim, ...).
// A DiT's tokens are frames x height x width of its patched latent grid. `tokens` alone picks a
// grid, near a cube with frames <= height <= width; the chosen grid is in the result.
std::variant<ModelSpec, Rejected> make_spec(std::string_view preset,
                                            const std::map<std::string, std::int64_t>& overrides,
                                            std::string_view dtype = "float32");

// The patched latent grid of a video, as overrides for make_spec: "77x480x832" (frames x height x
// width in pixels) gives frames 20, height 30, width 52. Wan's VAE makes 1 + (F-1)/4 latent frames
// of F and divides height and width by 8; patches are 1x2x2.
std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(std::string_view text);

}  // namespace rematch
