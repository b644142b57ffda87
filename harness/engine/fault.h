// Bugs that the tests in tests/harness/engine switch on, to prove that the equality checks detect
// them. These bugs exist only in engines compiled with REMATCH_FAULTS. In all other builds,
// has_fault() is constant false.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace rematch {

enum class Fault : std::uint8_t {
  kNoFault,
  kGeneratorNotRestored,  // replay does not restore the generator's state
  kOtherLayersInput,      // a region holds another region's input
  kStaleValue,            // a kept value survives an in-place write
};

#ifdef REMATCH_FAULTS
void plant(Fault fault);
bool has_fault(Fault fault);
// Returns `tensor`. Under kOtherLayersInput, returns the tensor of the previous call instead.
at::Tensor held_input(at::Tensor tensor);
#else
constexpr bool has_fault(Fault /*fault*/) { return false; }
inline at::Tensor held_input(at::Tensor tensor) { return tensor; }
#endif

}  // namespace rematch
