// Models that the engine refuses while forward runs, and how it says so. The tracer writes the same
// record and refuses them in the same words, so no plan is ever made for them.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

constexpr const char* kList = "writes in place into a list of tensors";

}  // namespace

std::vector<RefusedHazard> refused_hazards() {
  return {
      {hazard("averages of a list of tensors, kept in place", kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor y = at::mm(x, p[0]);
                at::_foreach_lerp_(p.buffers, {y.detach().mean(0), y.detach().std(0)}, 0.1);
                return y.sin();
              },
              {.buffers = {{kDim}, {kDim}}}),
       kList},
      {hazard("a list of own tensors, written in place", kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor y = at::mm(x, p[0]);
                std::vector<at::Tensor> list = {y.detach().sin(), y.detach().cos()};
                at::_foreach_mul_(list, 2.0);
                return y * list[0] + y.sin() * list[1];
              }),
       kList},
      {hazard("an observer whose ranges are the model's and whose zero point is the layer's",
              kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor on = at::ones({1}, at::TensorOptions(at::kLong));
                at::Tensor low = p.buffers[0];
                at::Tensor high = p.buffers[1];
                at::Tensor scale = p.buffers[2];
                at::Tensor zero_point = at::zeros({1}, at::TensorOptions(at::kInt));
                return at::fused_moving_avg_obs_fake_quant(at::mm(x, p[0]), on, on, low, high,
                                                           scale, zero_point, 0.1, -8, 7, 0)
                    .sin();
              },
              {.buffers = {{1}, {1}, {1}}}),
       "writes both into a tensor from outside the region and into one of its own"},
      {hazard("a write through data", kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor y = at::mm(x, p[0]) + 1;
                y.variable_data().mul_(2);
                return y.sin() + y;
              }),
       "shares the data of a result of the region"},
      {hazard("a result that is given other data", kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor y = at::mm(x, p[0]).detach();
                y.set_data(y.clone());
                return at::mm(x, p[0]) * y;
              }),
       "was given other data"},
      {hazard("an own tensor that is set_ to another's storage", kSquare,
              [](const at::Tensor& x, const Parts& p) {
                const at::Tensor y = at::mm(x, p[0]);
                at::Tensor z = at::zeros({kTokens, kDim});
                const at::Tensor before = z + 1;
                z.set_(y.detach().sin());
                return y * z * before;
              }),
       "was given other data"},
  };
}

}  // namespace rematch::testing::hazards
