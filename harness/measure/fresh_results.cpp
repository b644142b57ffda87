#include "harness/measure/fresh_results.h"

namespace rematch {
namespace {

std::vector<bool> fresh_results_of(const c10::FunctionSchema& schema) {
  std::vector<bool> fresh;
  for (const c10::Argument& result : schema.returns()) {
    fresh.push_back(result.alias_info() == nullptr);
  }
  return fresh;
}

}  // namespace

void FreshResults::visit(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                         const std::function<void(const at::Tensor&)>& visit) {
  std::vector<bool>& fresh = by_schema_[&op.schema()];
  if (fresh.empty()) fresh = fresh_results_of(op.schema());
  const auto visit_one = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage()) visit(tensor);
  };
  for (std::size_t index = 0; index < fresh.size(); ++index) {
    if (!fresh[index]) continue;
    const c10::IValue& result = stack[stack.size() - fresh.size() + index];
    if (result.isTensor()) {
      visit_one(result.toTensor());
    } else if (result.isTensorList()) {
      for (const at::Tensor& tensor : result.toTensorVector()) visit_one(tensor);
    }
  }
}

}  // namespace rematch
