// What a step gives every block of a video transformer beside the video's tokens.
#pragma once

#include "models/layers/rotary.h"

namespace rematch::dit {

struct Conditions {
  at::Tensor text_BLD;
  at::Tensor text_mask_B11L;  // added to the scores of cross attention; undefined: no mask
  at::Tensor modulation_B6D;  // from the flow time: shift, scale, gate of attention, then of ffn
};

// A video's tokens in the order frame, row, column.
struct Grid {
  std::int64_t batch, channels, frames, height, width;
  std::int64_t tokens() const { return frames * height * width; }
};

}  // namespace rematch::dit
