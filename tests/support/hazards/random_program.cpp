#include "tests/support/hazards/random_program.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <random>

#include "models/scope/scope.h"

namespace rematch::testing::hazards {
namespace {

constexpr int kLongest = 14;  // instructions

struct SavesBoth : torch::autograd::Function<SavesBoth> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::Tensor result = at::tanh(x);
    context->save_for_backward({x, result});
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    return {gradients[0] * (1 - saved[1] * saved[1]) + saved[0] * 0.001};
  }
};

// A value of the program, of shape [tokens, dim]. The program writes only to values it owns.
struct Value {
  at::Tensor tensor;
  bool own = true;
};

// Runs randomly chosen instructions. The choice depends only on the seed and the layer, so every
// run executes the same program.
class Program {
 public:
  Program(std::uint32_t seed, const at::Tensor& x, const Parts& parts)
      : dice_(seed * 31U + static_cast<std::uint32_t>(parts.layer % 2)), parts_(parts) {
    values_.push_back({x, false});
    add(at::mm(x, parts[0]));
  }

  at::Tensor run() {
    const int length = 4 + below(kLongest - 3);
    for (int i = 0; i < length; ++i) {
      if (below(5) == 0) {
        const Scope scope("part");
        step();
      }
      step();
    }
    at::Tensor sum = values_.back().tensor;
    for (int i = 0; i < 3; ++i) sum = sum + pick().tensor * 0.3;
    return sum;
  }

 private:
  int below(int limit) { return static_cast<int>(dice_() % static_cast<std::uint32_t>(limit)); }
  const Value& pick() { return values_[static_cast<std::size_t>(below(size()))]; }
  int size() const { return static_cast<int>(values_.size()); }
  void add(const at::Tensor& tensor) { values_.push_back({tensor, true}); }

  // Picks a value at random. Returns an undefined tensor if the program must not write to the
  // picked value.
  at::Tensor pick_own() {
    const Value& value = pick();
    return value.own ? value.tensor : at::Tensor();
  }

  void step() {
    switch (below(8)) {
      case 0:
      case 1:
        return compute();
      case 2:
        return write();
      case 3:
        return write_through_view();
      case 4:
        return take_view();
      case 5:
        return draw();
      case 6:
        return leave_autograd();
      default:
        return rearrange();
    }
  }

  void compute() {
    const at::Tensor a = pick().tensor;
    const at::Tensor b = pick().tensor;
    switch (below(10)) {
      case 0:
        return add(at::mm(a, parts_[0]));
      case 1:
        return add(at::sin(a));
      case 2:
        return add(at::sigmoid(a) * b);
      case 3:
        return add(at::tanh(a));
      case 4:
        return add(a * b * 0.5);
      case 5:
        return add(at::maximum(a, b));
      case 6:
        return add(at::gelu(a) - b);
      case 7:
        return add(at::layer_norm(a, {kDim}));
      case 8:
        return add(at::softmax(a, below(2)));
      default:
        return add(SavesBoth::apply(a));
    }
  }

  void write() {
    const at::Tensor a = pick_own();
    const at::Tensor b = pick().tensor;
    if (!a.defined()) return;
    switch (below(7)) {
      case 0:
        return void(a.mul_(0.7));
      case 1:
        return void(a.add_(b, 0.5));
      case 2:
        return void(a.tanh_());
      case 3:
        return void(at::relu_(const_cast<at::Tensor&>(a)));
      case 4:
        return void(a.copy_(b));
      case 5:
        return void(a.masked_fill_(b.gt(0.2), 0.1));
      default:
        return void(a.addcmul_(b, b, 0.3));
    }
  }

  void write_through_view() {
    const at::Tensor a = pick_own();
    const at::Tensor b = pick().tensor;
    if (!a.defined()) return;
    const std::int64_t first = below(4);
    switch (below(5)) {
      case 0:
        return void(a.slice(1, first, first + 3).mul_(0.6));
      case 1:
        return void(a.slice(0, 1, 4).copy_(b.slice(0, 2, 5)));
      case 2:
        return void(a.select(0, first).sigmoid_());
      case 3:
        return void(a.t().slice(0, 2, 5).add_(0.2));
      default:
        return void(a.diagonal().fill_(0.3));
    }
  }

  void take_view() {
    const Value from = pick();
    switch (below(5)) {
      case 0:
        return values_.push_back({from.tensor.view({kTokens, kDim}), from.own});
      case 1:
        return values_.push_back({from.tensor.t().t(), from.own});
      case 2:
        return values_.push_back({from.tensor.slice(0, 0, kTokens), from.own});
      case 3:
        return add(from.tensor.select(0, below(6)).expand({kTokens, kDim}) * 1.0);
      default:
        return add(from.tensor.slice(1, 2, 6).repeat({1, 2}));
    }
  }

  void draw() {
    const at::Tensor a = pick().tensor;
    switch (below(4)) {
      case 0:
        return add(at::dropout(a, 0.3, true));
      case 1:
        return add(a + at::randn_like(a) * 0.1);
      case 2:
        return add(a * at::empty_like(a).bernoulli_(0.6, parts_.generator));
      default:
        return add(at::rand({kTokens, 1}) * a);
    }
  }

  void leave_autograd() {
    const at::Tensor a = pick().tensor;
    at::Tensor buffer = parts_.buffers[0];
    switch (below(5)) {
      case 0:
        return add(a.detach() * 0.5);
      case 1: {
        at::NoGradGuard no_grad;
        at::Tensor b = at::sin(a);
        b.mul_(0.5);
        return add(b);
      }
      case 2:
        return void(buffer.mul_(0.5).add_(a.detach()));
      case 3:
        return parts_.watched->push_back(a.detach().clone());
      default: {
        at::Tensor b = at::empty_like(a);
        at::NoGradGuard no_grad;
        at::cos_out(b, a);
        return add(b);
      }
    }
  }

  void rearrange() {
    const at::Tensor a = pick().tensor;
    switch (below(6)) {
      case 0: {
        const auto halves = at::chunk(a, 2, 1);
        return add(at::cat({halves[1], halves[0].sin()}, 1));
      }
      case 1:
        return add(std::get<0>(at::sort(a, 1)));
      case 2:
        return add(at::zeros_like(a).index_add_(0, indices(kTokens, 4), a));
      case 3:
        return add(a.clone());
      case 4:
        return add(a.cos() * (a.sum().item<double>() > 0 ? 0.5 : 0.25));
      default:  // freed at once, so that a later tensor may reuse its address
        if (size() > 3) values_.erase(values_.begin() + 1 + below(size() - 2));
        return;
    }
  }

  std::mt19937 dice_;
  const Parts& parts_;
  std::vector<Value> values_;
};

}  // namespace

Hazard random_program(std::uint32_t seed) {
  return hazard(
      "random program " + std::to_string(seed), {{kDim, kDim}},
      [seed](const at::Tensor& x, const Parts& parts) { return Program(seed, x, parts).run(); },
      {.buffers = {{kTokens, kDim}}});
}

Hazard alternating(const Hazard& even, const Hazard& odd) {
  return {even.name + " and " + odd.name, [even, odd] {
            Model model = even.make();
            const Model other = odd.make();
            const auto add = [](auto& to, const auto& from) {
              to.insert(to.end(), from.begin(), from.end());
            };
            add(model.parameters, other.parameters);
            add(model.buffers, other.buffers);
            add(model.generators, other.generators);
            const auto step = model.step;
            for (std::size_t i = 0; i < model.layers.size(); ++i) {
              const auto of_even = model.layers[i];
              const auto of_odd = other.layers[i];
              model.layers[i] = [step, of_even, of_odd](const at::Tensor& x) {
                return *step % 2 == 0 ? of_even(x) : of_odd(x);
              };
            }
            return model;
          }};
}

}  // namespace rematch::testing::hazards
