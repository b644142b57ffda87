// Models with ops that replay cannot repeat: see Note [Held ops] (record.h).
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {

std::vector<Hazard> held_hazards() {
  return {
      hazard("moving averages of a list of tensors, updated in place", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::_foreach_lerp_(p.buffers, {y.detach().mean(0), y.detach().std(0)}, 0.1);
               return y.sin();
             },
             {.buffers = {{kDim}, {kDim}}}),
      hazard("an in-place write to a list of the layer's own tensors", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               std::vector<at::Tensor> list = {y.detach().sin(), y.detach().cos()};
               at::_foreach_mul_(list, 2.0);
               return y * list[0] + y.sin() * list[1];
             }),
      hazard("a fused range observer with the model's ranges and the layer's zero point", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor on = at::ones({1}, at::TensorOptions(at::kLong));
               at::Tensor low = p.buffers[0];
               at::Tensor high = p.buffers[1];
               at::Tensor scale = p.buffers[2];
               at::Tensor zero_point = at::zeros({1}, at::TensorOptions(at::kInt));
               return at::fused_moving_avg_obs_fake_quant(at::mm(x, p[0]), on, on, low, high, scale,
                                                          zero_point, 0.1, -8, 7, 0)
                   .sin();
             },
             {.buffers = {{1}, {1}, {1}}}),
      hazard("a write through data", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]) + 1;
               y.variable_data().mul_(2);
               return y.sin() + y;
             }),
      hazard("a result whose .data is replaced", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).detach();
               y.set_data(y.clone());
               return at::mm(x, p[0]) * y;
             }),
      hazard("set_ that gives the layer's own tensor another storage", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor z = at::zeros({kTokens, kDim});
               const at::Tensor before = z + 1;
               z.set_(y.detach().sin());
               return y * z * before;
             }),
      hazard("an in-place write to a list of two views of one tensor", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor before = y.detach() * 2.0;
               std::vector<at::Tensor> list = {y.detach()[0], y.detach()[1]};
               at::_foreach_mul_(list, 2.0);
               return y + before.sin();
             }),
      hazard("a list of the layer's own tensors and of outside tensors", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).detach();
               const at::Tensor before = p.buffers[0] * 2.0 + y;
               std::vector<at::Tensor> list = {y, p.buffers[0]};
               at::_foreach_add_(list, 0.5);
               return at::mm(x, p[0]) * y * before.sin();
             },
             {.buffers = {{kTokens, kDim}}}),
      hazard("a write to a tensor that was read through .data", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]) + 1;
               const at::Tensor before = y.variable_data() * 3;
               y.variable_data().mul_(2);
               const at::Tensor after = y.variable_data() + 1;
               return y * before.sin() + y.sin() * after;
             }),
      hazard("an in-place write to the layer's input after a read", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = p.layer == 0 ? x * 1 : x;
               const at::Tensor before = y + 1;
               y.mul_(0.5);
               return at::mm(y, p[0]) * before.sin();
             },
             {.bare = true}),
      hazard("a large buffer that is overwritten after a read", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor before = p.buffers[0].mean(0).slice(0, 0, kDim) + 0.0;
               p.buffers[0].add_(0.25);
               return (at::mm(x, p[0]) * before).sin();
             },
             {.buffers = {{160, 160}}}),
  };
}

}  // namespace rematch::testing::hazards
