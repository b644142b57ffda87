#include "harness/trace/backward_as_with_data.h"

#include <ATen/TensorUtils.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace rematch {
namespace {

// The names of two ops: backward runs the first on meta tensors, and the second on real tensors.
struct Names {
  const char* functional;
  const char* in_place;
  const char* overload;
};
constexpr Names kNames[] = {
    {"aten::add", "aten::add_", "Tensor"},
    {"aten::scatter_add", "aten::scatter_add_", ""},
    {"aten::scatter", "aten::scatter_", "src"},
    {"aten::index_add", "aten::index_add_", ""},
};

c10::OperatorHandle find(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

bool in_first_derivative() {
  return torch::autograd::get_current_graph_task_id() >= 0 && !c10::GradMode::is_enabled();
}

// Returns whether autograd is running the backward of an op that selects values along a dimension,
// such as topk.
bool in_value_selection() {
  constexpr std::string_view kOps[] = {"Kthvalue", "Max",       "Median", "Min",
                                       "Mode",     "Nanmedian", "Sort",   "Topk"};
  const auto node = torch::autograd::get_current_node();
  if (node == nullptr) return false;
  const std::string name = node->name();
  const std::string op = name.substr(0, name.rfind("Backward"));
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

// Returns whether the buffer has exactly two references: the boxed stack, and either the backward
// formula or the engine's input buffer.
bool may_be_written(const at::Tensor& buffer) {
  constexpr std::size_t kHolders = 2;
  return buffer.is_meta() && buffer.is_non_overlapping_and_dense() &&
         buffer.use_count() == kHolders && buffer.storage().use_count() == 1;
}

bool same_sizes(const c10::IValue& one, const c10::IValue& other) {
  return other.isTensor() && one.toTensor().sizes() == other.toTensor().sizes();
}

// Returns the strides that reshape of a real tensor would pass to _reshape_alias. Returns nothing
// if reshape would copy the tensor, or would call view.
std::optional<std::vector<std::int64_t>> alias_strides(const c10::IValue& self,
                                                       const c10::IValue& size) {
  if (!self.isTensor() || !size.isIntList()) return std::nullopt;
  const at::Tensor& tensor = self.toTensor();
  if (!tensor.is_meta() || tensor.is_contiguous()) return std::nullopt;
  return at::detail::computeStride(tensor.sizes(), tensor.strides(), size.toIntVector());
}

// Converts the arguments of new_zeros to arguments of zeros.
void make_arguments_of_zeros(torch::jit::Stack& stack, std::size_t base) {
  const at::TensorOptions options = stack[base].toTensor().options();
  stack.erase(stack.begin() + static_cast<std::ptrdiff_t>(base));
  const auto set_if_none = [&](std::size_t index, const c10::IValue& value) {
    if (stack[base + index].isNone()) stack[base + index] = value;
  };
  set_if_none(1, options.dtype().toScalarType());
  set_if_none(2, options.layout());
  set_if_none(3, options.device());
}

}  // namespace

BackwardAsWithData::BackwardAsWithData()
    : reshape_{find("aten::view", ""), find("aten::_reshape_alias", "")},
      zeros_{find("aten::new_zeros", ""), find("aten::zeros", "")} {
  for (const Names& names : kNames) {
    in_place_.push_back(
        {find(names.functional, names.overload), find(names.in_place, names.overload)});
  }
}

void BackwardAsWithData::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                             torch::jit::Stack* stack, std::size_t depth) {
  const auto is = [&](const Pair& pair) { return &pair.on_meta.schema() == &op.schema(); };
  const auto pair = std::find_if(in_place_.begin(), in_place_.end(), is);
  const c10::OperatorHandle* with_data = &op;
  const std::size_t base = stack->size() - op.schema().arguments().size();
  if (pair != in_place_.end() && in_first_derivative()) {
    const bool fits = pair != in_place_.begin() || same_sizes((*stack)[base], (*stack)[base + 1]);
    if (fits && may_be_written((*stack)[base].toTensor())) with_data = &pair->with_data;
  } else if (is(reshape_) && in_first_derivative()) {
    const auto strides = alias_strides((*stack)[base], (*stack)[base + 1]);
    if (strides.has_value()) {
      stack->emplace_back(*strides);
      with_data = &reshape_.with_data;
    }
  } else if (is(zeros_) && in_first_derivative() && in_value_selection()) {
    make_arguments_of_zeros(*stack, base);
    with_data = &zeros_.with_data;
  }
  call_next(*with_data, keys, stack, depth);
}

}  // namespace rematch
