#include "harness/trace/in_place_accumulation.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>

namespace rematch {
namespace {

bool would_be_in_place(const at::Tensor& buffer, const at::Tensor& gradient) {
  constexpr std::size_t kHolders = 2;  // the engine's buffer and the boxed stack
  return buffer.is_meta() && torch::autograd::get_current_graph_task_id() >= 0 &&
         !c10::GradMode::is_enabled() && buffer.sizes() == gradient.sizes() &&
         buffer.is_non_overlapping_and_dense() && buffer.use_count() == kHolders &&
         buffer.storage().use_count() == 1;
}

}  // namespace

InPlaceAccumulation::InPlaceAccumulation()
    : add_(c10::Dispatcher::singleton().findSchemaOrThrow("aten::add", "Tensor")),
      add_in_place_(c10::Dispatcher::singleton().findSchemaOrThrow("aten::add_", "Tensor")) {}

void InPlaceAccumulation::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                              torch::jit::Stack* stack, std::size_t depth) {
  const bool is_add = &op.schema() == &add_.schema() && stack->size() >= 3;
  const std::size_t base = is_add ? stack->size() - 3 : 0;
  const bool in_place = is_add && (*stack)[base].isTensor() && (*stack)[base + 1].isTensor() &&
                        would_be_in_place((*stack)[base].toTensor(), (*stack)[base + 1].toTensor());
  call_next(in_place ? add_in_place_ : op, keys, stack, depth);
}

}  // namespace rematch
