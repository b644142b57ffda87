#include "kernels/collectives/collectives.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <algorithm>
#include <utility>

namespace rematch::collectives {
namespace {

// Collectives are called through boxed handles. For an op with a Tensor[] argument, a typed handle
// ignores the tensors' dispatch keys, so it would skip Meta kernels and listeners below autograd.
template <typename... Arguments>
c10::IValue call(const char* name, Arguments&&... arguments) {
  const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name, "");
  torch::jit::Stack stack;
  (stack.emplace_back(std::forward<Arguments>(arguments)), ...);
  op.callBoxed(&stack);
  return std::move(stack.front());
}

at::Tensor waited(const at::Tensor& started) {
  return call("_c10d_functional::wait_tensor", started).toTensor();
}

std::vector<at::Tensor> waited(std::vector<at::Tensor> started) {
  for (at::Tensor& tensor : started) tensor = waited(tensor);
  return started;
}

std::string name_of(Reduction reduction) { return reduction == Reduction::kSum ? "sum" : "avg"; }

}  // namespace

at::Tensor all_reduce(const at::Tensor& x, const std::string& group) {
  return waited(
      call("_c10d_functional::all_reduce", x, name_of(Reduction::kSum), group).toTensor());
}

at::Tensor all_gather(const at::Tensor& x, std::int64_t size, const std::string& group) {
  return waited(call("_c10d_functional::all_gather_into_tensor", x, size, group).toTensor());
}

at::Tensor reduce_scatter(const at::Tensor& x, std::int64_t size, const std::string& group) {
  return waited(
      call("_c10d_functional::reduce_scatter_tensor", x, name_of(Reduction::kSum), size, group)
          .toTensor());
}

at::Tensor all_to_all(const at::Tensor& x, const std::vector<std::int64_t>& output_rows,
                      const std::vector<std::int64_t>& input_rows, const std::string& group) {
  return waited(
      call("_c10d_functional::all_to_all_single", x, output_rows, input_rows, group).toTensor());
}

at::Tensor start_shift(const at::Tensor& x, std::int64_t position, std::int64_t size,
                       const std::string& group) {
  std::vector<std::int64_t> received(size, 0), sent(size, 0);
  sent[(position + 1) % size] = 1;
  received[(position + size - 1) % size] = 1;
  return call("_c10d_functional::all_to_all_single", x.view({1, -1}), received, sent, group)
      .toTensor();
}

at::Tensor end_shift(const at::Tensor& started, at::IntArrayRef sizes) {
  return waited(started).view(sizes);
}

at::Tensor broadcast(const at::Tensor& x, std::int64_t root, const std::string& group) {
  return waited(call("_c10d_functional::broadcast", x, root, group).toTensor());
}

std::vector<at::Tensor> all_gather(const std::vector<at::Tensor>& tensors, std::int64_t size,
                                   const std::string& group) {
  return waited(call("_c10d_functional::all_gather_into_tensor_coalesced", tensors, size, group)
                    .toTensorVector());
}

std::vector<at::Tensor> reduce_scatter(const std::vector<at::Tensor>& tensors, Reduction reduction,
                                       std::int64_t size, const std::string& group) {
  return waited(call("_c10d_functional::reduce_scatter_tensor_coalesced", tensors,
                     name_of(reduction), size, group)
                    .toTensorVector());
}

void all_reduce_in_place(const std::vector<at::Tensor>& tensors, Reduction reduction,
                         const std::string& group) {
  waited(call("_c10d_functional::all_reduce_coalesced_", tensors, name_of(reduction), group)
             .toTensorVector());
}

namespace {

// LibTorch's C++ library has no Meta kernels for these ops. The Meta kernels here allocate the same
// outputs as the real ops.

using Tensors = std::vector<at::Tensor>;

at::Tensor with_rows(const at::Tensor& x, std::int64_t rows) {
  std::vector<std::int64_t> sizes = x.sizes().vec();
  sizes.resize(std::max<std::size_t>(sizes.size(), 1), 1);
  sizes[0] = rows;
  return at::empty(sizes, x.options());
}

std::int64_t rows_of(const at::Tensor& x) { return x.dim() == 0 ? 1 : x.size(0); }

at::Tensor alike(const at::Tensor& x) { return at::empty(x.sizes(), x.options()); }

at::Tensor gathered(const at::Tensor& x, std::int64_t size) {
  TORCH_CHECK(x.is_contiguous(), "all_gather_into_tensor: the input must be contiguous");
  return with_rows(x, rows_of(x) * size);
}

at::Tensor scattered(const at::Tensor& x, std::int64_t size) {
  TORCH_CHECK(x.is_contiguous(), "reduce_scatter_tensor: the input must be contiguous");
  TORCH_CHECK(rows_of(x) % size == 0, "reduce_scatter_tensor: dimension 0 of ", x.sizes(),
              " is not divisible by ", size, " ranks");
  return with_rows(x, rows_of(x) / size);
}

// The Meta kernels are boxed, because a typed kernel must match the schema's types, which change
// between versions: see Note [LibTorch versions].

using Arguments = const c10::IValue*;

template <c10::IValue (*make)(Arguments)>
void boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::size_t num_arguments = op.schema().arguments().size();
  c10::IValue made = make(stack->data() + stack->size() - num_arguments);
  torch::jit::drop(*stack, num_arguments);
  stack->push_back(std::move(made));
}

c10::IValue meta_all_reduce(Arguments all) { return alike(all[0].toTensor()); }

c10::IValue meta_all_gather(Arguments all) { return gathered(all[0].toTensor(), all[1].toInt()); }

c10::IValue meta_reduce_scatter(Arguments all) {
  return scattered(all[0].toTensor(), all[2].toInt());
}

c10::IValue meta_all_to_all(Arguments all) {
  const at::Tensor& x = all[0].toTensor();
  TORCH_CHECK(x.is_contiguous(), "all_to_all_single: the input must be contiguous");
  std::int64_t rows = 0;
  for (const c10::SymInt& part : all[1].toSymIntVector()) rows += part.expect_int();
  return with_rows(x, rows);
}

template <c10::IValue (*one)(Arguments)>
c10::IValue meta_each(Arguments all) {
  Tensors tensors = all[0].toTensorVector();
  for (at::Tensor& tensor : tensors) {
    const c10::IValue of_one[] = {tensor, all[1], all[2]};
    tensor = one(of_one).toTensor();
  }
  return tensors;
}

c10::IValue meta_in_place(Arguments all) { return all[0]; }

template <c10::IValue (*make)(Arguments)>
torch::CppFunction kernel() {
  return torch::CppFunction::makeFromBoxedFunction<&boxed<make>>();
}

TORCH_LIBRARY_IMPL(_c10d_functional, Meta, library) {
  library.impl("all_reduce", kernel<meta_all_reduce>());
  library.impl("all_reduce_coalesced", kernel<meta_each<meta_all_reduce>>());
  library.impl("all_reduce_coalesced_", kernel<meta_in_place>());
  library.impl("broadcast", kernel<meta_all_reduce>());
  library.impl("all_gather_into_tensor", kernel<meta_all_gather>());
  library.impl("all_gather_into_tensor_coalesced", kernel<meta_each<meta_all_gather>>());
  library.impl("reduce_scatter_tensor", kernel<meta_reduce_scatter>());
  library.impl("reduce_scatter_tensor_coalesced", kernel<meta_each<meta_reduce_scatter>>());
  library.impl("all_to_all_single", kernel<meta_all_to_all>());
}

}  // namespace
}  // namespace rematch::collectives
