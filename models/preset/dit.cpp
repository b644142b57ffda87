// Wan 2.1 and LTX-Video: what they share is how a video becomes a grid of tokens.
#include <algorithm>
#include <cmath>

#include "models/preset/family.h"

namespace rematch::preset {
namespace {

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

Checked settle_tokens(ModelSpec& spec, const Dimensions& given) {
  Dimensions& dimensions = spec.dimensions;
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
                    "; give one of the two"};
  }
  dimensions["tokens"] = product;
  return std::nullopt;
}

Checked settle(ModelSpec& spec, const Dimensions& given) {
  if (Checked rejected = settle_tokens(spec, given)) return rejected;
  if (Checked rejected = require_rotary_heads(spec)) return rejected;
  if (spec.at("freq_dim") % 2 == 0) return std::nullopt;
  return Rejected{"freq_dim " + std::to_string(spec.at("freq_dim")) +
                  " is odd; it holds pairs of cosine and sine"};
}

std::vector<DimensionEntry> dit_dimensions() {
  return {kLayers,
          kDim,
          kHeads,
          kFfn,
          {"batch", "videos a step", 1, kMaxCount},
          {"tokens", "frames x height x width; alone it picks a grid", 1, kMaxTokens},
          {"frames", "token grid: latent frames", 1, kMaxCount},
          {"height", "token grid: latent height over the patch's", 1, kMaxCount},
          {"width", "token grid: latent width over the patch's", 1, kMaxCount},
          {"text_tokens", "tokens of the text embedding", 1, kMaxCount},
          {"text_dim", "width of the text embedding", 1, kMaxWidth},
          {"freq_dim", "width of the sinusoidal time embedding; even", 2, kMaxCount},
          {"channels", "latent channels", 1, kMaxCount},
          kDropout,
          kFusedOps};
}

Dimensions grid(std::int64_t frames, std::int64_t height, std::int64_t width) {
  return {{"tokens", frames * height * width},
          {"frames", frames},
          {"height", height},
          {"width", width}};
}

Dimensions dit(const Dimensions& sizes, const Dimensions& tokens) {
  return with(with({{"batch", 1}, {"text_dim", 4096}, {"freq_dim", 256}}, sizes), tokens);
}

}  // namespace

// wan_small is fixed: golden files depend on it. What its blocks save for backward outweighs
// parameters, head and loss, so the peak tells about checkpointing.
const Family& wan_family() {
  static const Dimensions small = {{"layers", 8},    {"dim", 96},      {"heads", 4},
                                   {"ffn", 384},     {"batch", 2},     {"text_tokens", 16},
                                   {"text_dim", 64}, {"freq_dim", 64}, {"channels", 4}};
  static const Dimensions size_1_3b = {{"layers", 30}, {"dim", 1536},        {"heads", 12},
                                       {"ffn", 8960},  {"text_tokens", 512}, {"channels", 16}};
  static const Dimensions size_14b = {{"layers", 40}, {"dim", 5120},        {"heads", 40},
                                      {"ffn", 13824}, {"text_tokens", 512}, {"channels", 16}};
  static const Family family = {
      dit_dimensions(),
      {{{"wan_1_3b", "Wan 2.1 T2V 1.3B: 30 layers, dim 1536, video 77x480x832"},
        dit(size_1_3b, grid(20, 30, 52))},
       {{"wan_14b", "Wan 2.1 T2V 14B: 40 layers, dim 5120, video 77x480x832"},
        dit(size_14b, grid(20, 30, 52))},
       {{"wan_small", "Wan 2.1 in small, on moving shapes: 8 layers, dim 96, 2 x 128 tokens"},
        dit(small, grid(2, 8, 8))}},
      settle};
  return family;
}

const Family& ltx_family() {
  static const Dimensions full = {{"layers", 28}, {"dim", 2048},        {"heads", 32},
                                  {"ffn", 8192},  {"text_tokens", 128}, {"channels", 128}};
  static const Dimensions small = {{"layers", 8},    {"dim", 96},      {"heads", 4},
                                   {"ffn", 384},     {"batch", 2},     {"text_tokens", 16},
                                   {"text_dim", 64}, {"freq_dim", 64}, {"channels", 8}};
  static const Family family = {
      dit_dimensions(),
      {{{"ltx", "LTX-Video 2B: 28 layers, dim 2048, video 81x512x768"},
        dit(full, grid(11, 16, 24))},
       {{"ltx_small", "LTX-Video in small, on moving shapes: 8 layers, dim 96, 2 x 128 tokens"},
        dit(small, grid(2, 8, 8))}},
      settle};
  return family;
}

}  // namespace rematch::preset
