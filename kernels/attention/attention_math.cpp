#include "kernels/attention/attention_variants.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/op/op.h"

// Shapes: B batch, G key heads, N query heads per key head, H = G N query heads, S queries, T keys,
// D width of a head.
namespace rematch::kernels {
namespace {

// Groups the heads of q that share a key head, so that keys need not be repeated.
at::Tensor rows_of(const at::Tensor& x_BHSD, const at::Tensor& k) {
  const at::ScalarType sums = sum_dtype(x_BHSD.scalar_type());
  return x_BHSD.to(sums).reshape({x_BHSD.size(0), k.size(1), -1, x_BHSD.size(3)});
}

at::Tensor wide(const at::Tensor& x) { return x.to(sum_dtype(x.scalar_type())); }

double scale_of(const at::Tensor& q, const Attention& how) {
  return how.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(3))));
}

at::Tensor scores_BHST(const at::Tensor& q, const at::Tensor& k, const Attention& how) {
  at::Tensor scores = at::matmul(rows_of(q, k), wide(k).transpose(2, 3)).mul_(scale_of(q, how));
  scores = scores.view({q.size(0), q.size(1), q.size(2), k.size(2)});
  if (how.mask.defined()) scores.add_(how.mask);
  if (how.causal) {
    const at::Tensor hidden_ST =
        at::ones({q.size(2), k.size(2)}, q.options().dtype(at::kBool)).triu_(/*diagonal=*/1);
    scores.masked_fill_(hidden_ST, -std::numeric_limits<double>::infinity());
  }
  return scores;
}

// Lays out a gradient as [batch, tokens, heads, head_dim] in memory, as the CPU's flash op does.
at::Tensor gradient(const at::Tensor& rows, const at::Tensor& input) {
  const at::Tensor result =
      at::empty({input.size(0), input.size(2), input.size(1), input.size(3)}, input.options())
          .transpose(1, 2);
  result.copy_(rows.view(input.sizes()));
  return result;
}

}  // namespace

AttentionForward math_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                const Attention& how) {
  at::Tensor scores = scores_BHST(q, k, how);
  const at::Tensor sums_BHS = at::logsumexp(scores, /*dim=*/-1);
  const at::Tensor shares = scores.sub_(sums_BHS.unsqueeze(-1)).exp_();
  const at::Tensor rows = at::matmul(shares.view({q.size(0), k.size(1), -1, k.size(2)}), wide(v));
  const at::Tensor out = at::empty_like(q);
  out.copy_(rows.view(q.sizes()));
  const at::Tensor logsumexp_BSH = at::empty({q.size(0), q.size(2), q.size(1)}, sums_BHS.options());
  const at::Tensor logsumexp = logsumexp_BSH.transpose(1, 2);
  logsumexp.copy_(sums_BHS);
  return {out, logsumexp};
}

AttentionBackward math_attention_backward(const at::Tensor& grad_out, const at::Tensor& q,
                                          const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& out, const at::Tensor& logsumexp,
                                          const Attention& how) {
  const std::vector<std::int64_t> grouped = {q.size(0), k.size(1),
                                             q.size(1) / k.size(1) * q.size(2), k.size(2)};
  const at::Tensor shares =
      scores_BHST(q, k, how).sub_(logsumexp.unsqueeze(-1)).exp_().view(grouped);
  const at::Tensor grad_rows = rows_of(grad_out, k);
  const at::Tensor grad_v = at::matmul(shares.transpose(2, 3), grad_rows);
  // The gradient of softmax is probability * (gradient - mean gradient of the row), where the mean
  // is weighted by probability.
  const at::Tensor mean = (grad_rows * rows_of(out, k)).sum(-1, /*keepdim=*/true);
  at::Tensor grad_scores = at::matmul(grad_rows, wide(v).transpose(2, 3));
  grad_scores = grad_scores.sub_(mean).mul_(shares).mul_(scale_of(q, how));
  const at::Tensor grad_q = at::matmul(grad_scores, wide(k));
  const at::Tensor grad_k = at::matmul(grad_scores.transpose(2, 3), rows_of(q, k));
  return {gradient(grad_q, q), gradient(grad_k, k), gradient(grad_v, v)};
}

}  // namespace rematch::kernels
