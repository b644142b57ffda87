// Hooks on tensors, gradients and nodes. During backward, the hooks read values, change gradients
// and draw random numbers.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

using torch::autograd::variable_list;

std::vector<Hazard> tensor_hooks() {
  return {
      hazard("a hook that changes a gradient", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               y.register_hook(
                   [](const at::Tensor& gradient) { return gradient.clamp(-0.1, 0.1); });
               return y.cos();
             }),
      hazard("a hook that reads a value of the layer", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor scale = y.detach().sin();
               const at::Tensor z = y.cos();
               z.register_hook([scale](const at::Tensor& gradient) { return gradient * scale; });
               return z * z;
             }),
      hazard("a hook that draws random numbers", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::dropout(at::mm(x, p[0]), 0.2, true);
               y.register_hook([](const at::Tensor& gradient) {
                 return gradient + at::randn_like(gradient) * 0.01;
               });
               return at::dropout(y.sin(), 0.2, true);
             }),
      hazard("a hook that increments a counter in a buffer", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               const at::Tensor sum = p.buffers[0];
               y.register_hook([sum](const at::Tensor& gradient) {
                 sum.add_(gradient.detach().abs().sum());
                 return gradient;
               });
               return y.cos();
             },
             {.buffers = {{}}}),
      hazard("a hook that writes to its gradient in place", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               y.register_hook([](at::Tensor gradient) { gradient.mul_(2); });
               return y.cos() * 2;
             }),
      hazard("a retained gradient, and layer values that the program keeps", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               y.retain_grad();
               at::Tensor z = y.exp();
               p.watched->insert(p.watched->end(), {y, z, z.t(), y.detach()});
               return y.detach() * 0.5 + z.cos();
             }),
  };
}

// Counts the gradients that pass through a node, and doubles them.
struct DoublesGradients final : torch::autograd::FunctionPostHook {
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    variable_list doubled = outputs;
    for (at::Tensor& gradient : doubled) {
      if (gradient.defined()) gradient = gradient * 2;
    }
    return doubled;
  }
};

struct HalvesGradients final : torch::autograd::FunctionPreHook {
  variable_list operator()(const variable_list& gradients) override {
    variable_list halved = gradients;
    for (at::Tensor& gradient : halved) {
      if (gradient.defined()) gradient = gradient * 0.5;
    }
    return halved;
  }
};

// An optimizer that runs during backward. The optimizer updates each parameter as soon as its
// gradient is complete, and frees the gradient.
struct UpdatesAtOnce final : torch::autograd::PostAccumulateGradHook {
  void operator()(const at::Tensor& parameter) override {
    at::NoGradGuard no_grad;
    at::Tensor(parameter).sub_(parameter.grad(), 0.1);
    parameter.mutable_grad().reset();
  }
};

struct NotesGradients final : torch::autograd::PostAccumulateGradHook {
  explicit NotesGradients(at::Tensor given) : sum(std::move(given)) {}
  void operator()(const at::Tensor& parameter) override {
    at::NoGradGuard no_grad;
    sum.add_(parameter.grad().abs().sum());
    parameter.mutable_grad().mul_(0.5);
  }
  at::Tensor sum;
};

Model updated_in_backward(const Layer& layer) {
  Model model = layers_of(kSquare, layer);
  for (const at::Tensor& parameter : model.parameters) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<UpdatesAtOnce>());
  }
  model.update = [input = model.input] { input.mutable_grad().reset(); };
  return model;
}

std::vector<Hazard> node_hooks() {
  return {
      hazard("hooks that run before and after an autograd node", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               y.grad_fn()->add_post_hook(std::make_unique<DoublesGradients>());
               const at::Tensor z = y.exp();
               z.grad_fn()->add_pre_hook(std::make_unique<HalvesGradients>());
               return z.cos();
             }),
      {"hooks that record and scale the gradients of parameters",
       [] {
         Model model = layers_of(kSquare, [](const at::Tensor& x, const Parts& p) {
           return at::mm(at::mm(x, p[0]).sin(), p[0]);
         });
         model.buffers.push_back(at::zeros({}));
         for (const at::Tensor& parameter : model.parameters) {
           torch::autograd::impl::set_post_acc_grad_hooks(
               parameter, std::make_unique<NotesGradients>(model.buffers.back()));
         }
         return model;
       }},
      {"an optimizer that runs inside backward",
       [] {
         return updated_in_backward([](const at::Tensor& x, const Parts& p) {
           return at::mm(at::mm(x, p[0]).sin(), p[0]).cos();
         });
       }},
  };
}

}  // namespace

std::vector<Hazard> hook_hazards() {
  std::vector<Hazard> all = tensor_hooks();
  for (Hazard& hazard : node_hooks()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
