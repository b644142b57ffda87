// Shapes, branches and loops that depend on values, and memory that is filled without the
// dispatcher.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "models/scope/scope.h"
#include "tests/support/hazards/hazard.h"
#include "tests/support/networks.h"

namespace rematch::testing::hazards {
namespace {

std::vector<Hazard> branches() {
  return {
      hazard("branches that depend on item(), equal() and all()", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const bool huge = y.abs().max().item<double>() > 1e9;
               const bool same = at::equal(y, y.clone());
               const bool close = at::allclose(y, y + 1);
               const bool all = y.gt(-1e9).all().item<bool>();
               return (huge ? y.sin() : y.cos()) * (same ? y : x) + (close || !all ? x : y.exp());
             }),
      hazard("a loop whose length depends on a value", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = at::mm(x, p[0]);
               const auto turns = y.detach().gt(-1e9).sum().item<std::int64_t>() / 16;
               for (std::int64_t turn = 0; turn < turns; ++turn) y = y.sin() + 0.1;
               return y;
             }),
      hazard("a number that the program reads with item() and uses", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const double norm = y.norm().item<double>();
               return y.sin() / (norm + 1) + at::full({kDim}, norm).cos() * y;
             }),
  };
}

std::vector<Hazard> shapes() {
  return {
      hazard("masked_select, nonzero and where with one argument", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor even = indices(kTokens, 2).eq(0).unsqueeze(1).expand_as(y);
               const at::Tensor chosen = at::masked_select(y, even);
               const auto rows = at::where(even.select(1, 0));
               return y * chosen.sin().sum() + y.index({rows[0]}).mean(0);
             }),
      hazard("experts whose tokens are sorted and then split by counts",
             {{kDim, kDim}, {kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor expert = indices(kTokens, 2);
               const auto [sorted, order] = expert.sort(true, 0, false);
               const at::Tensor counts = at::bincount(expert, {}, 2);
               const std::vector<std::int64_t> sizes = {counts[0].item<std::int64_t>(),
                                                        counts[1].item<std::int64_t>()};
               const auto groups = at::split_with_sizes(x.index_select(0, order), sizes, 0);
               const at::Tensor y =
                   at::cat({at::mm(groups[0], p[0]).sin(), at::mm(groups[1], p[1]).cos()});
               return at::index_select(y, 0, at::argsort(order));
             }),
      hazard("experts in separate scopes, gathered in place", {{2, kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor chosen = indices(kTokens, 2);
               at::Tensor out = at::zeros_like(x);
               for (int expert = 0; expert < 2; ++expert) {
                 const Scope one("expert", expert);
                 const at::Tensor rows = at::eq(chosen, expert).nonzero().squeeze(1);
                 out.index_add_(0, rows, at::mm(x.index_select(0, rows), p[0][expert]));
               }
               return out.sin();
             }),
      hazard("grouped matmul over offsets", {{2, kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor offsets = at::tensor({2, 6}, at::TensorOptions(at::kInt));
               return at::_grouped_mm(x.sin(), p[0], offsets).cos();
             }),
      hazard("padded rows of uneven length", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const auto rows = at::split_with_sizes(y, {1, 2, 3}, 0);
               at::Tensor padded = at::zeros({3, 3, kDim});
               for (std::int64_t row = 0; row < 3; ++row) {
                 padded[row].slice(0, 0, row + 1).copy_(rows[static_cast<std::size_t>(row)].sin());
               }
               return padded.view({-1, kDim}).slice(0, 3, 9) * y;
             }),
      hazard("unique values and their inverse", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const auto [rows, inverse, counts] =
                   at::unique_dim(indices(kTokens, 4).unsqueeze(1), 0, true, true);
               const at::Tensor sums = at::zeros({rows.size(0), kDim}).index_add(0, inverse, y);
               return (sums / counts.unsqueeze(1)).index_select(0, inverse).sin();
             }),
      {"inputs that are longer than in the planned step",
       [] {
         Model model = layers_of(kSquare, [](const at::Tensor& x, const Parts& p) {
           return at::mm(x, p[0]).sin() * at::softmax(x, 0);
         });
         const auto step = std::make_shared<int>(0);
         const auto first = model.layers[0];
         model.layers[0] = [first, step](const at::Tensor& x) {
           return first(x.slice(0, 0, 3 + *step));
         };
         model.loss = [step](const at::Tensor& output) {
           ++*step;
           return loss_of(output);
         };
         return model;
       }},
      hazard("an op's exception that the layer catches", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = at::mm(x, p[0]);
               const at::Tensor other = at::ones({3, 3});
               for (const bool in_place : {false, true}) {
                 try {
                   y = in_place ? y.mul_(other) : at::mm(y.sin(), other);
                 } catch (const c10::Error&) {
                   y = at::dropout(y.cos(), 0.2, true);
                 }
               }
               return y;
             }),
      hazard("tensors without elements in the layer", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor none = y.slice(0, 3, 3);
               return at::cat({none, y.sin(), at::mm(none, p[0])}) + none.sum();
             }),
  };
}

// Fills its result through a pointer, without the dispatcher, as some extensions do.
struct FillsByPointer : torch::autograd::Function<FillsByPointer> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x) {
    const at::Tensor input = x.contiguous();
    const at::Tensor result = at::empty_like(input);
    const at::Tensor slope = at::empty_like(input);
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      result.mutable_data_ptr<float>()[i] = std::sin(input.const_data_ptr<float>()[i]);
      slope.mutable_data_ptr<float>()[i] = std::cos(input.const_data_ptr<float>()[i]);
    }
    context->save_for_backward({slope});
    return result;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

std::vector<Hazard> by_pointer() {
  return {
      hazard("an extension that fills its results through pointers", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               return FillsByPointer::apply(at::mm(x, p[0])).exp() + FillsByPointer::apply(x);
             }),
      hazard("constants made from C++ numbers", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               std::vector<float> values(kDim);
               for (std::size_t i = 0; i < values.size(); ++i)
                 values[i] = 0.1F * static_cast<float>(i + 1);
               const at::Tensor row = at::tensor(values);
               return at::mm(x, p[0]) * row + at::tensor({0.5F, 0.25F}).sum();
             }),
      hazard("an empty tensor filled through its pointer", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor row = at::empty({kDim});
               for (std::int64_t i = 0; i < kDim; ++i) {
                 row.mutable_data_ptr<float>()[i] = 0.3F * static_cast<float>(i);
               }
               return (at::mm(x, p[0]) * row).sin() * row;
             }),
      hazard("an empty tensor filled through its pointer, then written in place", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor row = at::empty({kDim});
               std::fill_n(row.mutable_data_ptr<float>(), kDim, 0.3F);
               const at::Tensor before = (y + row).sin();
               row.narrow(0, 1, 3).mul_(0.5);
               const at::Tensor between = (y - row).cos();
               row.fill_(0.7F);
               return before * between * (y + row);
             }),
      hazard("an empty tensor filled through a view's pointer", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor row = at::empty({2, kDim});
               const at::Tensor half = row[1];
               std::fill_n(half.mutable_data_ptr<float>(), kDim, 0.4F);
               return (at::mm(x, p[0]) * half).sin();
             }),
      hazard("a number of scopes that depends on a value", kSquare,
             [](const at::Tensor& x, const Parts& p) {
               at::Tensor y = at::mm(x, p[0]);
               const int parts = 2 + static_cast<int>(y.gt(1e9).any().item<bool>());
               for (int part = 0; part < parts; ++part) {
                 const Scope scope("part", part);
                 y = at::mm(y.sin(), p[0]);
               }
               return y;
             }),
  };
}

}  // namespace

std::vector<Hazard> data_dependent_hazards() {
  std::vector<Hazard> all = branches();
  for (const auto& more : {shapes(), by_pointer()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace rematch::testing::hazards
