// Views of views, of parameters and of tensors from outside; complex numbers, whose conjugates and
// parts are views; layers that return their input.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

std::vector<Hazard> own_views() {
  return {
      hazard("views of views: permute, unfold, diagonal, movedim, expand", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).view({2, 3, 2, 4});
               const at::Tensor turned = y.permute({3, 0, 2, 1}).movedim(0, 2);
               const at::Tensor windows = y.unfold(3, 2, 1).diagonal(0, 0, 2);
               return turned.reshape({kTokens, kDim}).sin() * windows.sum() +
                      y.select(0, 1).expand({2, 3, 2, 4}).reshape({kTokens, kDim});
             }),
      hazard("as_strided windows that overlap", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).contiguous();
               return at::as_strided(y, {5, 4}, {2, 3}, 1).sin().sum() * y;
             }),
      hazard("a view made in one scope and read in the next", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               return at::mm(x, p[0]).t().slice(0, 2, 6).t().repeat({1, 2});
             }),
      hazard("tensor_split, hsplit, unflatten, swapaxes", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const auto thirds = at::tensor_split(y, 3, 0);
               const auto halves = at::hsplit(y.unflatten(0, {2, 3}).swapaxes(0, 1), 2);
               return at::cat({thirds[2], thirds[0], thirds[1]}) * halves[0].sum() +
                      halves[1].sum().sin();
             }),
      hazard("a view as another dtype of the same size", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor bits = y.detach().view(at::kInt).bitwise_and(0x7FFFFFFF);
               return y * bits.view(at::kFloat).sin();
             }),
      hazard("flatten, pad, fold and roll", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor padded = at::constant_pad_nd(y.flatten(), {1, 1}, 0.5);
               return padded.slice(0, 1, 1 + kTokens * kDim).view({kTokens, kDim}).roll(1, 1).sin();
             }),
  };
}

std::vector<Hazard> views_of_parameters() {
  return {
      hazard("slices of one fused weight", {{3 * kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const auto parts = at::chunk(p[0], 3, 0);
               return at::linear(x, parts[0]).sin() * at::linear(x, parts[1]) +
                      at::linear(x, parts[2]).relu();
             }),
      hazard("weights that are views of one flat parameter", {{kDim * kDim + kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor weight = p[0].slice(0, 0, kDim * kDim).view({kDim, kDim});
               return at::linear(x, weight, p[0].slice(0, kDim * kDim, kDim * kDim + kDim)).sin();
             }),
      hazard("a weight viewed through as_strided, transposed and expanded", {{2, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor rows = p[0].as_strided({kDim, 2}, {1, kDim}).t();
               return x * rows[0].expand({kTokens, kDim}).sin() * rows[1].unsqueeze(0);
             }),
      {"views of the parameters that are made once before the first step",
       [] {
         Model model = layers_of(kSquare, [](const at::Tensor& x, const Parts&) { return x; });
         const at::Tensor flat = leaf({3 * kDim * kDim});
         model.parameters = {flat};
         model.layers.clear();
         for (int layer = 0; layer < 3; ++layer) {
           model.layers.push_back([flat, layer](const at::Tensor& x) {
             const std::int64_t first = layer * kDim * kDim;
             const at::Tensor w = flat.narrow(0, first, kDim * kDim).view({kDim, kDim});
             return at::mm(at::mm(x, w).sin(), w).tanh();
           });
         }
         return model;
       }},
  };
}

std::vector<Hazard> handed_on() {
  const Options bare = {.bare = true};
  return {
      hazard(
          "a layer that returns its input", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            return p.layer == 1 ? x : at::mm(x, p[0]).tanh();
          },
          bare),
      hazard(
          "a layer that returns a view of its input", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            return p.layer == 1 ? x.view({2, 3, kDim}).view({kTokens, kDim})
                                : at::mm(x, p[0]).sin();
          },
          bare),
      hazard(
          "a layer that returns its weight", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            return p.layer == 0 ? p[0] : at::mm(x, p[0]).sin();
          },
          bare),
      hazard(
          "a layer that runs no op", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            return p.layer == 1 ? x : at::mm(x.sin(), p[0]).cos();
          },
          bare),
      hazard(
          "a layer's result that the next layer reads through a view", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            return at::mm(x, p[0]).sin().t().contiguous().t();
          },
          bare),
      hazard(
          "a result that the next layer overwrites", kSquare,
          [](const at::Tensor& x, const Parts& p) {
            at::Tensor y = p.layer == 0 ? x * 1 : x;
            if (p.layer > 0) y.add_(1);
            return at::mm(y.sin(), p[0]) * 1.0;
          },
          bare),
  };
}

at::Tensor complex_of(const at::Tensor& y) {
  return at::view_as_complex(y.reshape({kTokens, kDim / 2, 2}).contiguous());
}

at::Tensor real_of(const at::Tensor& z) { return at::view_as_real(z).reshape({kTokens, kDim}); }

std::vector<Hazard> complex_numbers() {
  return {
      hazard("rotary embedding with complex numbers", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor angles =
                   at::outer(at::arange(kTokens, at::TensorOptions(at::kFloat)),
                             at::arange(1, 1 + kDim / 2, at::TensorOptions(at::kFloat)));
               const at::Tensor turn = at::polar(at::ones_like(angles), angles);
               return real_of(complex_of(at::mm(x, p[0])) * turn);
             }),
      hazard("conjugates, which are views", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor z = complex_of(at::mm(x, p[0]));
               const at::Tensor w = z.conj() * z.sin() + at::mm(z, z.conj().t().mm(z));
               return real_of(w.resolve_conj());
             }),
      hazard("writes to real and imaginary parts", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor z = complex_of(at::mm(x, p[0])).clone();
               at::imag(z.conj()).mul_(2);
               at::real(z).add_(1);
               return real_of(z * z.abs() + at::angle(z));
             }),
      hazard("the imaginary part of a conjugate, which is a negative view", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor z = complex_of(at::mm(x, p[0]));
               const at::Tensor part = at::imag(z.conj());
               return at::cat({part, part.sin()}, 1) + part.sum();
             }),
      hazard("Fourier transforms", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor z = at::fft_rfft(at::mm(x, p[0]), {}, 1);
               const at::Tensor filtered = at::fft_irfft(z * z.abs(), kDim, 1);
               return filtered + at::fft_fft2(x.sin()).abs();
             }),
      hazard("complex weights throughout", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               return y * y.conj() + at::tanh(y * 0.1);
             },
             {.dtype = at::kComplexFloat}),
  };
}

}  // namespace

std::vector<Hazard> view_hazards() {
  std::vector<Hazard> all = own_views();
  for (const auto& more : {views_of_parameters(), handed_on(), complex_numbers()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace rematch::testing::hazards
