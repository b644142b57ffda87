// Each network has the smallest layer that shows its hazard. A network runs its layer twice, so
// that the second layer's input has a graph.
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tests/support/networks.h"

namespace rematch::testing {
namespace {

constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kDim = 8;

at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  at::Tensor tensor = at::randn(sizes, at::TensorOptions(type)).mul(0.5);
  return tensor.requires_grad_();
}

using Layer = std::function<at::Tensor(const at::Tensor& x, const std::vector<at::Tensor>& w)>;

// Makes two layers of `layer`, each with its own weights of the given shapes.
Network two_layers(const std::vector<std::vector<std::int64_t>>& shapes, const Layer& layer,
                   at::ScalarType type = at::kFloat) {
  Network network;
  network.input = leaf({kTokens, kDim}, type);
  for (int i = 0; i < 2; ++i) {
    std::vector<at::Tensor> weights;
    for (const auto& shape : shapes) weights.push_back(leaf(shape, type));
    network.parameters.insert(network.parameters.end(), weights.begin(), weights.end());
    network.layers.push_back([layer, weights](const at::Tensor& x) { return layer(x, weights); });
  }
  return network;
}

NamedNetwork hazard(const std::string& name, const std::vector<std::vector<std::int64_t>>& shapes,
                    const Layer& layer, at::ScalarType type = at::kFloat) {
  return {name, [=] { return two_layers(shapes, layer, type); }};
}

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {gradients[0] * 3 * x * x};
  }
};

struct Identity : torch::autograd::Function<Identity> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x; }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0] * 2};
  }
};

struct Transposed : torch::autograd::Function<Transposed> {
  static at::Tensor forward(AutogradContext*, const at::Tensor& x) { return x.t(); }
  static variable_list backward(AutogradContext*, variable_list gradients) {
    return {gradients[0].t()};
  }
};

struct DoubledInPlace : torch::autograd::Function<DoubledInPlace> {
  static at::Tensor forward(AutogradContext* context, at::Tensor x) {
    x.mul_(2);
    context->mark_dirty({x});
    context->save_for_backward({x});
    return x;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * 2 + context->get_saved_variables()[0] * 0};
  }
};

const std::vector<std::vector<std::int64_t>> kSquare = {{kDim, kDim}};

std::vector<NamedNetwork> plain_networks() {
  return {
      hazard("biased mlp", {{16, kDim}, {16}, {kDim, 16}, {kDim}},
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor hidden = at::gelu(at::linear(x, w[0], w[1]), "tanh");
               return x + at::linear(hidden, w[2], w[3]);
             }),
      hazard(
          "bfloat16 mlp", {{16, kDim}, {kDim, 16}},
          [](const at::Tensor& x, const auto& w) {
            return x + at::linear(at::silu(at::linear(x, w[0])), w[1]);
          },
          at::kBFloat16),
      hazard(
          "float64 mlp", {{16, kDim}, {kDim, 16}},
          [](const at::Tensor& x, const auto& w) {
            return x + at::linear(at::silu(at::linear(x, w[0])), w[1]);
          },
          at::kDouble),
      hazard("a tensor that is saved twice", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               return y * y + at::softmax(y, -1);
             }),
      hazard("layer norm and loss-like reductions", {{kDim}, {kDim}},
             [](const at::Tensor& x, const auto& w) {
               return at::layer_norm(x, {kDim}, w[0], w[1]) + at::log_softmax(x, -1) +
                      at::logsumexp(x, -1, true);
             }),
      hazard("an unused output", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor unused = at::mm(at::tanh(x), w[0]);
               return at::mm(at::sin(x), w[0]);
             }),
      hazard("several outputs: split, chunk, sort, topk, unbind", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               const auto halves = at::split(y, kDim / 2, 1);
               const auto rows = at::unbind(y, 0);
               const auto [sorted, order] = at::sort(y, 1);
               const auto [top, where] = at::topk(y, 2, 1);
               return at::cat({halves[1] * halves[0], halves[0].sin()}, 1) * sorted +
                      at::stack({rows[1], rows[0], rows[2], rows[3], rows[4], rows[5]}) * top.sum();
             }),
      hazard("views: transpose, reshape, as_strided, expand", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               const at::Tensor strided = at::as_strided(y, {kTokens, kDim}, {kDim, 1});
               const at::Tensor turned = y.t().reshape({kTokens, kDim});
               return strided * turned + y.slice(0, 0, 1).expand({kTokens, kDim}).sin();
             }),
      hazard("gradient cut by detach", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               return y * y.detach().sin();
             }),
  };
}

std::vector<NamedNetwork> in_place_networks() {
  return {
      hazard("relu_ on the layer's own value", kSquare,
             [](const at::Tensor& x, const auto& w) {
               at::Tensor y = at::mm(x, w[0]);
               at::relu_(y);
               return at::mm(y, w[0]);
             }),
      hazard("a value read before and after a write", kSquare,
             [](const at::Tensor& x, const auto& w) {
               at::Tensor y = at::mm(x, w[0]);
               const at::Tensor before =
                   y + 1.0;  // reads version 0 of y, and autograd saves no tensor for this op
               y.add_(x);
               return before.sin() * y.cos();
             }),
      hazard("write through a view", kSquare,
             [](const at::Tensor& x, const auto& w) {
               at::Tensor y = at::mm(x, w[0]);
               y.view({-1}).add_(1.0);
               return y.sin();
             }),
      hazard("slice.copy_ into a buffer of zeros", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               at::Tensor buffer = at::zeros({kTokens, 2 * kDim}, y.options());
               buffer.slice(1, 0, kDim).copy_(y);
               buffer.slice(1, kDim, 2 * kDim).copy_(y.sin());
               return buffer.slice(1, 0, kDim) * buffer.slice(1, kDim, 2 * kDim).cos();
             }),
      hazard("index_put_ and index_add_", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               at::Tensor out = at::zeros_like(y);
               const at::Tensor rows = at::arange(0, kTokens, at::TensorOptions(at::kLong)).flip(0);
               out.index_add_(0, rows, y.sin());
               out.index_put_({rows}, y.cos(), /*accumulate=*/true);
               return out * y;
             }),
      hazard("out= under no_grad", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               at::Tensor scale = at::empty_like(y);
               {
                 at::NoGradGuard no_grad;
                 at::sin_out(scale, y);
               }
               return y * scale;
             }),
  };
}

std::vector<NamedNetwork> random_networks() {
  return {
      hazard("dropout between matmuls", {{16, kDim}, {kDim, 16}},
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor hidden = at::dropout(at::linear(x, w[0]), 0.3, true);
               return x + at::dropout(at::linear(hidden.sin(), w[1]), 0.2, true);
             }),
      hazard("noise and randperm", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor noise = at::randn({kTokens, kDim}, x.options());
               const at::Tensor order = at::randperm(kTokens, at::TensorOptions(at::kLong));
               return at::mm(x * noise, w[0]).index_select(0, order).sin();
             }),
  };
}

std::vector<NamedNetwork> dynamic_networks() {
  return {
      hazard(".item() decides a branch", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               return y.sum().item<double>() > 1e9 ? y.sin() : y.cos() * y;
             }),
      hazard("experts: nonzero, index, index_add", {{kDim, kDim}, {kDim, kDim}},
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor pick = at::arange(0, kTokens, at::TensorOptions(at::kLong)) % 2;
               at::Tensor out = at::zeros_like(x);
               for (int expert = 0; expert < 2; ++expert) {
                 const at::Tensor rows = at::nonzero(at::eq(pick, expert)).squeeze(1);
                 const at::Tensor y = at::silu(at::mm(x.index({rows}), w[expert]));
                 out = at::index_add(out, 0, rows, y);
               }
               return x + out;
             }),
      hazard(
          "constants filled through a pointer", kSquare,
          [](const at::Tensor& x, const auto& w) {
            const at::Tensor scale = at::tensor({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F, 7.0F, 8.0F});
            return at::mm(x, w[0]) * scale * at::mm(x, w[0]).sin();
          }),
      hazard("where and masks", kSquare,
             [](const at::Tensor& x, const auto& w) {
               const at::Tensor y = at::mm(x, w[0]);
               return at::where(y > 0, y.sin(), y * y);
             }),
      hazard("autocast to bfloat16", {{16, kDim}, {kDim, 16}},
             [](const at::Tensor& x, const auto& w) {
               const bool before = at::autocast::is_autocast_enabled(at::kCPU);
               at::autocast::set_autocast_enabled(at::kCPU, true);
               const at::Tensor y = at::linear(at::gelu(at::linear(x, w[0])), w[1]);
               at::autocast::set_autocast_enabled(at::kCPU, before);
               at::autocast::clear_cache();
               return x + y;
             }),
  };
}

std::vector<NamedNetwork> function_networks() {
  return {
      hazard("custom function", kSquare,
             [](const at::Tensor& x, const auto& w) { return Cube::apply(at::mm(x, w[0])); }),
      hazard("custom function that returns its input", kSquare,
             [](const at::Tensor& x, const auto& w) {
               return Identity::apply(at::mm(x, w[0])).sin();
             }),
      hazard("custom function that returns a view", kSquare,
             [](const at::Tensor& x, const auto& w) {
               return Transposed::apply(at::mm(x, w[0])).sin().t();
             }),
      hazard("custom function that marks its input dirty", kSquare,
             [](const at::Tensor& x, const auto& w) {
               return DoubledInPlace::apply(at::mm(x, w[0]) + 0.0).sin();
             }),
  };
}

Network only_parameters_need_grad() {
  Network network = two_layers(
      kSquare, [](const at::Tensor& x, const auto& w) { return at::tanh(at::mm(x, w[0])) * x; });
  network.input = network.input.detach();
  return network;
}

Network frozen_first_layer() {
  Network network = two_layers(
      kSquare, [](const at::Tensor& x, const auto& w) { return at::tanh(at::mm(x, w[0])) * x; });
  network.input = network.input.detach();
  network.parameters[0].requires_grad_(false);
  return network;
}

}  // namespace

const std::vector<NamedNetwork>& hazard_networks() {
  static const std::vector<NamedNetwork> all = [] {
    std::vector<NamedNetwork> networks;
    for (const auto& group : {plain_networks(), in_place_networks(), random_networks(),
                              dynamic_networks(), function_networks()}) {
      networks.insert(networks.end(), group.begin(), group.end());
    }
    networks.push_back(
        {"a model where only parameters need a gradient", &only_parameters_need_grad});
    networks.push_back({"frozen first layer", &frozen_first_layer});
    return networks;
  }();
  return all;
}

}  // namespace rematch::testing
