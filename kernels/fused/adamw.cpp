#include "kernels/fused/adamw.h"

#include <ATen/core/grad_mode.h>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

using Tensors = at::TensorList;

struct AdamWOp {
  static constexpr auto kSchema =
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] values, Tensor(c!)[] "
      "first_moments, Tensor(d!)[] second_moments, Tensor[] steps, float learning_rate, float "
      "beta1, float beta2, float epsilon, float weight_decay) -> ()";

  static void run(Tensors parameters, Tensors gradients, Tensors values, Tensors first_moments,
                  Tensors second_moments, Tensors steps, double learning_rate, double beta1,
                  double beta2, double epsilon, double weight_decay) {
    TORCH_CHECK(!at::GradMode::is_enabled(),
                "rematch::adamw_ is not differentiable; call it under at::NoGradGuard");
    for (const Tensors list : {gradients, values, first_moments, second_moments, steps}) {
      TORCH_CHECK(list.size() == parameters.size(), "rematch::adamw_: all lists must have ",
                  parameters.size(), " tensors, as `parameters`; found ", list.size());
    }
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
      AdamW table = {
          .gradient_element = dtype == at::kFloat ? Element::kFloat32 : Element::kBFloat16,
          .num = 0,
          .learning_rate = static_cast<float>(learning_rate),
          .beta1 = static_cast<float>(beta1),
          .beta2 = static_cast<float>(beta2),
          .epsilon = static_cast<float>(epsilon),
          .weight_decay = static_cast<float>(weight_decay)};
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const at::Tensor& gradient = gradients[i];
        check(parameters[i], gradient, values[i], first_moments[i], second_moments[i], steps[i]);
        if (gradient.scalar_type() != dtype || gradient.numel() == 0 || gradient.is_meta()) {
          continue;
        }
        const bool has_master = parameters[i].scalar_type() == at::kBFloat16;
        table.tensors[table.num++] = {
            .size = gradient.numel(),
            .gradient = gradient.const_data_ptr(),
            .value = values[i].mutable_data_ptr<float>(),
            .first_moment = first_moments[i].mutable_data_ptr<float>(),
            .second_moment = second_moments[i].mutable_data_ptr<float>(),
            .parameter = has_master ? parameters[i].mutable_data_ptr() : nullptr,
            .step = steps[i].const_data_ptr<float>()};
        if (table.num == kMaxAdamWTensors) launch_table(gradient.device(), table);
      }
      if (table.num > 0) launch_table(parameters[0].device(), table);
    }
    for (const Tensors changed : {parameters, values, first_moments, second_moments}) {
      for (const at::Tensor& tensor : changed) tensor.unsafeGetTensorImpl()->bump_version();
    }
  }

 private:
  static void launch_table(at::Device device, AdamW& table) {
    launch(device, table);
    table.num = 0;
  }

  static void check(const at::Tensor& parameter, const at::Tensor& gradient,
                    const at::Tensor& value, const at::Tensor& first, const at::Tensor& second,
                    const at::Tensor& step) {
    const auto is_state = [&](const at::Tensor& tensor) {
      return tensor.scalar_type() == at::kFloat && tensor.sizes() == parameter.sizes() &&
             tensor.is_contiguous() && tensor.device() == parameter.device();
    };
    TORCH_CHECK(is_state(value) && is_state(first) && is_state(second),
                "rematch::adamw_: values and moments must be contiguous float32 tensors of the "
                "parameter's sizes ",
                parameter.sizes(), " on its device");
    TORCH_CHECK(step.scalar_type() == at::kFloat && step.numel() == 1 &&
                    step.device() == parameter.device(),
                "rematch::adamw_: a step must be one float32 number on the parameter's device");
    TORCH_CHECK(
        parameter.scalar_type() == at::kBFloat16 ? parameter.is_contiguous()
                                                 : value.is_alias_of(parameter),
        "rematch::adamw_: a parameter must be contiguous bfloat16, or be its own value; found ",
        parameter.scalar_type());
    TORCH_CHECK((gradient.scalar_type() == at::kFloat || gradient.scalar_type() == at::kBFloat16) &&
                    gradient.sizes() == parameter.sizes() && gradient.is_contiguous() &&
                    gradient.device() == parameter.device(),
                "rematch::adamw_: a gradient must be contiguous, float32 or bfloat16, of the "
                "parameter's sizes ",
                parameter.sizes(), "; found ", gradient.scalar_type(), " ", gradient.sizes());
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  library.def(AdamWOp::kSchema);
  for (const auto key : {c10::DispatchKey::CPU, c10::DispatchKey::Meta, c10::DispatchKey::CUDA}) {
    library.impl("adamw_", torch::dispatch(key, TORCH_FN(AdamWOp::run)));
  }
  library.impl("adamw_",
               torch::dispatch(c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough()));
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

void adamw(const AdamWTensors& tensors, const AdamWSettings& settings) {
  if (tensors.parameters.empty()) return;
  static const auto op =
      kernels::handle<decltype(kernels::AdamWOp::run)>(kernels::AdamWOp::kSchema);
  op.call(tensors.parameters, tensors.gradients, tensors.values, tensors.first_moments,
          tensors.second_moments, tensors.steps, settings.learning_rate, settings.beta1,
          settings.beta2, settings.epsilon, settings.weight_decay);
}

}  // namespace rematch::fused
