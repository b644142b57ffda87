// Evaluates the recorded bits of one training step: in which tensor two steps differ first, and
// whether a step has gradients that can be compared at all. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"

namespace rematch {

// Bits of a step that belong to no single gradient.
struct RecordedBits {
  const char* name;  // of the tensor that differs
  std::string StepRecord::*bits;
};

inline constexpr std::array kRecordedBits = {
    RecordedBits{"gradient norm", &StepRecord::gradient_norm_bits},
    RecordedBits{"parameters", &StepRecord::parameter_hash},
    RecordedBits{"generator state", &StepRecord::generator_hash}};

// "loss", "head.weight", "gradient norm"; empty: no difference. A gradient whose name is known says
// more than the norm of all. What one side did not record is no difference; nor is it equal.
std::string first_different_tensor(const StepRecord& left, const StepRecord& right);

// Does the point's own parity say that it has other bits than its reference? It knows more than the
// steps: hashes of later gradients are compared where they are measured, and not kept.
bool claims_other_bits(const PointRecord& point);

// Why the gradients of a step equal nothing: "are all zero", "are not finite"; empty: they can be
// compared, or were not recorded.
std::string gradient_fault(const StepRecord& step);

}  // namespace rematch
