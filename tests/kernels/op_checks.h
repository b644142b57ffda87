// What every fused op must keep to, whatever it computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace rematch::testing {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

struct OpCase {
  // The op is rematch::<name>, its backward rematch::<name>_backward.
  std::string name;
  Function fused;     // of the inputs
  Function composed;  // the same from ATen's ops, for any dtype
  // In double; floating ones are converted, and those that require a gradient get one.
  Tensors inputs;
  int saved_before;     // tensors saved for backward before the kernel runs
  int saved_after = 0;  // and after it
  // False: the op contains LibTorch's matmuls, whose bits follow the number of threads.
  bool same_bits_for_any_threads = true;
};

// In double.
at::Tensor random(at::IntArrayRef sizes);

// The op is one op, and its backward one, at the dispatcher; what is saved is saved when it says.
void check_one_op(const OpCase& op);
// Output and gradients agree with those of the composition of the same dtype: elements within
// `tolerance` of the largest.
void check_composition(const OpCase& op, at::ScalarType dtype, double tolerance);
// Gradients agree with central differences in double.
void check_finite_differences(const OpCase& op);
// On meta, output and gradients have dtype, sizes and strides of the CPU's.
void check_meta(const OpCase& op, at::ScalarType dtype);
// Output and gradients have the same bits again, and with one thread and with several.
void check_bits(const OpCase& op, at::ScalarType dtype);
// A second derivative is refused, but only when it is asked for.
void check_second_derivative(const OpCase& op);
// No graph without grad mode; gradients do not depend on which inputs need one.
void check_partial(const OpCase& op);

// All of these, in every dtype.
void check_op(const OpCase& op);

}  // namespace rematch::testing
