// Model presets and their dimensions, without LibTorch: what `--model` and the dimension flags
// mean. models/model.h builds the model.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/preset/families.h"
#include "policies/base/words.h"
#include "policies/plan/plan.h"

namespace rematch {

#define REMATCH_ENUMERATOR(enumerator, name) enumerator,
enum class ModelFamily : std::uint8_t { REMATCH_MODEL_FAMILIES(REMATCH_ENUMERATOR) };
#undef REMATCH_ENUMERATOR

// "llama", "moe", ...: how files spell a family.
#define REMATCH_NAME(enumerator, name) #name,
template <>
inline constexpr auto kWords<ModelFamily> =
    std::to_array<std::string_view>({REMATCH_MODEL_FAMILIES(REMATCH_NAME)});
#undef REMATCH_NAME
const std::vector<ModelFamily>& model_families();

// How a video becomes the tokens of a family that trains on latents of videos.
struct VideoLayout {
  std::int64_t patch_extent;       // latent pixels along each side of a patch of one latent frame
  std::int64_t pixels_per_token;   // along height and width: the autoencoder's and the patch's
  std::int64_t frames_per_latent;  // after the first, which is a latent of its own
  std::string_view frames_example;
  bool masks_text;  // whether a batch says which text tokens are words
};

// Null: the family trains on a text.
const VideoLayout* video_layout(ModelFamily family);
bool trains_on_text(ModelFamily family);

// Everything that shapes a model and its batch. Keys of `dimensions` are the flag names with
// underscores; dimension_entries() lists them. Options that are off are not among the keys, so
// that the names of plain models do not change when an option is added.
struct ModelSpec {
  std::string preset;  // "wan_small"
  ModelFamily family = ModelFamily::kLlama;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";  // or "bfloat16": parameters and activations; fp32 master weights
  // This process among those of the layout (models/preset/parallel.h), which is in `dimensions`.
  // Not part of what the model is.
  int rank = 0;

  std::int64_t at(const std::string& dimension) const { return dimensions.at(dimension); }
  // 0 where the option is off or the family does not have it.
  std::int64_t option(const std::string& name) const {
    const auto found = dimensions.find(name);
    return found == dimensions.end() ? 0 : found->second;
  }
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
  bool is_option = false;  // its minimum is off, and then left out of a spec
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

// The patched latent grid of a video, as overrides for make_spec: for Wan "77x480x832" (frames x
// height x width in pixels) gives frames 20, height 30, width 52.
std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(std::string_view text,
                                                                             ModelFamily family);

}  // namespace rematch
