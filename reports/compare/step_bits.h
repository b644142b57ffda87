// Compares the bits of a training step in two reports: the bits of the loss, the gradients, the
// parameters and the random generator. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"

namespace rematch {

// One of the bit strings and hashes that a report stores for each step. Gradient hashes, one for
// each parameter, are stored separately.
struct RecordedBits {
  const char* name;  // name in messages
  std::string StepRecord::*bits;
};

inline constexpr std::array kRecordedBits = {
    RecordedBits{"gradient norm", &StepRecord::gradient_norm_bits},
    RecordedBits{"parameters", &StepRecord::parameter_hash},
    RecordedBits{"generator state", &StepRecord::generator_hash}};

// Returns the name of the first tensor that differs, such as "loss", "head.weight" or "gradient
// norm". Empty if no tensor differs. Ignores bits that only one side recorded.
std::string first_different_tensor(const StepRecord& left, const StepRecord& right);

// Returns whether the point's parity record says that the bits of an exact plan differ from the
// reference. The parity record also covers gradients that the report does not store.
bool claims_wrong_bits(const PointRecord& point);

// Returns why the gradients of a step cannot be compared: "are all zero" or "are not finite". Empty
// if they can be compared or were not recorded.
std::string gradient_fault(const StepRecord& step);

}  // namespace rematch
