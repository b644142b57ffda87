#include "tests/models/op_stream.h"

#include <sstream>

namespace rematch {
namespace {

void describe(const at::Tensor& tensor, std::ostringstream& text) {
  if (!tensor.defined()) {
    text << "undefined ";
    return;
  }
  text << tensor.scalar_type() << tensor.sizes() << tensor.strides() << " ";
}

}  // namespace

void OpStream::run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack, std::size_t depth) {
  call_next(op, keys, stack, depth);
  std::ostringstream outputs;
  for (std::size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i) {
    const c10::IValue& value = (*stack)[i];
    if (value.isTensor()) describe(value.toTensor(), outputs);
    if (!value.isTensorList()) continue;
    for (const at::Tensor& tensor : value.toTensorVector()) describe(tensor, outputs);
  }
  const std::string& overload = op.schema().overload_name();
  ops_.push_back({op.schema().name() + (overload.empty() ? "" : "." + overload), outputs.str()});
}

std::vector<std::string> OpStream::names() const {
  std::vector<std::string> names;
  for (const OpSeen& op : ops_) names.push_back(op.name);
  return names;
}

}  // namespace rematch
