// Compares the bits that two reports recorded for a training step: of the loss, the gradients, the
// parameters and the random generator. Finds the first tensor that differs, and decides whether
// gradients can be compared at all. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "reports/record/point.h"

namespace rematch {

// A bit string or hash that a report stores once per step, unlike the gradient hashes, of which
// each parameter has one.
struct RecordedBits {
  const char* name;  // how messages name this kind of bits
  std::string StepRecord::*bits;
};

inline constexpr std::array kRecordedBits = {
    RecordedBits{"gradient norm", &StepRecord::gradient_norm_bits},
    RecordedBits{"parameters", &StepRecord::parameter_hash},
    RecordedBits{"generator state", &StepRecord::generator_hash}};

// Returns the name of the first tensor that differs, such as "loss", "head.weight" or "gradient
// norm". Empty if no tensor differs. Checks single gradients before the gradient norm, because the
// name of one gradient locates the difference better. Ignores bits that only one side recorded.
std::string first_different_tensor(const StepRecord& left, const StepRecord& right);

// True if the point's parity record says that its bits differ from the reference's bits, although
// the plan is exact. The parity record also covers the gradients of later steps, whose hashes the
// report does not store.
bool claims_wrong_bits(const PointRecord& point);

// Returns why the gradients of a step cannot be compared: "are all zero" or "are not finite". Empty
// if they can be compared or were not recorded.
std::string gradient_fault(const StepRecord& step);

}  // namespace rematch
