// Wan 2.1. Its VAE turns F frames into 1 + (F-1)/4 latent frames and divides height and width by 8.
// A patch spans 2 x 2 latents.
#include "models/preset/family.h"

namespace rematch::preset {

// The sizes of wan_small must not change, because golden files depend on them. The activations that
// its blocks save take more memory than its parameters, head and loss, so checkpointing lowers the
// peak.
const Family& dit_family() {
  static const Dimensions small = {{"layers", 8},    {"dim", 96},      {"heads", 4},
                                   {"ffn", 384},     {"batch", 2},     {"text_tokens", 16},
                                   {"text_dim", 64}, {"freq_dim", 64}, {"channels", 4}};
  static const Dimensions size_1_3b = {{"layers", 30}, {"dim", 1536},        {"heads", 12},
                                       {"ffn", 8960},  {"text_tokens", 512}, {"channels", 16}};
  static const Dimensions size_14b = {{"layers", 40}, {"dim", 5120},        {"heads", 40},
                                      {"ffn", 13824}, {"text_tokens", 512}, {"channels", 16}};
  static const Family family = {
      video_dimension_entries(),
      {{{"wan_1_3b", "Wan 2.1 T2V 1.3B: 30 layers, dim 1536, video 77x480x832"},
        video_preset(size_1_3b, 20, 30, 52)},
       {{"wan_14b", "Wan 2.1 T2V 14B: 40 layers, dim 5120, video 77x480x832"},
        video_preset(size_14b, 20, 30, 52)},
       {{"wan_small", "small Wan 2.1 on synthetic videos: 8 layers, dim 96, 2 x 128 tokens"},
        video_preset(small, 2, 8, 8)}},
      settle_video,
      VideoLayout{.patch_extent = 2,
                  .pixels_per_token = 16,
                  .frames_per_latent = 4,
                  .frames_example = "77, 81",
                  .masks_text = false},
      {"tp", "sp", "ulysses", "fsdp"}};
  return family;
}

}  // namespace rematch::preset
