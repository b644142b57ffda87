// LTX-Video. Its VAE turns F frames into 1 + (F-1)/8 latent frames and divides height and width by
// 32. LTX-Video has no patches.
#include "models/preset/family.h"

namespace rematch::preset {

const Family& ltx_family() {
  static const Dimensions full = {{"layers", 28}, {"dim", 2048},        {"heads", 32},
                                  {"ffn", 8192},  {"text_tokens", 128}, {"channels", 128}};
  static const Dimensions small = {{"layers", 8},    {"dim", 96},      {"heads", 4},
                                   {"ffn", 384},     {"batch", 2},     {"text_tokens", 16},
                                   {"text_dim", 64}, {"freq_dim", 64}, {"channels", 8}};
  static const Family family = {
      video_dimension_entries(),
      {{{"ltx", "LTX-Video 2B: 28 layers, dim 2048, video 81x512x768"},
        video_preset(full, 11, 16, 24)},
       {{"ltx_small", "small LTX-Video on synthetic videos: 8 layers, dim 96, 2 x 128 tokens"},
        video_preset(small, 2, 8, 8)}},
      settle_video,
      VideoLayout{.patch_extent = 1,
                  .pixels_per_token = 32,
                  .frames_per_latent = 8,
                  .frames_example = "81, 89",
                  .masks_text = true},
      {"tp", "sp", "ulysses", "fsdp"}};
  return family;
}

}  // namespace rematch::preset
