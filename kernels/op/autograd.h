// The autograd kernel of an op: a graph node around its backward op.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <functional>
#include <string>
#include <vector>

namespace rematch::kernels {

// What a node has when backward reaches it.
struct Saved {
  at::Tensor grad;                  // of the op's first output
  std::vector<at::Tensor> kept;     // as they went in, undefined ones among them
  std::vector<at::Tensor> outputs;  // all, or all but the first: see reads_first_output
  std::vector<bool> needed;         // by input: whether its gradient is asked for
};

struct Derivative {
  const char* name;                // of the node
  std::vector<at::Tensor> inputs;  // that can have a gradient
  std::vector<at::Tensor> kept;    // that the formula reads
  // Gradients of the inputs, in their order; undefined where there is none.
  std::function<std::vector<at::Tensor>(const Saved&)> formula;
  // Most formulas do not, and then nothing holds the op's result for backward.
  bool reads_first_output = false;
};

// Runs `forward` below autograd and, if any input requires it, puts a node on its first output.
// What is kept is saved before the kernel runs, as generated formulas do: a recompute that stops
// early then need not execute it.
std::vector<at::Tensor> differentiate(const Derivative& derivative,
                                      const std::function<std::vector<at::Tensor>()>& forward);

template <typename Signature>
c10::TypedOperatorHandle<Signature> handle(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace rematch::kernels
