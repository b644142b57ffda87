// Sections without a gradient, in inference mode, below autograd, and with dual numbers.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/autograd/autograd.h>

#include "models/scope/scope.h"
#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

std::vector<Hazard> without_gradients() {
  return {
      hazard("a section without grad mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor gate;
               {
                 at::NoGradGuard no_grad;
                 gate = at::sigmoid(at::mm(y, p[0]));
                 gate.mul_(2).clamp_(0.1, 1.5);
               }
               return y.sin() * gate;
             }),
      hazard("a section with grad mode inside a section without grad mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::NoGradGuard no_grad;
               const at::Tensor scale = x.sin();
               at::AutoGradMode grad(true);
               const at::Tensor y = at::mm(x, p[0]) * scale;
               at::AutoGradMode off(false);
               const at::Tensor mask = y.gt(0).to(at::kFloat);
               at::AutoGradMode on(true);
               return y.cos() * mask;
             }),
      hazard("a scope without grad mode among scopes with grad mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor teacher;
               {
                 const Scope scope("teacher");
                 at::NoGradGuard no_grad;
                 teacher = at::mm(x.sin(), p[0]).tanh();
               }
               const Scope scope("student");
               return at::mm(x, p[0]) - teacher;
             }),
      hazard("a middle layer without grad mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::AutoGradMode mode(p.layer != 1);
               return p.layer == 1 ? x + x.sin() * 0.1 : at::mm(x, p[0]).tanh();
             },
             {.bare = true}),
      hazard("grad mode switched off halfway through a region", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               at::NoGradGuard no_grad;
               const at::Tensor z = y.exp();
               at::Tensor w = z.clone();
               w.mul_(y);
               at::AutoGradMode grad(true);
               return y * w;
             }),
  };
}

std::vector<Hazard> inference() {
  return {
      hazard("a section in inference mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor gate;
               {
                 const c10::InferenceMode inference;
                 gate = at::sigmoid(at::linear(y.detach(), p[0]));
                 gate.mul_(2);
               }
               return y.sin() * gate.clone();
             }),
      {"constants made in inference mode",
       [] {
         at::Tensor table;
         {
           const c10::InferenceMode inference;
           table = at::randn({kTokens, kDim});
         }
         return layers_of(kSquare, [table](const at::Tensor& x, const Parts& p) {
           return at::mm(x, p[0]).sin() + at::mm(table.sin(), p[0].detach());
         });
       }},
      hazard("inference mode switched off inside inference mode", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const c10::InferenceMode inference;
               const c10::InferenceMode off(false);
               at::AutoGradMode grad(true);
               return at::mm(x, p[0]).sin();
             }),
  };
}

// Enters a level of dual numbers, and leaves it in the destructor.
struct DualLevel {
  DualLevel() : index(torch::autograd::forward_ad::enter_dual_level()) {}
  ~DualLevel() { torch::autograd::forward_ad::exit_dual_level(index); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
  std::uint64_t index;
};

std::vector<Hazard> below_autograd() {
  return {
      hazard("a section below autograd", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor gate;
               {
                 at::AutoDispatchBelowAutograd below;
                 gate = at::sigmoid(y);
                 gate.mul_(2);
               }
               return y.sin() * gate;
             }),
      hazard("a section below dispatch key ADInplaceOrView", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor gate;
               {
                 at::AutoDispatchBelowADInplaceOrView below;
                 gate = at::sigmoid(y);
                 gate.view({-1}).mul_(2);
                 gate.t().add_(0.1);
               }
               return y.sin() * gate;
             }),
  };
}

// The level of dual numbers (forward-mode AD) is process-wide, so the test needs a process of its
// own.
Hazard dual_numbers() {
  Hazard made =
      hazard("dual numbers inside the layer", kSquare, [](const at::Tensor& x, const Parts& p) {
        const at::Tensor point = at::mm(x, p[0]);
        const DualLevel level;
        const at::Tensor dual = at::_make_dual(point, at::ones_like(point), 0);
        const auto [value, tangent] = at::_unpack_dual(at::sin(dual) * dual, 0);
        return value + tangent;
      });
  made.needs_process = true;
  return made;
}

}  // namespace

std::vector<Hazard> mode_hazards() {
  std::vector<Hazard> all = without_gradients();
  for (const auto& more : {inference(), below_autograd()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  all.push_back(dual_numbers());
  return all;
}

}  // namespace rematch::testing::hazards
