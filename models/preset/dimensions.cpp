#include <charconv>

#include "models/preset/preset.h"

namespace rematch {
namespace {

constexpr std::int64_t kPixelsPerToken = 16;  // VAE 8, patch 2
constexpr std::int64_t kFramesPerLatent = 4;
constexpr std::int64_t kMaxVideoExtent = 100'000;

// Splits "77x480x832"; empty unless it is exactly three positive numbers of sane size.
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

const std::vector<DimensionEntry>& dimension_entries(ModelFamily family) {
  constexpr std::int64_t kWidth = 1'048'576;
  static const std::vector<DimensionEntry> llama = {
      {"layers", "transformer blocks", 1, 10'000},
      {"dim", "width of the residual stream", 2, kWidth},
      {"heads", "attention heads; must divide dim", 1, 65'536},
      {"kv_heads", "key and value heads; must divide heads", 1, 65'536},
      {"ffn", "hidden width of the feed-forward", 1, kWidth},
      {"vocab", "output classes; at least 256, the data are bytes", 256, 16'777'216},
      {"batch", "sequences a step", 1, 65'536},
      {"tokens", "tokens a sequence", 1, 16'777'216},
      {"tied", "1: embedding and head share one weight", 0, 1},
  };
  static const std::vector<DimensionEntry> dit = {
      {"layers", "transformer blocks", 1, 10'000},
      {"dim", "width of the residual stream", 2, kWidth},
      {"heads", "attention heads; must divide dim", 1, 65'536},
      {"ffn", "hidden width of the feed-forward", 1, kWidth},
      {"batch", "videos a step", 1, 65'536},
      {"tokens", "frames x height x width; alone it picks a grid", 1, 16'777'216},
      {"frames", "token grid: latent frames", 1, 65'536},
      {"height", "token grid: latent height / 2", 1, 65'536},
      {"width", "token grid: latent width / 2", 1, 65'536},
      {"text_tokens", "tokens of the text embedding", 1, 65'536},
      {"text_dim", "width of the text embedding", 1, kWidth},
      {"freq_dim", "width of the sinusoidal time embedding; even", 2, 65'536},
      {"channels", "latent channels", 1, 65'536},
  };
  return family == ModelFamily::kLlama ? llama : dit;
}

std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(
    std::string_view text) {
  const std::string shown = "video '" + std::string(text) + "'";
  const std::vector<std::int64_t> extents = parse_extents(text);
  if (extents.empty()) {
    return Rejected{shown + " is not FRAMESxHEIGHTxWIDTH in pixels; write it like 77x480x832"};
  }
  if ((extents[0] - 1) % kFramesPerLatent != 0) {
    return Rejected{shown + ": frames must be a multiple of 4 plus 1 (77, 81, ...), found " +
                    std::to_string(extents[0])};
  }
  if (extents[1] % kPixelsPerToken != 0 || extents[2] % kPixelsPerToken != 0) {
    return Rejected{shown + ": height and width must be multiples of 16, found " +
                    std::to_string(extents[1]) + " and " + std::to_string(extents[2])};
  }
  return std::map<std::string, std::int64_t>{{"frames", 1 + (extents[0] - 1) / kFramesPerLatent},
                                             {"height", extents[1] / kPixelsPerToken},
                                             {"width", extents[2] / kPixelsPerToken}};
}

}  // namespace rematch
