// The choice between several ATen ops and one fused op, for a model's norms, modulation, rotary
// embedding, gated activation and loss.
#pragma once

#include <cstdint>

#include "models/preset/preset.h"

namespace rematch {

enum class Ops : std::uint8_t { kEager, kFused };

inline Ops ops_of(const ModelSpec& spec) {
  return spec.option("fused_ops") == 1 ? Ops::kFused : Ops::kEager;
}

}  // namespace rematch
