#include "models/llama/llama.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>
#include <numbers>

#include "tests/models/model_checks.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

// Llama in double, written as its paper and torchtitan do: complex rotation, repeated key heads,
// an explicit mask. Slow and plain.
class Reference {
 public:
  Reference(const ModelSpec& spec, std::map<std::string, at::Tensor> parameters)
      : spec_(spec), parameters_(std::move(parameters)) {}

  at::Tensor loss(const Batch& batch) const {
    at::Tensor x = get("embed.weight").index_select(0, batch.tensors[0]);
    for (std::int64_t layer = 0; layer < spec_.at("layers"); ++layer) {
      const std::string name = "blocks." + std::to_string(layer) + ".";
      x = x + attend(norm(x, name + "attention_norm.weight"), name + "attention.");
      const at::Tensor n = norm(x, name + "ffn_norm.weight");
      x = x +
          (at::silu(n.mm(get(name + "ffn.w1.weight").t())) * n.mm(get(name + "ffn.w3.weight").t()))
              .mm(get(name + "ffn.w2.weight").t());
    }
    const at::Tensor& head =
        spec_.at("tied") == 1 ? get("embed.weight") : get("head.output.weight");
    return at::cross_entropy_loss(norm(x, "head.norm.weight").mm(head.t()), batch.tensors[1]);
  }

  const std::map<std::string, at::Tensor>& parameters() const { return parameters_; }

 private:
  const at::Tensor& get(const std::string& name) const { return parameters_.at(name); }

  at::Tensor norm(const at::Tensor& x, const std::string& weight) const {
    return at::rms_norm(x, {x.size(-1)}, get(weight), 1e-5);
  }

  // e^(i * position * frequency), frequencies stretched by 8 above a wavelength of 8192, not at all
  // below 2048, and in between by a mix.
  at::Tensor turns(std::int64_t tokens, std::int64_t head_dim) const {
    std::vector<double> angles;
    for (std::int64_t token = 0; token < tokens; ++token) {
      for (std::int64_t pair = 0; pair < head_dim / 2; ++pair) {
        double frequency =
            std::pow(500'000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(head_dim));
        const double wavelength = 2 * std::numbers::pi / frequency;
        if (wavelength > 8192) {
          frequency /= 8;
        } else if (wavelength > 2048) {
          const double kept = (8192 / wavelength - 1) / 3;
          frequency = frequency * (kept + (1 - kept) / 8);
        }
        angles.push_back(static_cast<double>(token) * frequency);
      }
    }
    const at::Tensor angle = at::from_blob(angles.data(), {tokens, 1, head_dim / 2},
                                           at::TensorOptions().dtype(at::kDouble))
                                 .clone();
    return at::polar(at::ones_like(angle), angle);
  }

  at::Tensor turn(const at::Tensor& x) const {
    const at::Tensor pairs = x.reshape({x.size(0), x.size(1), x.size(2), x.size(3) / 2, 2});
    const at::Tensor turned = at::view_as_complex(pairs) * turns(x.size(1), x.size(3));
    return at::view_as_real(turned).reshape(x.sizes());
  }

  at::Tensor attend(const at::Tensor& x, const std::string& name) const {
    const std::int64_t batch = spec_.at("batch"), tokens = spec_.at("tokens"),
                       heads = spec_.at("heads");
    const std::int64_t repeats = heads / spec_.at("kv_heads"), head_dim = spec_.at("dim") / heads;
    const auto heads_of = [&](const char* weight) {
      return x.mm(get(name + weight + ".weight").t()).view({batch, tokens, -1, head_dim});
    };
    const at::Tensor q = turn(heads_of("wq")).transpose(1, 2);
    const at::Tensor k = turn(heads_of("wk")).repeat_interleave(repeats, 2).transpose(1, 2);
    const at::Tensor v = heads_of("wv").repeat_interleave(repeats, 2).transpose(1, 2);
    const at::Tensor mask =
        at::full({tokens, tokens}, -INFINITY, q.options().requires_grad(false)).triu(1);
    const at::Tensor scores =
        q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(head_dim)) + mask;
    const at::Tensor out = scores.softmax(-1).matmul(v).transpose(1, 2);
    return out.reshape({batch * tokens, heads * head_dim}).mm(get(name + "wo.weight").t());
  }

  ModelSpec spec_;
  std::map<std::string, at::Tensor> parameters_;
};

}  // namespace

TEST_CASE("Llama's loss and gradients are those of a plain one in double") {
  for (const std::int64_t tied : {0, 1}) {
    const ModelSpec spec = spec_of("llama_small", {{"layers", 2},
                                                   {"dim", 64},
                                                   {"heads", 4},
                                                   {"kv_heads", 2},
                                                   {"ffn", 48},
                                                   {"batch", 2},
                                                   {"tokens", 33},
                                                   {"tied", tied}});
    const auto model = make_llama(spec, at::kCPU);
    const Batch batch = make_data(spec, "", 1, at::kCPU)->batch(0);
    const Reference reference(spec, parameters_in_double(*model));
    check_against_reference(*model, batch, reference.loss(batch), reference.parameters());
  }
}

// 3 layers x 9 + embedding + norm + head; tied: no head of its own.
TEST_CASE("a tied head has no weight of its own") {
  CHECK(make_llama(spec_of("llama_small", {{"layers", 3}}), at::kMeta)->parameters().size() == 30);
  CHECK(make_llama(spec_of("llama_small", {{"layers", 3}, {"tied", 1}}), at::kMeta)
            ->parameters()
            .size() == 29);
}
