// Model presets, and the dimensions that command-line flags set. Needs no LibTorch. models/model.h
// builds the model.
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
#include "policies/base/rejected.h"
#include "policies/base/words.h"

namespace rematch {

#define REMATCH_ENUMERATOR(enumerator, name) enumerator,
enum class ModelFamily : std::uint8_t { REMATCH_MODEL_FAMILIES(REMATCH_ENUMERATOR) };
#undef REMATCH_ENUMERATOR

// The spelling of a family in files: "llama", "moe", ...
#define REMATCH_NAME(enumerator, name) #name,
template <>
inline constexpr auto kWords<ModelFamily> =
    std::to_array<std::string_view>({REMATCH_MODEL_FAMILIES(REMATCH_NAME)});
#undef REMATCH_NAME
const std::vector<ModelFamily>& model_families();

// How a video becomes tokens, for families that train on video latents.
struct VideoLayout {
  std::int64_t patch_extent;  // side of a patch of one latent frame, in latent pixels
  // pixels of height or width per token: autoencoder's factor times patch_extent
  std::int64_t pixels_per_token;
  // the first frame has a latent of its own; each later latent stands for this many frames
  std::int64_t frames_per_latent;
  std::string_view frames_example;
  bool masks_text;  // true if a batch marks which text tokens are words
};

// Returns null if the family trains on text.
const VideoLayout* video_layout(ModelFamily family);
bool trains_on_text(ModelFamily family);

// Everything that determines the shapes of a model and its batch. The keys of `dimensions` are flag
// names with underscores, as listed by dimension_entries(). An option that is off has no key, so a
// new option does not change the names of existing models.
struct ModelSpec {
  std::string preset;  // "wan_small"
  ModelFamily family = ModelFamily::kLlama;
  std::map<std::string, std::int64_t> dimensions;
  std::string dtype = "float32";  // dtype of parameters and activations: "float32", or "bfloat16"
                                  // with float32 master weights
  // This process's rank in the layout (models/preset/parallel.h) given in `dimensions`. The rank is
  // not part of the model's identity.
  int rank = 0;

  std::int64_t at(const std::string& dimension) const { return dimensions.at(dimension); }
  // Returns 0 if the option is off or the family does not have it.
  std::int64_t option(const std::string& name) const {
    const auto found = dimensions.find(name);
    return found == dimensions.end() ? 0 : found->second;
  }
};

// Returns the number of micro-batches in a step of the model.
std::int64_t micro_batches(const ModelSpec& spec);

struct PresetEntry {
  std::string_view name;
  std::string_view description;  // one line, with the source of the sizes
};

const std::vector<PresetEntry>& presets();

// A dimension of a family, which is a command-line flag, or an option of a layout.
struct DimensionEntry {
  std::string_view name;         // "kv_heads"
  std::string_view description;  // a one-line description
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
  bool is_option = false;  // true if the minimum means "off"; a spec omits an option that is off
};

// Returns the family's entries, in the order in which users see them.
const std::vector<DimensionEntry>& dimension_entries(ModelFamily family);

// Returns the preset's spec with the user's dimensions. Rejects unknown presets and dimensions,
// values out of range, and dimensions that do not fit together (for example, heads must divide
// dim). If only `tokens` of a video model is given, picks a grid close to a cube, with frames <=
// height <= width.
std::variant<ModelSpec, Rejected> make_spec(std::string_view preset,
                                            const std::map<std::string, std::int64_t>& overrides,
                                            std::string_view dtype = "float32");

// Converts a video's size to its patched latent grid, as overrides for make_spec. For Wan,
// "77x480x832" (frames x height x width in pixels) gives frames 20, height 30, width 52.
std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(std::string_view text,
                                                                             ModelFamily family);

}  // namespace rematch
