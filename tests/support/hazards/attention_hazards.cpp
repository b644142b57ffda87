// Attention with every kind of mask, grouped heads, caches and positions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include "models/scope/scope.h"
#include "tests/support/hazards/hazard.h"

namespace rematch::testing::hazards {
namespace {

const std::vector<Shape> kQkv = {{3 * kDim, kDim}};

struct Heads {
  at::Tensor q, k, v;
};

// Two heads of width 4 from one fused projection.
Heads heads_of(const at::Tensor& x, const at::Tensor& weight) {
  const auto parts = at::chunk(at::linear(x, weight), 3, 1);
  const auto split = [](const at::Tensor& y) { return y.view({1, kTokens, 2, 4}).transpose(1, 2); };
  return {split(parts[0]), split(parts[1]), split(parts[2])};
}

at::Tensor joined(const at::Tensor& heads) {
  return heads.transpose(1, 2).reshape({kTokens, kDim});
}

using Attend = std::function<at::Tensor(const Heads&)>;

Hazard attending(const std::string& name, const Attend& attend, const Options& options = {}) {
  return hazard(
      name, kQkv,
      [attend](const at::Tensor& x, const Parts& p) {
        const Heads heads = heads_of(x, p[0]);
        const Scope scope("attention");
        return joined(attend(heads));
      },
      options);
}

at::Tensor causal_mask() { return at::ones({kTokens, kTokens}).tril().to(at::kBool); }

std::vector<Hazard> fused() {
  return {
      attending("attention, causal",
                [](const Heads& h) {
                  return at::scaled_dot_product_attention(h.q, h.k, h.v, {}, 0.0, true);
                }),
      attending("attention with a boolean mask",
                [](const Heads& h) {
                  return at::scaled_dot_product_attention(h.q, h.k, h.v, causal_mask());
                }),
      attending("attention with a bias that grows with distance (ALiBi)",
                [](const Heads& h) {
                  const at::Tensor distance =
                      at::arange(kTokens).unsqueeze(0) - at::arange(kTokens).unsqueeze(1);
                  const at::Tensor bias = distance.to(at::kFloat).mul(0.1).expand({1, 2, -1, -1});
                  return at::scaled_dot_product_attention(h.q, h.k, h.v, bias, 0.0, false, 0.3);
                }),
      hazard("attention with a learned bias", {{3 * kDim, kDim}, {1, 2, kTokens, kTokens}},
             [](const at::Tensor& x, const Parts& p) {
               const Heads h = heads_of(x, p[0]);
               return joined(at::scaled_dot_product_attention(h.q, h.k, h.v, p[1]));
             }),
      attending("attention with grouped heads",
                [](const Heads& h) {
                  return at::scaled_dot_product_attention(
                      h.q, h.k.slice(1, 0, 1), h.v.slice(1, 0, 1), {}, 0.0, true, {}, true);
                }),
      attending("attention in double precision",
                [](const Heads& h) {
                  return at::scaled_dot_product_attention(h.q, h.k, h.v, {}, 0.0, true);
                },
                {.dtype = at::kDouble}),
      attending("attention in bfloat16",
                [](const Heads& h) {
                  return at::scaled_dot_product_attention(h.q, h.k, h.v, {}, 0.0, true);
                },
                {.dtype = at::kBFloat16}),
      attending("cross attention with more keys than queries",
                [](const Heads& h) {
                  const at::Tensor keys = at::cat({h.k, h.k.sin()}, 2);
                  return at::scaled_dot_product_attention(h.q, keys, at::cat({h.v, h.v}, 2));
                }),
  };
}

std::vector<Hazard> by_hand() {
  return {
      attending("hand-written attention with an in-place softmax",
                [](const Heads& h) {
                  at::Tensor scores = at::matmul(h.q, h.k.transpose(2, 3));
                  scores.div_(2.0).masked_fill_(causal_mask().logical_not(), -1e9);
                  return at::matmul(at::softmax(scores, -1), h.v);
                }),
      attending("attention in a window",
                [](const Heads& h) {
                  const at::Tensor window = causal_mask().logical_and(
                      at::ones({kTokens, kTokens}).triu(-2).to(at::kBool));
                  const at::Tensor scores =
                      at::where(window, at::matmul(h.q, h.k.transpose(2, 3)), at::full({}, -1e9));
                  return at::matmul(at::softmax(scores, -1, at::kDouble).to(at::kFloat), h.v);
                }),
      attending("chunked attention with a running maximum",
                [](const Heads& h) {
                  at::Tensor most = at::full({1, 2, kTokens, 1}, -1e9);
                  at::Tensor sum = at::zeros_like(most);
                  at::Tensor out = at::zeros_like(h.q);
                  for (std::int64_t first = 0; first < kTokens; first += 2) {
                    const at::Tensor scores =
                        at::matmul(h.q, h.k.slice(2, first, first + 2).transpose(2, 3));
                    const at::Tensor next = at::maximum(most, scores.amax(-1, true));
                    const at::Tensor weights = at::exp(scores - next);
                    const at::Tensor keep = at::exp(most - next);
                    sum = sum * keep + weights.sum(-1, true);
                    out = out * keep + at::matmul(weights, h.v.slice(2, first, first + 2));
                    most = next;
                  }
                  return out / sum;
                }),
      hazard("attention that reads the cache it writes", kQkv,
             [](const at::Tensor& x, const Parts& p) {
               const Heads h = heads_of(x, p[0]);
               at::Tensor cache = p.buffers[0];
               cache.slice(2, kTokens, 2 * kTokens).copy_(h.k.detach());
               const at::Tensor keys = cache.clone();
               return joined(at::scaled_dot_product_attention(
                   h.q, at::cat({keys.slice(2, 0, kTokens), h.k}, 2), at::cat({h.v, h.v}, 2)));
             },
             {.buffers = {{1, 2, 2 * kTokens, 4}}}),
      hazard("multi-head attention as one native op", {{3 * kDim, kDim}, {3 * kDim}},
             [](const at::Tensor& x, const Parts& p) {
               const at::Tensor qkv = at::linear(x, p[0], p[1]);
               const auto parts = qkv.view({kTokens, 3, 2, 4}).permute({1, 2, 0, 3}).unbind(0);
               const at::Tensor scores = at::bmm(parts[0], parts[1].transpose(1, 2)) * 0.5;
               const at::Tensor out = at::bmm(at::_softmax(scores, -1, false), parts[2]);
               return out.transpose(0, 1).reshape({kTokens, kDim});
             }),
  };
}

}  // namespace

std::vector<Hazard> attention_hazards() {
  std::vector<Hazard> all = fused();
  for (Hazard& hazard : by_hand()) all.push_back(std::move(hazard));
  return all;
}

}  // namespace rematch::testing::hazards
