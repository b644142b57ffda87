// Checks that every fused op must pass.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace rematch::testing {

using Tensors = std::vector<at::Tensor>;

// The differentiable outputs of an op. A function that returns one tensor converts implicitly.
struct Outputs {
  Outputs(at::Tensor output) : tensors{std::move(output)} {}  // NOLINT: implicit
  Outputs(Tensors outputs) : tensors(std::move(outputs)) {}   // NOLINT: implicit
  Tensors tensors;
};
using Function = std::function<Outputs(const Tensors&)>;

struct OpCase {
  // the name of the op without "rematch::"; its backward is rematch::<name>_backward
  std::string name;
  Function fused;     // the fused op, called with the inputs
  Function composed;  // computes the same function with ATen's ops, for any dtype
  // Floating-point inputs are double, and are converted to the tested dtype. A gradient is computed
  // for each input that requires one.
  Tensors inputs;
  int saved_before;     // number of tensors saved for backward before the kernel runs
  int saved_after = 0;  // number of tensors saved after the kernel runs
  // False if the op contains LibTorch's matmuls, whose bits depend on the number of threads.
  bool same_bits_for_any_threads = true;
};

// Returns random numbers in double.
at::Tensor random(at::IntArrayRef sizes);

// Checks that the dispatcher sees the op and its backward as one op each. Also checks how many
// tensors are saved before and after the kernel runs.
void check_one_op(const OpCase& op);
// Compares output and gradients with those of `composed` in the same dtype. Elements may differ by
// `tolerance` times the largest element.
void check_composition(const OpCase& op, at::ScalarType dtype, double tolerance);
// Checks gradients against central differences in double.
void check_finite_differences(const OpCase& op);
// Checks that output and gradients on meta have the same dtype, sizes and strides as on the CPU.
void check_meta(const OpCase& op, at::ScalarType dtype);
// Checks that two runs give the same bits of output and gradients. If `same_bits_for_any_threads`,
// one thread and several threads must give the same bits too.
void check_bits(const OpCase& op, at::ScalarType dtype);
// Checks that a second derivative throws an error, and that first derivatives work under
// create_graph.
void check_second_derivative(const OpCase& op);
// Checks that no autograd graph is built if grad mode is off. Also checks that the gradient of an
// input does not depend on which other inputs need gradients.
void check_partial(const OpCase& op);

// Runs all checks above in every dtype.
void check_op(const OpCase& op);

}  // namespace rematch::testing
