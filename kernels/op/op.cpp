#include "kernels/op/op.h"

#include <ATen/Version.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cctype>
#include <memory>
#include <utility>

#include "kernels/libtorch/versions.h"

namespace rematch::kernels {
namespace {

using torch::autograd::SavedVariable;
using torch::autograd::variable_list;

// The op's node in the autograd graph. An autograd::Function would save tensors only after its
// kernel has run.
class OpNode final : public torch::autograd::Node {
 public:
  OpNode(const std::string& name, const Derivative& derivative)
      : name_(name), formula_(derivative.formula) {
    set_next_edges(
        torch::autograd::collect_next_edges(at::ArrayRef<at::Tensor>(derivative.inputs)));
    for (const at::Tensor& tensor : derivative.kept) {
      kept_.emplace_back(tensor, /*is_output=*/false);
    }
  }

  void save_output(const at::Tensor& output) { outputs_.emplace_back(output, /*is_output=*/true); }

  variable_list apply(variable_list&& gradients) override {
    const bool has_second = gradients.size() > 1 && gradients[1].defined();
    if (!gradients[0].defined() && !has_second) return variable_list(num_outputs());
    Saved saved;
    saved.grad = gradients[0];
    if (has_second) saved.second_grad = gradients[1];
    for (const SavedVariable& tensor : kept_) saved.kept.push_back(tensor.unpack());
    for (const SavedVariable& output : outputs_) {
      saved.outputs.push_back(output.unpack(libtorch::pointer_to(*this)));
    }
    for (std::size_t i = 0; i < num_outputs(); ++i) {
      saved.needed.push_back(task_should_compute_output(i));
    }
    return formula_(saved);
  }

  void release_variables() override {
    for (SavedVariable& tensor : kept_) tensor.reset_data();
    for (SavedVariable& output : outputs_) output.reset_data();
  }

  std::string name() const override { return name_; }

 private:
  std::string name_;
  std::function<std::vector<at::Tensor>(const Saved&)> formula_;
  std::vector<SavedVariable> kept_, outputs_;
};

}  // namespace

std::vector<at::Tensor> differentiate(const std::string& node_name, const Derivative& derivative,
                                      const std::function<std::vector<at::Tensor>()>& forward) {
  decltype(libtorch::make_node<OpNode>(node_name, derivative)) node;
  if (torch::autograd::compute_requires_grad(at::ArrayRef<at::Tensor>(derivative.inputs))) {
    node = libtorch::make_node<OpNode>(node_name, derivative);
  }
  std::vector<at::Tensor> outputs;
  {
    at::AutoDispatchBelowADInplaceOrView below;
    outputs = forward();
  }
  if (node) {
    torch::autograd::set_history(outputs.front(), node);
    if (derivative.second_has_gradient) torch::autograd::set_history(outputs[1], node);
    const std::size_t first_read = derivative.reads_first_output ? 0 : 1;
    for (std::size_t i = first_read; i < outputs.size(); ++i) node->save_output(outputs[i]);
  }
  return outputs;
}

std::string op_name(std::string_view schema) {
  return std::string(schema.substr(0, schema.find('(')));
}

std::string node_name(std::string_view op_name) {
  std::string name = "Rematch";
  bool starts_word = true;
  for (const char letter : op_name) {
    if (letter != '_') {
      name += starts_word ? static_cast<char>(std::toupper(letter)) : letter;
    }
    starts_word = letter == '_';
  }
  return name + "Backward";
}

Capability capability() {
  static const Capability used = [] {
    const std::string name = at::get_cpu_capability();
    if (name == "AVX512") return Capability::kAvx512;
    return name == "AVX2" ? Capability::kAvx2 : Capability::kPortable;
  }();
  return used;
}

Element element_of(const at::Tensor& tensor, const char* op) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return Element::kFloat32;
    case at::kBFloat16:
      return Element::kBFloat16;
    case at::kDouble:
      return Element::kFloat64;
    default:
      TORCH_CHECK(false, "rematch::", op, ": takes float32, bfloat16 or float64, found ",
                  tensor.scalar_type());
  }
}

at::Tensor with_dense_rows(const at::Tensor& tensor) {
  if (tensor.is_meta() || tensor.size(-1) == 1 || tensor.stride(-1) == 1) return tensor;
  return tensor.contiguous();
}

at::ScalarType sum_dtype(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace rematch::kernels
