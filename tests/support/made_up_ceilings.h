// Ceilings of a made-up card, with every rate.
#pragma once

#include "policies/predict/device/ceilings.h"

namespace rematch::testing {

inline Ceilings made_up_ceilings() {
  return {.card = "NVIDIA H200",
          .matmul = 800e12,
          .copy = 4000e9,
          .attention_forward = 600e12,
          .attention_backward = 500e12,
          .elementwise = 3000e9,
          .float32_matmul = 50e12,
          .source = "made up"};
}

}  // namespace rematch::testing
