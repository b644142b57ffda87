// In-place writes to the layer's own values, to views and to tensors from outside. Also ops that
// change a tensor's shape instead of its content.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

// Makes a layer that computes a product and passes it to `change`, which may modify the product in
// place.
Hazard changed(const std::string& name, const std::function<at::Tensor(at::Tensor)>& change,
               const Options& options = {}) {
  return hazard(
      name, kSquare,
      [change](const at::Tensor& x, const Parts& p) { return change(at::mm(x, p[0])); }, options);
}

// Wraps an op's result in a variable, as Python's torch.empty_like and similar functions do.
at::Tensor as_variable(at::Tensor made) {
  return torch::autograd::make_variable(std::move(made), /*requires_grad=*/false);
}

std::vector<Hazard> chains() {
  return {
      changed("a chain of writes", [](at::Tensor y) { return y.mul_(2).add_(1).relu_().sin(); }),
      changed("in-place writes and draws on tensors from factories",
              [](at::Tensor y) {
                const at::Tensor z = as_variable(at::empty_like(y));
                z.copy_(as_variable(at::rand_like(y)));
                z.slice(1, 0, kDim / 2).mul_(as_variable(at::full({kTokens, 1}, 0.5)));
                return y * z.sin() + y * as_variable(at::ones_like(y)).mul_(3);
              }),
      changed("a chain of writes with reads between them",
              [](at::Tensor y) {
                const at::Tensor a = y + 1;
                y.mul_(2);
                const at::Tensor b = y + 2;
                y.add_(a);
                const at::Tensor c = y + 3;
                y.mul_(0.5);
                return a.sin() + b.cos() * c.sin() + y;
              }),
      changed("sigmoid_, tanh_, exp_ and sqrt_, which save their results",
              [](at::Tensor y) {
                at::Tensor z = y * 1;
                at::Tensor w = y * 2;
                return y.sigmoid_() + z.tanh_() + w.exp_().add(1).sqrt_();
              }),
      changed("addmm_, addcmul_, addcdiv_, lerp_, baddbmm_",
              [](at::Tensor y) {
                at::Tensor z = y * 0.5;
                const at::Tensor other = y.sin();
                z.addmm_(other, other.t().mm(other), 1, 0.1);
                z.addcmul_(other, other.cos()).addcdiv_(other, other.abs() + 1);
                z.lerp_(other, 0.3);
                at::Tensor batch = z.view({1, kTokens, kDim}).clone();
                batch.baddbmm_(other.view({1, kTokens, kDim}), at::eye(kDim).view({1, kDim, kDim}));
                return batch.squeeze(0);
              }),
      changed("clamp_, threshold_, hardtanh_, leaky_relu_, elu_",
              [](at::Tensor y) {
                at::Tensor a = y * 1;
                at::Tensor b = y * 2;
                at::Tensor c = y * 3;
                at::Tensor d = y * 4;
                return y.clamp_(-1, 1) + at::threshold_(a, 0.1, 0.2) + at::hardtanh_(b, -1, 1) +
                       at::leaky_relu_(c, 0.1) + at::elu_(d);
              }),
      changed("masked_fill_, masked_scatter_, index_fill_, index_copy_",
              [](at::Tensor y) {
                at::Tensor z = y.sin();
                z.masked_fill_(y.gt(0.3), 0.7);
                z.masked_scatter_(y.lt(-0.3), y.cos());
                z.index_fill_(1, indices(2, kDim), 0.1);
                return z.index_copy_(0, indices(2, kTokens), y.slice(0, 0, 2) * 2);
              }),
      changed("scatter_, scatter_add_, put_",
              [](at::Tensor y) {
                const at::Tensor index = indices(kTokens * kDim, kTokens).view({kTokens, kDim});
                at::Tensor z = y.sin();
                z.scatter_(0, index, y * 2);
                z.scatter_add_(0, index, y * 3);
                return z.put_(indices(3, kDim), y.flatten().slice(0, 0, 3), true);
              }),
      changed("copy_ that broadcasts and converts",
              [](at::Tensor y) {
                at::Tensor z = at::zeros({2, kTokens, kDim}, at::TensorOptions(at::kDouble));
                z.copy_(y);
                z.select(0, 1).copy_(y[0]);
                return z.sum(0).to(at::kFloat);
              }),
      changed("cumsum_, flip and triu_",
              [](at::Tensor y) {
                at::Tensor z = y.sin();
                z.cumsum_(0);
                return z.triu_().flip(0) + y;
              }),
      changed("empty, then filled",
              [](at::Tensor y) {
                at::Tensor z = at::empty({kTokens, kDim});
                z.fill_(0.5);
                at::Tensor w = at::empty_like(y);
                w.copy_(y.sin());
                return z * w.mul_(y) + at::empty_strided({kDim}, {1}).zero_();
              }),
      changed("out= into the layer's own tensor, twice",
              [](at::Tensor y) {
                at::Tensor z = at::empty_like(y);
                {
                  at::NoGradGuard no_grad;
                  at::sin_out(z, y);
                }
                const at::Tensor first = y * z.clone();
                {
                  at::NoGradGuard no_grad;
                  at::cos_out(z, y);
                }
                return first + y * z.clone();
              }),
  };
}

std::vector<Hazard> through_views() {
  return {
      changed("writes through views of views",
              [](at::Tensor y) {
                at::Tensor view = y.view({2, 3, kDim}).transpose(0, 1).select(1, 1);
                view.mul_(2);
                y.t().slice(0, 2, 4).add_(1);
                return y.sin();
              }),
      changed("a view made before a write and read after it",
              [](at::Tensor y) {
                const at::Tensor view = y.slice(0, 1, 3);
                y.add_(1);
                const at::Tensor first = view * 2;
                y.mul_(3);
                return y.sin() + first.sum() + view.sum();
              }),
      changed("writes to a diagonal, a strided view and an unfolded view",
              [](at::Tensor y) {
                at::Tensor z = y * 1;
                z.diagonal().fill_(0.3);
                z.as_strided({2, 2}, {kDim, 2}, 1).mul_(2);
                z.unfold(1, 2, 4).add_(0.1);
                return z.sin();
              }),
      changed("two halves of a tensor, each written from the other half",
              [](at::Tensor y) {
                at::Tensor z = y * 1;
                const std::vector<at::Tensor> halves = {z.slice(1, 0, 4), z.slice(1, 4, 8)};
                halves[0].mul_(halves[1].clone());
                halves[1].add_(halves[0].clone().sin());
                return z.cos();
              }),
      changed("rotary halves written to an empty tensor",
              [](at::Tensor y) {
                at::Tensor z = at::empty_like(y);
                z.slice(1, 0, kDim, 2).copy_(y.slice(1, 1, kDim, 2).neg());
                z.slice(1, 1, kDim, 2).copy_(y.slice(1, 0, kDim, 2));
                return y * y.detach().cos() + z * y.detach().sin();
              }),
      changed("index_put_ with boolean masks and with accumulation",
              [](at::Tensor y) {
                at::Tensor z = y * 1;
                z.index_put_({y.gt(0.2)}, at::zeros({}));
                z.index_put_({indices(4, 2), indices(4, 3)}, y[0].slice(0, 0, 4), true);
                return z.sin();
              }),
      changed("a write under no_grad to a value with a graph",
              [](at::Tensor y) {
                const at::Tensor z = y.exp() + 0.0;
                {
                  at::NoGradGuard no_grad;
                  z.clamp_(0.5, 2.0);
                }
                return z * 2 + y;
              }),
      changed("reads through .data without a write",
              [](at::Tensor y) {
                const at::Tensor data = y.variable_data();
                return y.sin() * data.cos() + y.tensor_data();
              }),
      changed("out= into a part of the layer's own tensor",
              [](at::Tensor y) {
                at::Tensor z = at::zeros_like(y);
                at::Tensor half = z.slice(1, 0, 4);
                {
                  at::NoGradGuard no_grad;
                  at::mul_out(half, y.slice(1, 4, 8), y.slice(1, 0, 4));
                }
                return z * y;
              }),
      changed("a write to the result of detach()",
              [](at::Tensor y) {
                const at::Tensor z = y + 1;
                z.detach().mul_(2);
                return z + z.sum();
              }),
  };
}

std::vector<Hazard> shapes_in_place() {
  return {
      changed("t_, unsqueeze_, squeeze_, transpose_",
              [](at::Tensor y) {
                const at::Tensor a = y + 1;
                y.t_();
                const at::Tensor b = y.sum(1) * 1.0;
                y.unsqueeze_(0).transpose_(1, 2).squeeze_(0);
                return a.sin() * b + y;
              }),
      changed("resize_ of the layer's own empty tensor",
              [](at::Tensor y) {
                at::Tensor z = at::empty({0});
                z.resize_({kTokens, kDim});
                z.copy_(y.detach());
                return y * z.sin();
              }),
      changed("out= that resizes",
              [](at::Tensor y) {
                at::Tensor z = at::empty({0});
                at::NoGradGuard no_grad;
                at::mm_out(z, y, y.t());
                at::AutoGradMode grad(true);
                return at::mm(z, y);
              }),
      changed("detach_ and requires_grad_",
              [](at::Tensor y) {
                at::Tensor z = y * 2;
                z.detach_();
                at::Tensor leaf = at::ones({kDim});
                leaf.requires_grad_();
                return y * z.sin() * leaf;
              }),
  };
}

std::vector<Hazard> outside() {
  const std::vector<Shape> cache = {{3 * kTokens, kDim}};
  return {
      hazard("a cache that is written by copy_ and read", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor store = p.buffers[0];
               store.slice(0, kTokens, 2 * kTokens).copy_(y.detach());
               return y * at::mm(y, store.slice(0, 0, kDim).clone()).sin();
             },
             {.buffers = cache}),
      hazard("a cache that is rolled in place", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor store = p.buffers[0];
               store.copy_(store.roll(1, 0));
               store[0].copy_(y.detach()[0]);
               return y.sin() * store[0].clone();
             },
             {.buffers = cache}),
      hazard("a log of activations that is written by index", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).sin();
               at::Tensor(p.buffers[0]).index_put_({indices(kTokens, kTokens)}, y.detach());
               return y;
             },
             {.buffers = cache}),
      hazard("an out= argument that is a tensor from outside", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               at::Tensor scratch = p.buffers[0];
               at::NoGradGuard no_grad;
               at::sin_out(scratch, y);
               const at::Tensor copy = scratch.clone();
               at::AutoGradMode grad(true);
               return y * copy;
             },
             {.buffers = {{kTokens, kDim}}}),
      hazard("a scratch buffer from outside that is used twice", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor scratch = p.buffers[0];
               scratch.copy_(x.detach().sin());
               const at::Tensor first = at::mm(x, p[0]) * scratch.clone();
               scratch.copy_(x.detach().cos());
               return first + at::mm(x, p[0]) * scratch.clone();
             },
             {.buffers = {{kTokens, kDim}}}),
  };
}

}  // namespace

std::vector<Hazard> in_place_hazards() {
  std::vector<Hazard> all = chains();
  for (const auto& more : {through_views(), shapes_in_place(), outside()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rematch::testing::hazards
