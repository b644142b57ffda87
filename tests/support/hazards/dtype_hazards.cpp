// Dtypes and mixtures of dtypes, autocast, and numbers that are not tensors.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

const std::vector<Shape> kTwo = {{16, kDim}, {kDim, 16}};

at::Tensor two_linears(const at::Tensor& x, const Parts& p) {
  return at::linear(at::gelu(at::linear(x, p[0])), p[1]);
}

std::vector<Hazard> types() {
  return {
      hazard("bfloat16 throughout", kTwo, two_linears, {.dtype = at::kBFloat16}),
      hazard("half throughout", kTwo, two_linears, {.dtype = at::kHalf}),
      hazard("double throughout", kTwo, two_linears, {.dtype = at::kDouble}),
      hazard("float weights, bfloat16 compute, double sums", kTwo,
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor low = x.to(at::kBFloat16);
               const at::Tensor y = at::linear(low, p[0].to(at::kBFloat16)).relu();
               return at::linear(y.to(at::kDouble), p[1].to(at::kDouble)).to(at::kFloat);
             }),
      hazard("a weight cast twice, with three uses of the results", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor low = p[0].to(at::kBFloat16);
               const at::Tensor again = p[0].to(at::kBFloat16);
               const at::Tensor y = x.to(at::kBFloat16);
               return (at::mm(y, low) + at::mm(at::mm(y, again).sin(), low)).to(at::kFloat);
             }),
      hazard("casts to the dtype and device that a tensor already has", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]).to(at::kFloat).contiguous();
               return y.to(at::kCPU).expand({kTokens, kDim}).sin() + y.type_as(x).cos();
             }),
      hazard("integer and bool tensors between float ops", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor whole = y.detach().mul(4).to(at::kInt);
               const at::Tensor odd = whole.remainder(2).to(at::kBool);
               return y * odd + y.sin() * whole.bitwise_and(3) + y.cos() * (whole / 3);
             }),
      hazard("scalar operands and zero-dimensional tensors", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const double scale = 1.0 / static_cast<double>(y.size(0));
               const at::Tensor zero_dim = at::full({}, 0.3, at::TensorOptions(at::kDouble));
               return 2.0 / (y.abs() + 1) + y * scale + (3 - y) * zero_dim + at::pow(2.0, y) +
                      at::pow(y.abs() + 1, 1.5) + at::add(y, 1, 2) - at::rsub(y, 1);
             }),
      hazard("masked NaN values", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor root = at::nan_to_num(at::sqrt(y.detach()), 0.25);
               return at::where(y > 0, y.abs().add(1).sqrt(), y) * root;
             }),
      hazard("weights quantized by rounding", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor scale = p[0].detach().abs().amax(1, true) / 7;
               const at::Tensor levels = at::round(p[0] / scale).clamp(-8, 7) * scale;
               return at::linear(x, p[0] + (levels - p[0]).detach()).sin();
             }),
      hazard("per-channel fake quantization of weights", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor scale = p[0].detach().abs().amax(1) / 7;
               const at::Tensor zero = at::zeros({kDim}, at::TensorOptions(at::kInt));
               return at::linear(x,
                                 at::fake_quantize_per_channel_affine(p[0], scale, zero, 0, -8, 7));
             }),
      hazard("tensors in oneDNN's layout", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               return at::gelu(y.to_mkldnn().to_dense()) * y.detach().to_mkldnn().to_dense().sin();
             }),
      hazard("quantized intermediate values", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor y = at::mm(x, p[0]);
               const at::Tensor low = at::quantize_per_tensor(y.detach(), 0.05, 0, at::kQInt8);
               return y * low.dequantize() + at::relu(low).dequantize();
             }),
      hazard("weights stored as bytes and unpacked in the layer", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor packed = p.buffers[0].to(at::kChar);
               const at::Tensor weight = packed.to(at::kFloat).mul(0.1);
               return at::mm(x, p[0]) + at::mm(x.sin(), weight);
             },
             {.buffers = {{kDim, kDim}}}),
  };
}

// Sets autocast while this object lives.
class Autocast {
 public:
  explicit Autocast(bool enabled, at::ScalarType dtype = at::kBFloat16)
      : was_enabled_(at::autocast::is_autocast_enabled(at::kCPU)),
        was_dtype_(at::autocast::get_autocast_dtype(at::kCPU)) {
    at::autocast::set_autocast_enabled(at::kCPU, enabled);
    at::autocast::set_autocast_dtype(at::kCPU, dtype);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, was_enabled_);
    at::autocast::set_autocast_dtype(at::kCPU, was_dtype_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool was_enabled_;
  at::ScalarType was_dtype_;
};

std::vector<Hazard> autocasts() {
  return {
      hazard("autocast to bfloat16 around a layer", kTwo,
             [](const at::Tensor& x, const Parts& p) {
               const Autocast autocast(true);
               return two_linears(x, p);
             }),
      hazard("autocast to half that is disabled and enabled again", kTwo,
             [](const at::Tensor& x, const Parts& p) {
               const Autocast autocast(true, at::kHalf);
               const at::Tensor y = at::linear(x, p[0]);
               at::Tensor z;
               {
                 const Autocast off(false);
                 z = at::softmax(y.to(at::kFloat), -1);
               }
               return at::linear(z, p[1]) + at::linear(y.sin(), p[1]);
             }),
      hazard("a weight whose cast is in autocast's cache", {{kDim, kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const Autocast autocast(true);
               const at::Tensor y = at::mm(x, p[0]);
               return at::mm(at::mm(y.sin(), p[0]).cos(), p[0]);
             }),
      hazard("autocast around norms, softmax and a loss", {{kDim, kDim}, {kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const Autocast autocast(true);
               const at::Tensor y = at::layer_norm(at::mm(x, p[0]), {kDim}, p[1]);
               return at::softmax(y, -1) *
                      at::mse_loss(y, at::zeros_like(y), at::Reduction::None).to(at::kFloat);
             }),
      {"autocast around the whole forward, with one cache for all layers",
       [] {
         const auto shared = std::make_shared<std::unique_ptr<Autocast>>();
         Model model = layers_of({}, [](const at::Tensor& x, const Parts&) { return x; });
         const at::Tensor weight = leaf({kDim, kDim});
         model.parameters = {weight};
         model.layers.clear();
         for (int layer = 0; layer < 3; ++layer) {
           model.layers.push_back([=](const at::Tensor& x) {
             if (layer == 0) *shared = std::make_unique<Autocast>(true);
             const at::Tensor y = at::mm(x.sin(), weight);
             if (layer == 2) shared->reset();
             return y;
           });
         }
         return model;
       }},
  };
}

}  // namespace

std::vector<Hazard> dtype_hazards() {
  std::vector<Hazard> all = types();
  for (Hazard& hazard : autocasts()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
