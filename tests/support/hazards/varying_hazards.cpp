// Models whose steps run different ops.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <random>
#include <stdexcept>
#include <utility>

#include "models/scope/scope.h"
#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

// A call of one layer in one step. `dice` is seeded from the step and the layer, so every run makes
// the same choices.
struct Turn {
  int step = 0;
  std::mt19937 dice;
  int below(int limit) { return static_cast<int>(dice() % static_cast<std::uint32_t>(limit)); }
  // Returns false in step 0, and true in about half of the later steps.
  bool varies() { return step > 0 && below(2) == 0; }
};

using VaryingLayer = std::function<at::Tensor(const at::Tensor& x, const Parts& p, Turn& turn)>;

struct Variation {
  std::string name;
  VaryingLayer layer;
  std::vector<Shape> weights = kSquare;
  std::vector<Shape> buffers = {};
};

at::Tensor product(const at::Tensor& x, const Parts& p) { return at::mm(x, p[0]); }

std::vector<Variation> added() {
  return {
      {"an op added at the start",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = turn.varies() ? x.exp() * 0.1 : x;
         return product(y, p).sin().tanh();
       }},
      {"an op added in the middle",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p).sin();
         if (turn.varies()) y = y.sigmoid();
         return product(y, p).tanh();
       }},
      {"an op added at the end",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         return turn.varies() ? y.tanh() : y;
       }},
      {"an added op that the plan runs later",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (turn.varies()) y = product(y, p);
         return product(y.sin(), p).cos();
       }},
      {"more added ops than the alignment window holds",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         const int count = turn.varies() ? 90 : 0;
         for (int i = 0; i < count; ++i) y = y.sin();
         return product(y, p).tanh();
       }},
      {"a mask that only some batches have",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor scores = at::mm(product(x, p), x.t());
         if (turn.varies()) scores = scores.masked_fill(scores.gt(0.5), -5.0);
         return at::mm(scores.softmax(-1), x);
       }},
      {"a loop whose number of iterations varies",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = x;
         const int length = turn.step == 0 ? 3 : turn.below(6);
         for (int i = 0; i < length; ++i) y = product(y, p).tanh();
         return y * 1.0;
       }},
      {"a value that some steps use twice",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         at::Tensor z = y.cos();
         if (turn.varies()) z = z * y;
         return z.tanh();
       }},
      {"a log message that reads a value in some steps",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         if (turn.varies()) (void)y.detach().abs().max().item<float>();
         return y.cos();
       }},
  };
}

std::vector<Variation> left_out() {
  return {
      {"an op missing at the start",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         return product(turn.varies() ? x : x.sin(), p).tanh();
       }},
      {"an op missing in the middle",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (!turn.varies()) y = y.sin();
         return product(y, p).tanh();
       }},
      {"an op missing at the end",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         return turn.varies() ? y : y.tanh();
       }},
      {"a missing branch of many ops",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (!turn.varies()) {
           for (int i = 0; i < 20; ++i) y = y.sin();
         }
         return product(y, p).tanh();
       }},
      {"a region without ops", [](const at::Tensor& x, const Parts& p,
                                  Turn& turn) { return turn.varies() ? x : product(x, p).sin(); }},
      {"an early return",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         if (turn.varies()) return y;
         return product(y, p).tanh();
       }},
      {"an unused weight",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         return turn.varies() ? y : y * p[1];
       },
       {{kDim, kDim}, {kDim}}},
      {"an exception that the layer catches",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p).sin();
         try {
           const at::Tensor z = y.cos();
           if (turn.varies()) throw std::runtime_error("no");
           y = z.tanh();
         } catch (const std::runtime_error&) {
           y = y.exp();
         }
         return product(y, p);
       }},
      {"an op that fails in some steps and is replaced",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         try {
           return at::mm(y, turn.varies() ? p[0].slice(0, 0, 3) : p[0]).cos();
         } catch (const c10::Error&) {
           return product(y, p).tanh();
         }
       }},
  };
}

std::vector<Variation> exchanged() {
  return {
      {"two ops that some steps run in reverse order",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p);
         return product(turn.varies() ? y.cos().sin() : y.sin().cos(), p);
       }},
      {"another activation",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p);
         const int which = turn.step == 0 ? 0 : turn.below(4);
         if (which == 0) return product(y.tanh(), p);
         if (which == 1) return product(y.sigmoid(), p);
         if (which == 2) return product(at::gelu(y), p);
         return product(at::relu(y), p);
       }},
      {"a step that takes the other of two branches",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         if (turn.varies()) return at::layer_norm(product(x.exp() * 0.1, p), {kDim}).sin();
         return product(at::softmax(product(x, p), -1), p).tanh();
       }},
      {"an op that is in place in some steps",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (turn.varies()) {
           y.mul_(0.5).add_(0.1);
         } else {
           y = y * 0.5 + 0.1;
         }
         return y.sin();
       }},
      {"a view or a copy",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).t();
         return (turn.varies() ? y.contiguous() : y).sin().t().tanh();
       }},
      {"a varying number of in-place writes",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p).sin();
         at::Tensor z = y * 2;
         const int count = turn.step == 0 ? 1 : turn.below(4);
         for (int i = 0; i < count; ++i) z.mul_(0.8).add_(0.1);
         return z + y;
       }},
      {"a value that some steps fill and others compute",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p);
         at::Tensor z = turn.varies() ? at::empty_like(y).copy_(y.sin()) : y.sin();
         return z * y;
       }},
  };
}

std::vector<Variation> of_other_types() {
  return {
      {"another dtype",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         if (!turn.varies()) return product(x, p).sin();
         return at::mm(x.to(at::kDouble), p[0].to(at::kDouble)).sin().to(at::kFloat);
       }},
      {"autocast that only some steps enable",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const bool before = at::autocast::is_autocast_enabled(at::kCPU);
         at::autocast::set_autocast_enabled(at::kCPU, turn.varies());
         const at::Tensor y = at::mm(x, p[0]);
         const at::Tensor z = at::mm(y, p[0]).to(at::kFloat);
         at::autocast::set_autocast_enabled(at::kCPU, before);
         at::autocast::clear_cache();
         return z.sin();
       }},
      {"fewer rows",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = turn.varies() ? x.slice(0, 0, 1 + turn.below(4)) : x.slice(0, 0, 6);
         const at::Tensor z = product(y, p).sin();
         return x + z.mean();
       }},
      {"rows by data",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         const int experts = turn.step == 0 ? 2 : 1 + turn.below(4);
         at::Tensor sum = y * 0.1;
         for (int expert = 0; expert < experts; ++expert) {
           const at::Tensor chosen = at::nonzero(y.select(1, expert).gt(0)).squeeze(1);
           if (chosen.size(0) == 0) continue;
           const at::Tensor part = product(y.index_select(0, chosen), p).tanh();
           sum = sum.index_add(0, chosen, part);
         }
         return sum;
       }},
      {"a table that grows",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (turn.step % 4 == 0) {
           const at::Tensor angles = at::arange(0, kDim, at::TensorOptions(at::kFloat));
           y = y * angles.cos();
         }
         return y.sin();
       }},
      {"a weight cast once for two steps",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor w = turn.step % 2 == 0 ? (p[0] * 1.0).sin() : p[0];
         return at::mm(x, w).tanh();
       }},
  };
}

std::vector<Variation> with_effects() {
  return {
      {"a varying number of random draws",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         const int count = turn.step == 0 ? 1 : turn.below(4);
         for (int i = 0; i < count; ++i) y = at::dropout(y, 0.3, true);
         return y.sin();
       }},
      {"dropout that only some steps apply",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         return at::dropout(product(x, p).sin(), 0.4, !turn.varies()).tanh();
       }},
      {"a counter that some steps write",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p);
         if (turn.varies()) at::Tensor(p.buffers[0]).add_(1);
         return y.sin() * p.buffers[0].detach().clone();
       },
       kSquare,
       {{kDim}}},
      {"batch norm that switches to evaluation mode",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const bool trains = !turn.varies();
         return at::batch_norm(product(x, p), {}, {}, p.buffers[0], p.buffers[1], trains, 0.1, 1e-5,
                               false)
             .sin();
       },
       kSquare,
       {{kDim}, {kDim}}},
      {"a section without grad mode in some steps",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p);
         const at::AutoGradMode mode(!turn.varies());
         const at::Tensor gate = product(y, p).sigmoid();
         const at::AutoGradMode on(true);
         return y.sin() * gate;
       }},
      {"a backward inside forward",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         if (!turn.varies()) return y.tanh();
         const at::Tensor inner = x.detach().requires_grad_();
         at::sum(at::mm(inner, p[0].detach()).sin()).backward();
         return y + inner.grad() * 0.1;
       }},
      {"a hook on a value",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         const at::Tensor y = product(x, p).sin();
         if (turn.varies()) {
           y.register_hook([](const at::Tensor& gradient) { return gradient * 0.5; });
         }
         return y.tanh();
       }},
      {"a varying number of scopes",
       [](const at::Tensor& x, const Parts& p, Turn& turn) {
         at::Tensor y = product(x, p);
         if (turn.varies()) {
           const Scope scope("extra");
           y = y.sigmoid();
         }
         const Scope scope("part");
         return y.sin();
       }},
  };
}

Model model_of_variation(const Variation& variation, bool bare) {
  Model model;
  const std::shared_ptr<int> step = model.step;
  const Layer layer = [variation, step](const at::Tensor& x, const Parts& p) {
    Turn turn{*step, std::mt19937(static_cast<std::uint32_t>(*step * 131 + p.layer * 7919 + 17))};
    return variation.layer(x, p, turn);
  };
  model = layers_of(variation.weights, layer,
                    {.buffers = variation.buffers, .layers = 4, .bare = bare});
  model.step = step;
  return model;
}

// Layers left out, run twice or reordered.
std::vector<std::pair<std::string, std::vector<std::vector<std::size_t>>>> orders() {
  return {
      {"a missing first layer", {{0, 1, 2, 3}, {1, 2, 3}}},
      {"a missing last layer", {{0, 1, 2, 3}, {0, 1, 2}}},
      {"a missing middle layer", {{0, 1, 2, 3}, {0, 2, 3}, {0, 1, 3}}},
      {"steps that run only every second layer", {{0, 1, 2, 3}, {0, 2}, {1, 3}}},
      {"a layer run twice", {{0, 1, 2, 3}, {0, 1, 1, 2, 3}, {0, 0, 1, 2, 3}, {0, 1, 2, 3, 3}}},
      {"steps that run all layers twice", {{0, 1, 2, 3}, {0, 1, 2, 3, 0, 1, 2, 3}}},
      {"layers in a different order", {{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 0, 3, 2}}},
      {"a step with a single layer", {{0, 1, 2, 3}, {2}, {0}, {3}}},
      {"layers that the first step skips", {{0, 2}, {0, 1, 2, 3}, {1, 3}}},
  };
}

}  // namespace

std::vector<Hazard> varying_hazards() {
  std::vector<Hazard> hazards;
  for (const auto& theme : {added, left_out, exchanged, of_other_types, with_effects}) {
    for (const Variation& variation : theme()) {
      for (const bool bare : {false, true}) {
        hazards.push_back({variation.name + (bare ? "" : ", before a tail"),
                           [variation, bare] { return model_of_variation(variation, bare); }});
      }
    }
  }
  for (const auto& [name, steps] : orders()) {
    hazards.push_back({name, [steps = steps] {
                         Model model = layers_of(kSquare,
                                                 [](const at::Tensor& x, const Parts& p) {
                                                   return at::mm(x, p[0]).sin() + x;
                                                 },
                                                 {.layers = 4, .bare = true});
                         model.order = [steps](int step) {
                           return steps[static_cast<std::size_t>(step) % steps.size()];
                         };
                         return model;
                       }});
  }
  return hazards;
}

}  // namespace rematch::testing::hazards
