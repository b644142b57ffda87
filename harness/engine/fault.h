// Faults for the tests to plant, to see that the gate catches them: tests/harness/engine. Only the
// engine that tests compile with REMATCH_FAULTS has them; in any other, these lines are constants.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class Fault : std::uint8_t {
  kNoFault,
  kGeneratorNotRestored,  // replay draws what the generator gives it then
  kOtherLayersInput,      // a region holds the input of the region before it
  kStaleValue,            // a kept value is kept although an in-place op has written to it
};

#ifdef REMATCH_FAULTS
void plant(Fault fault);
bool has_fault(Fault fault);
at::Tensor held_input(at::Tensor tensor);  // what kOtherLayersInput makes of it
#else
constexpr bool has_fault(Fault /*fault*/) { return false; }
inline at::Tensor held_input(at::Tensor tensor) { return tensor; }
#endif

}  // namespace rematch
