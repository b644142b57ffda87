// Converts a video's size to a grid of tokens. Shared by the video families.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/preset/family.h"
#include "policies/base/rejected.h"

namespace rematch {
namespace {

constexpr std::int64_t kMaxVideoExtent = 100'000;

std::int64_t largest_divisor_below_root(std::int64_t number, double root) {
  std::int64_t divisor = std::max<std::int64_t>(1, std::llround(root));
  while (number % divisor != 0) --divisor;
  return divisor;
}

void choose_grid(preset::Dimensions& dimensions) {
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

preset::Checked settle_tokens(ModelSpec& spec, const preset::Dimensions& given) {
  preset::Dimensions& dimensions = spec.dimensions;
  const bool has_grid =
      given.contains("frames") || given.contains("height") || given.contains("width");
  if (given.contains("tokens") && !has_grid) {
    choose_grid(dimensions);
    return std::nullopt;
  }
  const std::int64_t product =
      dimensions.at("frames") * dimensions.at("height") * dimensions.at("width");
  if (given.contains("tokens") && product != dimensions.at("tokens")) {
    return Rejected{"tokens " + std::to_string(dimensions.at("tokens")) +
                    " is not frames x height x width = " + std::to_string(product) +
                    "; give only tokens, or only frames, height and width"};
  }
  dimensions["tokens"] = product;
  return std::nullopt;
}

// Splits "77x480x832". Returns an empty list unless the text is exactly three numbers from 1 to
// kMaxVideoExtent.
std::vector<std::int64_t> parse_extents(std::string_view text) {
  std::vector<std::int64_t> extents;
  const char* position = text.data();
  const char* const end = text.data() + text.size();
  while (true) {
    std::int64_t extent = 0;
    const auto [next, error] = std::from_chars(position, end, extent);
    if (error != std::errc{} || extent < 1 || extent > kMaxVideoExtent) return {};
    extents.push_back(extent);
    if (next == end) break;
    if (*next != 'x') return {};
    position = next + 1;
  }
  return extents.size() == 3 ? extents : std::vector<std::int64_t>{};
}

}  // namespace

namespace preset {

std::vector<DimensionEntry> video_dimension_entries() {
  return {kLayers,
          kDim,
          kHeads,
          kFfn,
          {"batch", "videos per step, or per micro-batch", 1, kMaxCount},
          kMicroBatches,
          kGradientDtype,
          {"tokens", "frames x height x width; if given alone, a grid is chosen", 1, kMaxTokens},
          {"frames", "token grid: latent frames", 1, kMaxCount},
          {"height", "token grid: latent height divided by the patch height", 1, kMaxCount},
          {"width", "token grid: latent width divided by the patch width", 1, kMaxCount},
          {"text_tokens", "tokens of the text embedding", 1, kMaxCount},
          {"text_dim", "width of the text embedding", 1, kMaxWidth},
          {"freq_dim", "width of the sinusoidal time embedding; must be even", 2, kMaxCount},
          {"channels", "latent channels", 1, kMaxCount},
          kDropout,
          kFusedOps,
          kPackedWeights};
}

Dimensions video_preset(const Dimensions& sizes, std::int64_t frames, std::int64_t height,
                        std::int64_t width) {
  const Dimensions grid = {{"tokens", frames * height * width},
                           {"frames", frames},
                           {"height", height},
                           {"width", width}};
  return with(with({{"batch", 1}, {"text_dim", 4096}, {"freq_dim", 256}}, sizes), grid);
}

Checked settle_video(ModelSpec& spec, const Dimensions& given) {
  if (Checked rejected = settle_tokens(spec, given)) return rejected;
  if (Checked rejected = require_rotary_heads(spec)) return rejected;
  if (spec.at("freq_dim") % 2 == 0) return std::nullopt;
  return Rejected{"freq_dim " + std::to_string(spec.at("freq_dim")) +
                  " is odd; the embedding holds pairs of cosine and sine"};
}

}  // namespace preset

std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(std::string_view text,
                                                                             ModelFamily family) {
  const std::string shown = "video '" + std::string(text) + "'";
  const VideoLayout* layout = video_layout(family);
  if (layout == nullptr) {
    return Rejected{shown +
                    " applies only to video models; this one trains on text, so leave it out"};
  }
  const std::int64_t frames = layout->frames_per_latent;
  const std::int64_t pixels = layout->pixels_per_token;
  const std::vector<std::int64_t> extents = parse_extents(text);
  if (extents.empty()) {
    return Rejected{shown + " is not FRAMESxHEIGHTxWIDTH in pixels; write it like 77x480x832"};
  }
  if ((extents[0] - 1) % frames != 0) {
    return Rejected{shown + ": frames must be a multiple of " + std::to_string(frames) +
                    " plus 1 (" + std::string(layout->frames_example) + ", ...), found " +
                    std::to_string(extents[0])};
  }
  if (extents[1] % pixels != 0 || extents[2] % pixels != 0) {
    return Rejected{shown + ": height and width must be multiples of " + std::to_string(pixels) +
                    ", found " + std::to_string(extents[1]) + " and " + std::to_string(extents[2])};
  }
  return std::map<std::string, std::int64_t>{{"frames", 1 + (extents[0] - 1) / frames},
                                             {"height", extents[1] / pixels},
                                             {"width", extents[2] / pixels}};
}

}  // namespace rematch
