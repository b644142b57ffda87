// Shapes: B sequences, S one rank's tokens of a sequence, N all tokens of a sequence, H heads, G
// key heads, E head dim, n ranks.
#include "models/layers/context_parallel.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/attention/chunked_attention.h"
#include "kernels/collectives/collectives.h"
#include "kernels/op/op.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor as_tensor(const std::vector<std::int64_t>& values, at::Device device) {
  const auto options = at::TensorOptions().dtype(at::kLong);
  const auto size = static_cast<std::int64_t>(values.size());
  if (device.is_meta()) return at::empty({size}, options.device(device));
  const at::Tensor tensor = at::empty({size}, options);
  std::copy(values.begin(), values.end(), tensor.data_ptr<std::int64_t>());
  return tensor.to(device);
}

// Returns, for each chunk of each sequence, its row among the gathered chunks. Rows are in the
// order of ranks, then sequences, then the two chunks of a rank.
std::vector<std::int64_t> rows_of_chunks(std::int64_t batch, std::int64_t num_ranks) {
  std::vector<std::int64_t> rows(batch * 2 * num_ranks);
  for (std::int64_t rank = 0; rank < num_ranks; ++rank) {
    const std::vector<std::int64_t> chunks = chunks_of_rank({"cp", num_ranks, rank});
    for (std::int64_t sequence = 0; sequence < batch; ++sequence) {
      for (std::int64_t half = 0; half < 2; ++half) {
        rows[sequence * 2 * num_ranks + chunks[half]] = (rank * batch + sequence) * 2 + half;
      }
    }
  }
  return rows;
}

std::vector<std::int64_t> inverse_of(const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[permutation[i]] = static_cast<std::int64_t>(i);
  }
  return inverse;
}

// Gathers the tokens of all ranks, in the order of the sequence: [B, S, G, E] -> [B, N, G, E].
// Backward sums the gradient over the ranks and returns the sum of this rank's tokens.
struct GatherChunks : torch::autograd::Function<GatherChunks> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_BSGE,
                            const at::Tensor& order, const at::Tensor& inverse,
                            const std::string& group) {
    const std::int64_t batch = x_BSGE.size(0);
    const std::int64_t num_ranks = order.size(0) / (2 * batch);
    context->saved_data["inverse"] = inverse;
    context->saved_data["num_ranks"] = num_ranks;
    context->saved_data["group"] = group;
    const at::AutoDispatchBelowADInplaceOrView below;
    at::Tensor all = collectives::all_gather(x_BSGE.contiguous(), num_ranks, group);
    all = at::index_select(all.view({order.size(0), -1}), 0, order);
    return all.view({batch, num_ranks * x_BSGE.size(1), x_BSGE.size(2), x_BSGE.size(3)});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const at::Tensor inverse = context->saved_data["inverse"].toTensor();
    const std::int64_t num_ranks = context->saved_data["num_ranks"].toInt();
    at::Tensor gradient_BNGE = gradients[0].contiguous();
    const std::int64_t batch = gradient_BNGE.size(0), tokens = gradient_BNGE.size(1) / num_ranks;
    at::Tensor rows = at::index_select(gradient_BNGE.view({inverse.size(0), -1}), 0, inverse);
    rows = rows.view({num_ranks * batch, tokens, gradient_BNGE.size(2), gradient_BNGE.size(3)});
    gradients[0].reset();
    gradient_BNGE.reset();
    return {
        collectives::reduce_scatter(rows, num_ranks, context->saved_data["group"].toStringRef()),
        at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

// The part of a ring that one rank runs: see Note [Ring of keys and values]. Pairs of keys and
// values are one tensor [2, B, S, G, E].
class Ring {
 public:
  explicit Ring(const RankAxis& axis) : axis_(axis), own_(chunks_of_rank(axis)) {}

  // Returns the result of attention to the keys of all ranks.
  RingResult forward(const at::Tensor& q_BSHE, const at::Tensor& k, const at::Tensor& v) const {
    const at::Tensor q = q_BSHE.transpose(1, 2);
    at::Tensor pair = at::stack({k, v});
    RingResult result;
    for (std::int64_t step = 0; step < axis_.size; ++step) {
      const bool is_last = step + 1 == axis_.size;
      const at::Tensor next = is_last ? at::Tensor() : start(pair);
      const at::Tensor keys = part(pair, 0);
      const at::Tensor values = part(pair, 1);
      const std::vector<std::int64_t> chunks = chunks_in(step);
      std::tie(result.out, result.logsumexp) =
          is_last ? ring_attention(q, keys, values, result, own_, chunks)
                  : ring_attention_step(q, keys, values, result, own_, chunks);
      if (!is_last) pair = collectives::end_shift(next, pair.sizes());
    }
    return result;
  }

  // Returns the gradients of q, k and v.
  std::vector<at::Tensor> backward(const at::Tensor& grad_out, const at::Tensor& q_BSHE,
                                   const at::Tensor& k, const at::Tensor& v,
                                   const RingResult& result) const {
    const at::Tensor q = q_BSHE.transpose(1, 2);
    at::Tensor pair = at::stack({k, v});
    at::Tensor grad_q, grad_pair, started;  // sums in float32
    for (std::int64_t step = 0; step < axis_.size; ++step) {
      const bool is_last = step + 1 == axis_.size;
      const at::Tensor next = is_last ? at::Tensor() : start(pair);
      std::vector<at::Tensor> parts = chunked_attention_gradients(
          grad_out, q, part(pair, 0), part(pair, 1), result, own_, chunks_in(step));
      at::Tensor of_pair = at::stack({parts[1].transpose(1, 2), parts[2].transpose(1, 2)});
      if (step == 0) {
        grad_q = parts[0].to(kernels::sum_dtype(q.scalar_type()));
        grad_pair = of_pair.to(grad_q.scalar_type());
      } else {
        grad_q.add_(parts[0]);
        grad_pair = collectives::end_shift(started, pair.sizes());
        grad_pair.add_(of_pair);
      }
      started = start(grad_pair);
      if (!is_last) pair = collectives::end_shift(next, pair.sizes());
    }
    grad_pair = collectives::end_shift(started, pair.sizes()).to(k.scalar_type());
    grad_q = grad_q.to(q.scalar_type());
    return {grad_q.transpose(1, 2), grad_pair.select(0, 0), grad_pair.select(0, 1)};
  }

 private:
  at::Tensor start(const at::Tensor& x) const {
    return collectives::start_shift(x, axis_.position, axis_.size, axis_.name);
  }
  static at::Tensor part(const at::Tensor& pair, std::int64_t index) {
    return pair.select(0, index).transpose(1, 2);
  }
  // Returns the chunks that this rank has in a step. They belong to the rank that is `step`
  // positions before it.
  std::vector<std::int64_t> chunks_in(std::int64_t step) const {
    return chunks_of_rank(
        {axis_.name, axis_.size, (axis_.position + axis_.size - step) % axis_.size});
  }

  RankAxis axis_;
  std::vector<std::int64_t> own_;
};

at::Tensor ring_attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                       const RankAxis& axis) {
  const Ring ring(axis);
  const kernels::Derivative derivative = {
      .inputs = {q, k, v},
      .kept = {q, k, v},
      .formula =
          [ring](const kernels::Saved& saved) {
            return ring.backward(saved.grad, saved.kept[0], saved.kept[1], saved.kept[2],
                                 {saved.outputs[0], saved.outputs[1]});
          },
      .reads_first_output = true};
  return kernels::differentiate("RematchRingAttentionBackward", derivative,
                                [&] {
                                  const RingResult result = ring.forward(q, k, v);
                                  return std::vector<at::Tensor>{result.out, result.logsumexp};
                                })
      .front();
}

}  // namespace

std::vector<std::int64_t> chunks_of_rank(const RankAxis& cp) {
  return {cp.position, 2 * cp.size - 1 - cp.position};
}

at::Tensor take_own_chunks(const at::Tensor& x, std::int64_t dim, const RankAxis& cp) {
  if (!cp.is_split()) return x;
  const std::int64_t length = x.size(dim) / (2 * cp.size);
  std::vector<at::Tensor> chunks;
  for (const std::int64_t chunk : chunks_of_rank(cp)) {
    chunks.push_back(x.narrow(dim, chunk * length, length));
  }
  return at::cat(chunks, dim);
}

ContextParallel::ContextParallel(const ModelSpec& spec, at::Device device)
    : axis_(rank_axis(spec, "cp")) {
  if (!axis_.is_split()) return;
  is_ring_ = spec.option("ring") == 1;
  own_chunks_ = chunks_of_rank(axis_);
  all_chunks_.resize(2 * axis_.size);
  std::iota(all_chunks_.begin(), all_chunks_.end(), 0);
  const std::vector<std::int64_t> rows = rows_of_chunks(spec.at("batch"), axis_.size);
  order_ = as_tensor(rows, device);
  inverse_ = as_tensor(inverse_of(rows), device);
}

at::Tensor ContextParallel::attend(at::Tensor q, at::Tensor k, at::Tensor v) const {
  if (is_ring_) return ring_attend(q, k, v, axis_);
  return attend_to_gathered(std::move(q), std::move(k), std::move(v));
}

at::Tensor ContextParallel::attend_to_gathered(at::Tensor q, at::Tensor k, at::Tensor v) const {
  k = GatherChunks::apply(k, order_, inverse_, axis_.name);
  v = GatherChunks::apply(v, order_, inverse_, axis_.name);
  q = q.transpose(1, 2);
  k = k.transpose(1, 2);
  v = v.transpose(1, 2);
  return std::get<0>(chunked_attention(q, k, v, own_chunks_, all_chunks_));
}

}  // namespace rematch
