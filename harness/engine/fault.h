// Faults that the tests of tests/harness/engine plant, to check that the gate catches them. Faults
// exist only in engines that tests compile with REMATCH_FAULTS. In any other engine has_fault() is
// constant.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class Fault : std::uint8_t {
  kNoFault,
  kGeneratorNotRestored,  // replay draws random numbers from the generator's current state
  kOtherLayersInput,      // a region holds the input of the previous region
  kStaleValue,            // a kept value stays although an in-place op has written to it
};

#ifdef REMATCH_FAULTS
void plant(Fault fault);
bool has_fault(Fault fault);
at::Tensor held_input(at::Tensor tensor);  // returns another tensor under kOtherLayersInput
#else
constexpr bool has_fault(Fault /*fault*/) { return false; }
inline at::Tensor held_input(at::Tensor tensor) { return tensor; }
#endif

}  // namespace rematch
