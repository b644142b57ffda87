// Custom autograd functions that differ in how they save for backward, and in what backward does.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "tests/support/closure_checkpoint.h"
#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::Variable;
using torch::autograd::variable_list;

Hazard applied(const std::string& name, const std::function<at::Tensor(const at::Tensor&)>& op,
               const Options& options = {}) {
  return hazard(
      name, kSquare, [op](const at::Tensor& x, const Parts& p) { return op(at::mm(x, p[0])); },
      options);
}

struct SavesItsResult : Function<SavesItsResult> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor y = at::exp(x);
    context->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

struct SavesWhatItMadeBetween : Function<SavesWhatItMadeBetween> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor between = at::sin(x) + 1;
    context->save_for_backward({between, x.sum()});
    return between * between;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    return {gradients[0] * saved[0] * 2 + saved[1] * 0.01};
  }
};

struct KeepsPastAutograd : Function<KeepsPastAutograd> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, double scale) {
    const at::Tensor factor = at::cos(x);
    context->saved_data["factor"] = factor;
    context->saved_data["scale"] = scale;
    return at::sin(x) * scale;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->saved_data["factor"].toTensor() *
                context->saved_data["scale"].toDouble(),
            Variable()};
  }
};

struct TwoResults : Function<TwoResults> {
  static variable_list forward(AutogradContext* context, const at::Tensor& x) {
    const at::Tensor index = at::argsort(x, std::int64_t{1});
    context->mark_non_differentiable({index});
    context->set_materialize_grads(false);
    context->save_for_backward({x});
    return {x * x, index, at::sin(x)};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    at::Tensor result = at::zeros_like(x);
    if (gradients[0].defined()) result = result + gradients[0] * 2 * x;
    if (gradients[2].defined()) result = result + gradients[2] * at::cos(x);
    return {result};
  }
};

struct StraightThrough : Function<StraightThrough> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return at::round(x * 4) / 4; }
  static variable_list backward(AutogradContext*, variable_list gradients) { return gradients; }
};

struct Reversed : Function<Reversed> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.view_as(x); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0].neg()};
  }
};

struct WritesItsInput : Function<WritesItsInput> {
  static variable_list forward(AutogradContext* context, at::Tensor x, const at::Tensor& y) {
    x.mul_(y);
    context->mark_dirty({x});
    context->save_for_backward({y});
    return {x, x.sum(1)};
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor y = context->get_saved_variables()[0];
    return {gradients[0] * y + gradients[1].unsqueeze(1) * y, gradients[0] * 0.5};
  }
};

// A library kernel that writes to its argument through a pointer and bumps the argument's version.
struct ScalesByPointer : Function<ScalesByPointer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    float* const data = x.mutable_data_ptr<float>();
    std::transform(data, data + x.numel(), data, [](float value) { return value * 0.5F; });
    context->mark_dirty({x});
    context->save_for_backward({x});
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * 0.5 + context->get_saved_variables()[0] * 0.01};
  }
};

struct Outer : Function<Outer> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return SavesItsResult::apply(x * 0.5) + SavesWhatItMadeBetween::apply(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {SavesItsResult::apply(gradients[0] * 0.1) * context->get_saved_variables()[0]};
  }
};

// A checkpoint that a user might write: its backward runs forward again, and then calls backward on
// the result.
struct RunsAgain : Function<RunsAgain> {
  static at::Tensor body(const at::Tensor& x, const at::Tensor& w) {
    return at::tanh(at::mm(at::mm(x, w).sin(), w));
  }
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w) {
    context->save_for_backward({x, w});
    return body(x, w);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    at::AutoGradMode grad(true);
    const at::Tensor x = saved[0].detach().requires_grad_();
    const at::Tensor w = saved[1].detach().requires_grad_();
    return torch::autograd::grad({body(x, w)}, {x, w}, {gradients[0]});
  }
};

std::vector<Hazard> functions() {
  return {
      applied("a custom function that saves its result",
              [](const at::Tensor& y) { return SavesItsResult::apply(y).sin(); }),
      applied("a custom function that saves an intermediate value",
              [](const at::Tensor& y) { return SavesWhatItMadeBetween::apply(y).cos(); }),
      applied("a custom function that keeps tensors without save_for_backward",
              [](const at::Tensor& y) { return KeepsPastAutograd::apply(y.sin(), 0.7).cos(); }),
      applied("a custom function with several results, one without a gradient",
              [](const at::Tensor& y) {
                const auto results = TwoResults::apply(y);
                return results[2] * at::gather(y, 1, results[1]);
              }),
      applied("a custom function with several results, of which one is used",
              [](const at::Tensor& y) { return TwoResults::apply(y.sin())[0]; }),
      applied("a rounding with a straight-through gradient",
              [](const at::Tensor& y) { return StraightThrough::apply(y.sin()) * y; }),
      applied("a custom function that negates the gradient of a view",
              [](const at::Tensor& y) { return Reversed::apply(y.sin()).cos(); }),
      applied("a custom function that writes to its input and returns it",
              [](const at::Tensor& y) {
                const auto results = WritesItsInput::apply(y * 1.0, y.detach().sin());
                return results[0].cos() + results[1].unsqueeze(1);
              }),
      applied("a custom function that writes to its input through a pointer",
              [](const at::Tensor& y) {
                const at::Tensor z = y * 1.0;
                const at::Tensor before = z + 1.0;
                const at::Tensor row = z.narrow(0, 1, 1);
                const at::Tensor written = ScalesByPointer::apply(z);
                return before.cos() * (written + row);
              }),
      applied("a custom function that writes to its input through a pointer twice",
              [](const at::Tensor& y) {
                at::Tensor z = at::mm(y, y.t()) * 1.0;
                z = ScalesByPointer::apply(z) + 1.0;
                z.mul_(0.5);
                return at::mm(ScalesByPointer::apply(z), y).sin();
              }),
      applied("custom functions that call others in forward and in backward",
              [](const at::Tensor& y) { return Outer::apply(y).sin(); }),
      hazard("a custom function that runs its forward again in backward", kSquare,
             [](const at::Tensor& x, const Parts& p) { return RunsAgain::apply(x.sin(), p[0]); }),
      hazard("a user's own checkpoint function inside a region", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor w = p[0];
               return closure_checkpoint(
                   [w](const at::Tensor& y) { return at::mm(at::mm(y, w).sin(), w).tanh(); },
                   x.cos(), {});
             }),
      hazard("a custom function whose inputs need no gradient", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               return at::mm(x, p[0]) * SavesItsResult::apply(x.detach());
             }),
  };
}

// Gradients computed inside forward, some of which take part in the loss.
std::vector<Hazard> inner_gradients() {
  return {
      hazard("a layer that returns an inner gradient", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor energy = at::tanh(at::mm(x, p[0])).pow(2).sum();
               return torch::autograd::grad({energy}, {x}, {}, /*retain_graph=*/true,
                                            /*create_graph=*/true)[0];
             }),
      hazard("a penalty on an inner gradient", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor point = x.detach().requires_grad_();
               const at::Tensor value = at::mm(point, p[0]).sin();
               const at::Tensor slope =
                   torch::autograd::grad({value.sum()}, {point}, {}, true, true)[0];
               return at::mm(x, p[0]) + slope.pow(2);
             }),
      {"a layer that computes gradients of earlier layers",
       [] {
         Model model = layers_of(kSquare, [](const at::Tensor& x, const Parts& p) {
           return at::mm(x.sin(), p[0]).tanh();
         });
         const auto first = model.layers[2];
         model.layers[2] = [first, input = model.input](const at::Tensor& x) {
           const at::Tensor slope =
               torch::autograd::grad({x.pow(2).sum()}, {input}, {}, true, true)[0];
           return first(x) + slope * 0.1;
         };
         return model;
       }},
      hazard("unrolled inner gradient descent", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor fast = p[0] * 1.0;
               for (int step = 0; step < 2; ++step) {
                 const at::Tensor error = (at::mm(x, fast).sin() - x).pow(2).mean();
                 fast = fast - torch::autograd::grad({error}, {fast}, {}, true, true)[0] * 0.1;
               }
               return at::mm(x, fast);
             }),
      hazard("a result scaled by an inner gradient without a graph", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor point = x.detach().requires_grad_();
               const at::Tensor weight = p[0].detach();
               const at::Tensor slope =
                   torch::autograd::grad({at::mm(point, weight).sin().sum()}, {point})[0];
               return at::mm(x, p[0]) * slope;
             }),
  };
}

}  // namespace

std::vector<Hazard> function_hazards() {
  std::vector<Hazard> all = functions();
  for (Hazard& hazard : inner_gradients()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
