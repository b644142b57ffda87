#include <charconv>

#include "models/preset/preset.h"

namespace rematch {
namespace {

constexpr std::int64_t kMaxVideoExtent = 100'000;

// What a video model's autoencoder and patches make of pixels and frames.
struct Compression {
  std::int64_t pixels_per_token;
  std::int64_t frames_per_latent;
  std::string_view example;
};

constexpr Compression kWan = {16, 4, "77, 81"};  // VAE 8 x 8 x 4, patch 2 x 2
constexpr Compression kLtx = {32, 8, "81, 89"};  // VAE 32 x 32 x 8

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

std::variant<std::map<std::string, std::int64_t>, Rejected> video_dimensions(std::string_view text,
                                                                             ModelFamily family) {
  const std::string shown = "video '" + std::string(text) + "'";
  if (trains_on_text(family)) {
    return Rejected{shown + " is for video models; this one trains on text, so leave it out"};
  }
  const Compression& compression = family == ModelFamily::kLtx ? kLtx : kWan;
  const std::int64_t frames = compression.frames_per_latent;
  const std::int64_t pixels = compression.pixels_per_token;
  const std::vector<std::int64_t> extents = parse_extents(text);
  if (extents.empty()) {
    return Rejected{shown + " is not FRAMESxHEIGHTxWIDTH in pixels; write it like 77x480x832"};
  }
  if ((extents[0] - 1) % frames != 0) {
    return Rejected{shown + ": frames must be a multiple of " + std::to_string(frames) +
                    " plus 1 (" + std::string(compression.example) + ", ...), found " +
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
