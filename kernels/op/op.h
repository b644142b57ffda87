// Included by the source of every op. Registers an op with the dispatcher and gives it an autograd
// node that calls the backward op. Runs an op's kernels on the device of its tensors.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/autograd_not_implemented_fallback.h>
#include <torch/library.h>

#include <functional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/op/kernel.h"

namespace rematch::kernels {

// The arguments of Derivative::formula. An autograd node fills them in during backward.
struct Saved {
  at::Tensor grad;         // gradient of the op's first output
  at::Tensor second_grad;  // gradient of the second output: see second_has_gradient
  // the tensors of Derivative::kept after unpacking; some may be undefined
  std::vector<at::Tensor> kept;
  std::vector<at::Tensor> outputs;  // all outputs, or all except the first: see reads_first_output
  std::vector<bool> needed;         // indexed by input: whether its gradient is needed
};

struct Derivative {
  std::vector<at::Tensor> inputs;  // inputs that can have a gradient
  std::vector<at::Tensor> kept;    // tensors that the formula reads
  // Returns the gradients of the inputs, in their order; undefined for an input without a gradient.
  std::function<std::vector<at::Tensor>(const Saved&)> formula;
  // True if the formula reads the op's first output. If false, as in most ops, backward does not
  // keep that output alive.
  bool reads_first_output = false;
  // True if the op's second output has a gradient too. The formula then runs if either gradient is
  // defined, and the other one may be undefined.
  bool second_has_gradient = false;
};

// Registers rematch::NAME and rematch::NAME_backward. `Op` is a struct with these static members:
// - `kForward` and `kBackward` are schemas, without the namespace rematch.
// - `forward` and `backward` are functions with these schemas, for every device. They allocate
//   outputs and call launch().
// - `derivative` has the parameters of `forward` and returns a Derivative whose formula calls
//   gradients<Op>().
template <typename Op>
void register_op(torch::Library& library);

// Calls rematch::NAME, with autograd.
template <typename Op, typename... Arguments>
auto call(const Arguments&... arguments);

// Calls rematch::NAME_backward.
template <typename Op, typename... Arguments>
std::vector<at::Tensor> gradients(const Arguments&... arguments);

// Runs the kernel for `arguments` on the device. Does nothing on meta.
template <typename Arguments>
void launch(c10::Device device, const Arguments& arguments);

// Throws c10::Error, which names the op, unless the dtype is float32, bfloat16 or float64.
Element element_of(const at::Tensor& tensor, const char* op);

// Returns `tensor` if elements of its last dimension are adjacent, otherwise a contiguous copy.
// Returns `tensor` itself on device meta.
at::Tensor with_dense_rows(const at::Tensor& tensor);

// The dtype in which elements of dtype `type` are summed.
at::ScalarType sum_dtype(at::ScalarType type);

enum class Capability : std::uint8_t { kPortable, kAvx2, kAvx512 };

// Returns the instruction set that LibTorch's own kernels use. ATEN_CPU_CAPABILITY=default or =avx2
// selects a lower instruction set.
Capability capability();

// Calls `kernel` with the device's current stream. Throws c10::Error if the kernel fails, or if the
// program is linked without CUDA.
void launch_on_cuda(c10::Device device, const std::function<int(void* stream)>& kernel);

// Runs `forward` below autograd. If any input requires a gradient, attaches an autograd node to the
// outputs that have a gradient. Inputs are saved before the kernel runs, as in LibTorch's generated
// code, so a recompute with early stop need not run the kernel.
std::vector<at::Tensor> differentiate(const std::string& node_name, const Derivative& derivative,
                                      const std::function<std::vector<at::Tensor>()>& forward);

// Returns "silu_mul" for "silu_mul(Tensor gate, Tensor up) -> Tensor".
std::string op_name(std::string_view schema);

// Returns "RematchSiluMulBackward" for "silu_mul".
std::string node_name(std::string_view op_name);

template <typename Arguments>
void launch(c10::Device device, const Arguments& arguments) {
  if (device.is_meta()) return;
  const Kernels<Arguments> kernels = kernels_of(arguments);
  if (!device.is_cpu()) {
    launch_on_cuda(device, [&](void* stream) { return kernels.cuda(arguments, stream); });
    return;
  }
  const Capability usable = capability();
  if (usable == Capability::kAvx512 && kernels.avx512 != nullptr) return kernels.avx512(arguments);
  if (usable != Capability::kPortable && kernels.avx2 != nullptr) return kernels.avx2(arguments);
  kernels.portable(arguments);
}

template <typename Signature>
c10::TypedOperatorHandle<Signature> handle(const char* schema) {
  const std::string name = "rematch::" + op_name(schema);
  return c10::Dispatcher::singleton().findSchemaOrThrow(name.c_str(), "").typed<Signature>();
}

inline std::vector<at::Tensor> as_vector(at::Tensor tensor) { return {std::move(tensor)}; }

template <typename... Tensors>
std::vector<at::Tensor> as_vector(const std::tuple<Tensors...>& tensors) {
  return std::apply([](const auto&... each) { return std::vector<at::Tensor>{each...}; }, tensors);
}

template <typename Op, typename Signature>
struct Autograd;

template <typename Op, typename Result, typename... Arguments>
struct Autograd<Op, Result(Arguments...)> {
  static Result run(c10::DispatchKeySet keys, Arguments... arguments) {
    static const auto op = handle<Result(Arguments...)>(Op::kForward);
    static const std::string name = node_name(op_name(Op::kForward));
    const std::vector<at::Tensor> outputs = differentiate(name, Op::derivative(arguments...), [&] {
      return as_vector(op.redispatch(keys & c10::after_autograd_keyset, arguments...));
    });
    if constexpr (std::is_same_v<Result, at::Tensor>) {
      return outputs[0];
    } else if constexpr (std::tuple_size_v<Result> == 2) {
      return {outputs[0], outputs[1]};
    } else {
      return {outputs[0], outputs[1], outputs[2]};
    }
  }
};

template <typename Op>
void register_op(torch::Library& library) {
  using Forward = decltype(Op::forward);
  const std::string forward = op_name(Op::kForward);
  const std::string backward = op_name(Op::kBackward);
  library.def(Op::kForward);
  library.def(Op::kBackward);
  for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::CUDA}) {
    library.impl(forward.c_str(), torch::dispatch(key, TORCH_FN(Op::forward)));
    library.impl(backward.c_str(), torch::dispatch(key, TORCH_FN(Op::backward)));
  }
  constexpr auto kAutograd = c10::DispatchKey::Autograd;
  library.impl(forward.c_str(), torch::dispatch(kAutograd, TORCH_FN((Autograd<Op, Forward>::run))));
  library.impl(backward.c_str(),
               torch::dispatch(kAutograd, torch::autograd::autogradNotImplementedFallback()));
}

template <typename Op, typename... Arguments>
auto call(const Arguments&... arguments) {
  static const auto op = handle<decltype(Op::forward)>(Op::kForward);
  return op.call(arguments...);
}

template <typename Op, typename... Arguments>
std::vector<at::Tensor> gradients(const Arguments&... arguments) {
  static const auto op = handle<decltype(Op::backward)>(Op::kBackward);
  return as_vector(op.call(arguments...));
}

}  // namespace rematch::kernels
