// Shapes: B batch, N all ranks' tokens, S one rank's tokens of a sequence, H heads, E head dim, D
// dim, n ranks.
#include "models/layers/collectives.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/clone.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

#include "kernels/collectives/collectives.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor reduced(const at::Tensor& x, const RankAxis& axis) {
  return collectives::all_reduce(x.contiguous(), axis.name);
}
// Collectives need each rank's rows to be contiguous. A single sequence needs no copy, because its
// rows are already in rank order. In a batch, every rank has tokens of every sequence, so `clone`
// reorders the rows. `contiguous` may return its argument, so a recorder below autograd would not
// record the bytes of the copy.
bool is_batched(const at::Tensor& x) { return x.dim() == 3; }
at::Tensor batch_first(at::Tensor x, std::int64_t num_ranks) {  // [n B, S, D] -> [B, N, D]
  const std::int64_t batch = x.size(0) / num_ranks, tokens = x.size(1);
  x = x.view({num_ranks, batch, tokens, x.size(2)});
  x = x.permute({1, 0, 2, 3});
  if (!x.is_contiguous()) x = at::clone(x, at::MemoryFormat::Contiguous);
  return x.view({batch, num_ranks * tokens, x.size(3)});
}
at::Tensor ranks_first(at::Tensor x, std::int64_t num_ranks) {  // [B, N, D] -> [n B, S, D]
  const std::int64_t batch = x.size(0), tokens = x.size(1) / num_ranks;
  x = x.view({batch, num_ranks, tokens, x.size(2)});
  x = x.permute({1, 0, 2, 3});
  if (!x.is_contiguous()) x = at::clone(x, at::MemoryFormat::Contiguous);
  return x.view({num_ranks * batch, tokens, x.size(3)});
}
at::Tensor gathered(const at::Tensor& x, const RankAxis& axis) {
  at::Tensor all = collectives::all_gather(x.contiguous(), axis.size, axis.name);
  return is_batched(x) ? batch_first(std::move(all), axis.size) : all;
}
at::Tensor scattered(const at::Tensor& x, const RankAxis& axis) {
  at::Tensor rows = x.contiguous();
  if (is_batched(x)) rows = ranks_first(std::move(rows), axis.size);
  return collectives::reduce_scatter(rows, axis.size, axis.name);
}
at::Tensor as_it_is(const at::Tensor& x, const RankAxis& /*axis*/) { return x; }
at::Tensor viewed(const at::Tensor& x, const RankAxis& /*axis*/) { return x.view(x.sizes()); }
// Returns a copy, because a view would keep the rows of all ranks alive.
at::Tensor rows_of_rank(const at::Tensor& x, const RankAxis& axis) {
  const std::int64_t dim = is_batched(x) ? 1 : 0;
  const std::int64_t num_rows = x.size(dim) / axis.size;
  const at::Tensor rows = x.narrow(dim, axis.position * num_rows, num_rows);
  return at::clone(rows, at::MemoryFormat::Contiguous);
}

// Forward runs one function below autograd, and backward runs the inverse function on the gradient.
using Call = at::Tensor (*)(const at::Tensor&, const RankAxis&);
template <Call forward_call, Call backward_call>
struct Collective : torch::autograd::Function<Collective<forward_call, backward_call>> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const RankAxis& axis) {
    context->saved_data["name"] = axis.name;
    context->saved_data["size"] = axis.size;
    context->saved_data["position"] = axis.position;
    const at::AutoDispatchBelowADInplaceOrView below;
    return forward_call(x, axis);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const RankAxis axis{context->saved_data["name"].toStringRef(),
                        context->saved_data["size"].toInt(),
                        context->saved_data["position"].toInt()};
    return {backward_call(gradients[0], axis), at::Tensor()};
  }
};

template <Call forward_call, Call backward_call>
at::Tensor apply(at::Tensor x, const RankAxis& axis) {
  if (!axis.is_split()) return x;
  return Collective<forward_call, backward_call>::apply(x, axis);
}

struct Exchange : torch::autograd::Function<Exchange> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const std::vector<std::int64_t>& output_rows,
                            const std::vector<std::int64_t>& input_rows, const std::string& group) {
    context->saved_data["output_rows"] = output_rows;
    context->saved_data["input_rows"] = input_rows;
    context->saved_data["group"] = group;
    const at::AutoDispatchBelowADInplaceOrView below;
    return collectives::all_to_all(x.contiguous(), output_rows, input_rows, group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {collectives::all_to_all(gradients[0].contiguous(),
                                    context->saved_data["input_rows"].toIntVector(),
                                    context->saved_data["output_rows"].toIntVector(),
                                    context->saved_data["group"].toStringRef()),
            at::Tensor(), at::Tensor(), at::Tensor()};
  }
};

struct GatherShards : torch::autograd::Function<GatherShards> {
  static variable_list forward(AutogradContext* context, at::TensorList shards, std::int64_t size,
                               const std::string& group) {
    context->saved_data["size"] = size;
    context->saved_data["group"] = group;
    const at::AutoDispatchBelowADInplaceOrView below;
    return collectives::all_gather(shards.vec(), size, group);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    for (at::Tensor& gradient : gradients) gradient = gradient.contiguous();
    variable_list result = collectives::reduce_scatter(gradients, collectives::Reduction::kMean,
                                                       context->saved_data["size"].toInt(),
                                                       context->saved_data["group"].toStringRef());
    result.insert(result.end(), 2, at::Tensor());
    return result;
  }
};

at::Tensor exchange_evenly(const at::Tensor& x, const RankAxis& axis) {
  const std::vector<std::int64_t> rows(axis.size, x.size(0) / axis.size);
  return exchange(x, rows, rows, axis);
}

}  // namespace

at::Tensor reduce(at::Tensor x, const RankAxis& axis) {
  return apply<reduced, as_it_is>(std::move(x), axis);
}
at::Tensor copy(at::Tensor x, const RankAxis& axis) {
  return apply<viewed, reduced>(std::move(x), axis);
}
at::Tensor gather(at::Tensor x, const RankAxis& axis) {
  return apply<gathered, scattered>(std::move(x), axis);
}
at::Tensor scatter(at::Tensor x, const RankAxis& axis) {
  return apply<scattered, gathered>(std::move(x), axis);
}
at::Tensor gather_alike(at::Tensor x, const RankAxis& axis) {
  return apply<gathered, rows_of_rank>(std::move(x), axis);
}
at::Tensor own_rows(at::Tensor x, const RankAxis& axis) {
  return apply<rows_of_rank, gathered>(std::move(x), axis);
}

at::Tensor exchange(at::Tensor x, const std::vector<std::int64_t>& output_rows,
                    const std::vector<std::int64_t>& input_rows, const RankAxis& axis) {
  if (!axis.is_split()) return x;
  return Exchange::apply(x, output_rows, input_rows, axis.name);
}

// Permutes rows so that all rows for one rank, or all rows from one rank, are contiguous.
at::Tensor tokens_to_heads(at::Tensor x, const RankAxis& axis) {
  if (!axis.is_split()) return x;
  const std::int64_t batch = x.size(0), tokens = x.size(1);
  const std::int64_t heads = x.size(2) / axis.size, head_dim = x.size(3);
  x = x.view({batch, tokens, axis.size, heads, head_dim});
  x = x.permute({2, 0, 1, 3, 4});
  x = x.contiguous();
  x = x.view({axis.size * batch * tokens, heads, head_dim});
  x = exchange_evenly(x, axis);
  x = x.view({axis.size, batch, tokens, heads, head_dim});
  x = x.permute({1, 0, 2, 3, 4});
  x = x.contiguous();
  return x.view({batch, axis.size * tokens, heads, head_dim});
}

at::Tensor heads_to_tokens(at::Tensor x, const RankAxis& axis) {
  if (!axis.is_split()) return x;
  const std::int64_t batch = x.size(0), tokens = x.size(1) / axis.size;
  const std::int64_t heads = x.size(2), head_dim = x.size(3);
  x = x.view({batch, axis.size, tokens, heads, head_dim});
  x = x.permute({1, 0, 2, 3, 4});
  x = x.contiguous();
  x = x.view({axis.size * batch * tokens, heads, head_dim});
  x = exchange_evenly(x, axis);
  x = x.view({axis.size, batch, tokens, heads, head_dim});
  x = x.permute({1, 2, 0, 3, 4});
  x = x.contiguous();
  return x.view({batch, tokens, axis.size * heads, head_dim});
}

std::vector<at::Tensor> gather_shards(const std::vector<at::Tensor>& shards, const RankAxis& axis) {
  return GatherShards::apply(at::TensorList(shards), axis.size, axis.name);
}

at::Tensor enter(at::Tensor x, const TensorParallel& parallel) {
  return parallel.splits_tokens ? gather(std::move(x), parallel.axis)
                                : copy(std::move(x), parallel.axis);
}

at::Tensor leave(at::Tensor x, const TensorParallel& parallel) {
  return parallel.splits_tokens ? scatter(std::move(x), parallel.axis)
                                : reduce(std::move(x), parallel.axis);
}

}  // namespace rematch
