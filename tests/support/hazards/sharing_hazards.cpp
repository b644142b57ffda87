// Tied, shared and frozen parameters, values used by several later layers, and losses of inner
// layers.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "models/scope/scope.h"
#include "tests/support/hazards/hazard.h"
#include "tests/support/networks.h"

namespace rematch::testing::hazards {
namespace {

using LayerAt = std::function<at::Tensor(int layer, const at::Tensor& x)>;

// Three different layers that share one set of parameters.
Model three_layers(const std::vector<at::Tensor>& parameters, const LayerAt& layer) {
  Model model;
  model.input = leaf({kTokens, kDim});
  model.parameters = parameters;
  for (int index = 0; index < 3; ++index) {
    model.layers.push_back([layer, index](const at::Tensor& x) { return layer(index, x); });
  }
  return model;
}

at::Tensor square() { return leaf({kDim, kDim}); }

std::vector<Hazard> parameters() {
  return {
      {"an embedding table tied to the head",
       [] {
         const at::Tensor table = leaf({10, kDim});
         const at::Tensor w = square();
         return three_layers({table, w}, [=](int layer, const at::Tensor& x) {
           if (layer == 0) return x + at::embedding(table, indices(kTokens, 10));
           if (layer == 1) return at::mm(x.sin(), w);
           return at::log_softmax(at::linear(x, table), 1);
         });
       }},
      {"one weight in every layer, transposed in one layer",
       [] {
         const at::Tensor w = square();
         return three_layers({w}, [=](int layer, const at::Tensor& x) {
           return at::tanh(at::mm(x, layer == 1 ? w.t() : w));
         });
       }},
      {"one layer called twice inside each block",
       [] {
         const at::Tensor w = square();
         return three_layers({w}, [=](int, const at::Tensor& x) {
           return at::tanh(at::mm(at::tanh(at::mm(x, w)), w));
         });
       }},
      {"frozen weights with a trained low-rank adapter",
       [] {
         const at::Tensor frozen = square().detach();
         const at::Tensor down = leaf({2, kDim});
         const at::Tensor up = leaf({kDim, 2});
         return three_layers({frozen, down, up}, [=](int, const at::Tensor& x) {
           return at::tanh(at::linear(x, frozen) + at::linear(at::linear(x, down), up) * 2);
         });
       }},
      {"a model of which only the last layer is trained",
       [] {
         const at::Tensor frozen = square().detach();
         const at::Tensor trained = square();
         Model model = three_layers({frozen, trained}, [=](int layer, const at::Tensor& x) {
           return at::sin(at::mm(x.cos(), layer == 2 ? trained : frozen));
         });
         model.input = model.input.detach();
         return model;
       }},
      {"a model of which only a bias is trained",
       [] {
         const at::Tensor frozen = square().detach();
         const at::Tensor bias = leaf({kDim});
         Model model = three_layers({frozen, bias}, [=](int, const at::Tensor& x) {
           return at::sin(at::linear(x, frozen, bias)).cos();
         });
         model.input = model.input.detach();
         return model;
       }},
      {"a parameter that is detached in some of its uses",
       [] {
         const at::Tensor w = square();
         const at::Tensor other = square();
         return three_layers({w, other}, [=](int layer, const at::Tensor& x) {
           return at::sin(at::mm(x, w)) * at::mm(x.detach(), other.detach()) +
                  (layer == 1 ? at::mm(x, other) : x);
         });
       }},
      {"a parameter that no layer uses",
       [] {
         const at::Tensor w = square();
         return three_layers({w, square()},
                             [=](int, const at::Tensor& x) { return at::mm(x.sin(), w).cos(); });
       }},
      {"weight decay in the loss",
       [] {
         const at::Tensor w = square();
         Model model =
             three_layers({w}, [=](int, const at::Tensor& x) { return at::mm(x.sin(), w).cos(); });
         model.loss = [w](const at::Tensor& output) {
           return loss_of(output) + w.pow(2).sum() * 0.1;
         };
         return model;
       }},
  };
}

// Values of one layer that other layers read. The program holds them and clears them before the
// next step.
struct Kept {
  std::vector<at::Tensor> values;
};

std::vector<Hazard> crossings() {
  return {
      {"a skip connection from the first layer to the last",
       [] {
         const at::Tensor w = square();
         const auto kept = std::make_shared<Kept>();
         return three_layers({w}, [=](int layer, const at::Tensor& x) {
           const at::Tensor y = at::mm(x.sin(), w).tanh();
           if (layer == 0) kept->values = {y, y.t()};
           if (layer < 2) return y;
           const at::Tensor skipped = kept->values[0] * y + kept->values[1].t();
           kept->values.clear();
           return skipped;
         });
       }},
      {"a context that every layer reads",
       [] {
         const at::Tensor w = square();
         const at::Tensor context = leaf({4, kDim});
         const auto kept = std::make_shared<Kept>();
         return three_layers({w, context}, [=](int layer, const at::Tensor& x) {
           if (layer == 0) kept->values = {context * 2};
           const at::Tensor keys = at::mm(kept->values[0], w);
           if (layer == 2) kept->values.clear();
           return at::mm(at::softmax(at::mm(x, keys.t()), 1), keys) + x;
         });
       }},
      {"auxiliary losses from the layers",
       [] {
         const at::Tensor w = square();
         const auto kept = std::make_shared<Kept>();
         Model model = three_layers({w}, [=](int layer, const at::Tensor& x) {
           if (layer == 0) kept->values.clear();
           const at::Tensor y = at::mm(x.sin(), w);
           kept->values.push_back(at::logsumexp(y, 1).pow(2).mean());
           return y.cos();
         });
         model.loss = [kept](const at::Tensor& output) {
           at::Tensor loss = loss_of(output);
           for (const at::Tensor& extra : kept->values) loss = loss + extra * 0.1;
           kept->values.clear();
           return loss;
         };
         return model;
       }},
      {"a result of one step that the next step reads",
       [] {
         const at::Tensor w = square();
         const auto memory = std::make_shared<at::Tensor>(at::zeros({kTokens, kDim}));
         return three_layers({w}, [=](int layer, const at::Tensor& x) {
           const at::Tensor y = at::mm(x + *memory, w).tanh();
           if (layer == 2) *memory = y.detach();
           return y;
         });
       }},
      {"a model input that every layer reads",
       [] {
         const at::Tensor w = square();
         const auto kept = std::make_shared<Kept>();
         return three_layers({w}, [=](int layer, const at::Tensor& x) {
           if (layer == 0) kept->values = {x};
           const at::Tensor y = at::mm(x, w).tanh() * kept->values[0].sin();
           if (layer == 2) kept->values.clear();
           return y;
         });
       }},
      {"a reversible pair of streams",
       [] {
         const at::Tensor w = square();
         return three_layers({w}, [=](int, const at::Tensor& x) {
           const auto halves = at::chunk(x, 2, 0);
           const at::Tensor first = halves[0] + at::mm(halves[1], w).sin();
           return at::cat({halves[1] + at::mm(first, w).cos(), first}, 0).tanh();
         });
       }},
      {"a sum that one scope reads before it has a gradient and the next scope writes",
       [] {
         const at::Tensor w = square();
         return three_layers({w}, [=](int, const at::Tensor& x) {
           at::Tensor sum = at::zeros({kTokens, kDim});
           at::Tensor y;
           {
             const Scope core("core");
             const Scope part("reads");
             y = at::mm(x.sin(), w) + sum;
           }
           sum.add_(y);
           return sum.tanh();
         });
       }},
      {"a teacher and a student with the same weights",
       [] {
         const at::Tensor w = square();
         const auto kept = std::make_shared<Kept>();
         Model model = three_layers({w}, [=](int layer, const at::Tensor& x) {
           if (layer == 0) kept->values.clear();
           {
             at::NoGradGuard no_grad;
             kept->values.push_back(at::mm(x, w).tanh());
           }
           return at::mm(x.sin(), w).tanh();
         });
         model.loss = [kept](const at::Tensor& output) {
           const at::Tensor loss = at::mse_loss(output, kept->values.back());
           kept->values.clear();
           return loss + output.sum() * 0.1;
         };
         return model;
       }},
  };
}

}  // namespace

std::vector<Hazard> sharing_hazards() {
  std::vector<Hazard> all = parameters();
  for (Hazard& hazard : crossings()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
