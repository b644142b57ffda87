// Letters in shapes: T is tokens, D is width, V is classes, C is the classes of one chunk.
#include "kernels/fused/linear_cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/log.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

#include "kernels/op/op.h"

namespace rematch::kernels {
namespace {

// Number of logits in a chunk on a CPU: small enough to stay in the cache, large enough for an
// efficient matmul.
constexpr std::int64_t kChunkElements = std::int64_t{1} << 19;
constexpr std::int64_t kMinClasses = 256;
// Number of logits in a chunk on a GPU: 256 MiB in bfloat16, enough for a matmul that uses the
// whole device.
constexpr std::int64_t kChunkElementsOnCuda = std::int64_t{1} << 27;
constexpr std::int64_t kMinClassesOnCuda = 8192;
// The number of classes per chunk is a multiple of this constant, so that each row is a whole
// number of 16-byte vectors.
constexpr std::int64_t kAlignedClasses = 8;

void check_inputs(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& target) {
  TORCH_CHECK(x.dim() == 2 && weight.dim() == 2 && target.dim() == 1 &&
                  x.size(1) == weight.size(1) && x.size(0) == target.size(0),
              "rematch::linear_cross_entropy: x must be [tokens, width], weight [classes, width], "
              "target [tokens]; found ",
              x.sizes(), ", ", weight.sizes(), ", ", target.sizes());
  TORCH_CHECK(x.scalar_type() == weight.scalar_type() && target.scalar_type() == at::kLong,
              "rematch::linear_cross_entropy: x and weight must have the same dtype, target must "
              "be int64; found ",
              x.scalar_type(), ", ", weight.scalar_type(), ", ", target.scalar_type());
  element_of(x, "linear_cross_entropy");
}

void check_targets(const at::Tensor& target, std::int64_t classes) {
  if (!target.is_cpu()) return;
  const auto* targets = target.const_data_ptr<std::int64_t>();
  for (std::int64_t token = 0; token < target.size(0); ++token) {
    TORCH_CHECK(targets[token] >= 0 && targets[token] < classes,
                "rematch::linear_cross_entropy: target ", targets[token], " of token ", token,
                " is out of range; allowed: 0 to ", classes - 1);
  }
}

std::int64_t classes_in_chunk(at::Device device, std::int64_t tokens, std::int64_t classes) {
  const std::int64_t rows = std::max<std::int64_t>(1, tokens);
  if (!device.is_cuda()) return std::min(classes, std::max(kMinClasses, kChunkElements / rows));
  const std::int64_t fitting = kChunkElementsOnCuda / rows / kAlignedClasses * kAlignedClasses;
  return std::min(classes, std::max(kMinClassesOnCuda, fitting));
}

// Calls visit(first class, weight_CD) for each chunk in turn.
template <typename Visit>
void for_each_class_chunk(const at::Tensor& x, const at::Tensor& weight, const Visit& visit) {
  const std::int64_t classes = weight.size(0);
  const std::int64_t most = classes_in_chunk(x.device(), x.size(0), classes);
  for (std::int64_t first = 0; first < classes; first += most) {
    visit(first, weight.narrow(0, first, std::min(most, classes - first)));
  }
}

// Calls visit(first class, weight_CD, buffer_TC) for each chunk in turn. All chunks share one
// buffer.
template <typename Visit>
void for_each_buffer(const at::Tensor& x, const at::Tensor& weight, const Visit& visit) {
  const std::int64_t tokens = x.size(0);
  const std::int64_t most = classes_in_chunk(x.device(), tokens, weight.size(0));
  const at::Tensor buffer = at::empty({tokens * most}, x.options());
  for_each_class_chunk(x, weight, [&](std::int64_t first, const at::Tensor& chunk) {
    at::Tensor part = buffer.narrow(0, 0, tokens * chunk.size(0)).view({tokens, chunk.size(0)});
    visit(first, chunk, part);
  });
}

// The same with logits in the buffer.
template <typename Visit>
void for_each_chunk(const at::Tensor& x, const at::Tensor& weight, const Visit& visit) {
  for_each_buffer(x, weight, [&](std::int64_t first, const at::Tensor& chunk, at::Tensor& logits) {
    at::mm_out(logits, x, chunk.t());
    visit(first, chunk, logits);
  });
}

// Kept logits [T * V] hold one chunk after the other, each of them [T, C] and dense.
at::Tensor kept_chunk(const at::Tensor& kept, std::int64_t tokens, std::int64_t first,
                      std::int64_t count) {
  return kept.narrow(0, tokens * first, tokens * count).view({tokens, count});
}

// Adds left * right to `sum`, which may have a wider type than the factors.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() == sum.scalar_type()) {
    sum.addmm_(left, right);
  } else {
    sum.add_(at::mm(left, right));
  }
}

// The running maximum and sum of each row, over the chunks so far.
class RunningLoss {
 public:
  RunningLoss(const at::Tensor& x, const at::Tensor& target)
      : element_(element_of(x, "linear_cross_entropy")), targets_(target.contiguous()) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const auto options = x.options().dtype(sum_dtype(x.scalar_type()));
    maximum_ = at::full({x.size(0)}, -kInfinity, options);
    sum_ = at::zeros({x.size(0)}, options);
    target_logit_ = at::full({x.size(0)}, kNan, options);
  }

  void add(std::int64_t first, const at::Tensor& logits) const {
    launch(logits.device(), LogitChunk{.element = element_,
                                       .rows = logits.size(0),
                                       .width = logits.size(1),
                                       .first = first,
                                       .logits = logits.const_data_ptr(),
                                       .target = targets_.const_data_ptr<std::int64_t>(),
                                       .maximum = maximum_.mutable_data_ptr(),
                                       .sum = sum_.mutable_data_ptr(),
                                       .target_logit = target_logit_.mutable_data_ptr()});
  }

  at::Tensor logsumexp() const { return maximum_ + at::log(sum_); }
  at::Tensor loss(const at::Tensor& logsumexp) const { return (logsumexp - target_logit_).mean(); }

 private:
  Element element_;
  at::Tensor targets_, maximum_, sum_, target_logit_;
};

// Sums the gradients of x and of the weight over the chunks.
class ChunkGradients {
 public:
  using Pair = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and weight

  // Allocates the gradient of the weight, and on meta both gradients.
  ChunkGradients(const at::Tensor& grad_loss, const at::Tensor& x, const at::Tensor& weight,
                 const at::Tensor& target, const at::Tensor& logsumexp, bool needs_x,
                 bool needs_weight)
      : x_(x), logsumexp_(logsumexp), needs_x_(needs_x) {
    if (needs_weight) weight_ = at::empty(weight.sizes(), weight.options());
    if (x.is_meta()) {
      if (needs_x) sum_x_ = at::empty(x.sizes(), x.options());
      return;
    }
    const at::ScalarType wide = sum_dtype(x.scalar_type());
    if (needs_x) sum_x_ = at::zeros(x.sizes(), x.options().dtype(wide));
    targets_ = target.contiguous();
    grad_loss_ = grad_loss.to(wide);
  }

  // Replaces the logits of a chunk by their gradients, and adds their contributions. If `kept` is
  // defined, it holds the logits.
  void add(std::int64_t first, const at::Tensor& chunk, at::Tensor& logits,
           const at::Tensor& kept) {
    launch(x_.device(),
           LogitChunkBackward{.element = element_of(x_, "linear_cross_entropy"),
                              .rows = logits.size(0),
                              .width = logits.size(1),
                              .first = first,
                              .logits = logits.mutable_data_ptr(),
                              .target = targets_.const_data_ptr<std::int64_t>(),
                              .logsumexp = logsumexp_.const_data_ptr(),
                              .grad_loss = grad_loss_.const_data_ptr(),
                              .kept = kept.defined() ? kept.const_data_ptr() : nullptr});
    if (needs_x_) add_product(sum_x_, logits, chunk);
    if (!weight_.defined()) return;
    at::Tensor part = weight_.narrow(0, first, chunk.size(0));
    at::mm_out(part, logits.t(), x_);
  }

  Pair result() const { return {needs_x_ ? sum_x_.to(x_.scalar_type()) : at::Tensor(), weight_}; }

 private:
  at::Tensor x_, logsumexp_, targets_, grad_loss_, sum_x_, weight_;
  bool needs_x_;
};

struct LinearCrossEntropyOp {
  static constexpr auto kForward =
      "linear_cross_entropy(Tensor x, Tensor weight, Tensor target) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "linear_cross_entropy_backward(Tensor grad_loss, Tensor x, Tensor weight, Tensor target, "
      "Tensor logsumexp, bool needs_x, bool needs_weight) -> (Tensor, Tensor)";
  using Forward = std::tuple<at::Tensor, at::Tensor>;  // the loss and the logsumexp

  static Forward forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& target) {
    check_inputs(x, weight, target);
    const auto options = x.options().dtype(sum_dtype(x.scalar_type()));
    if (x.is_meta()) return {at::empty({}, options), at::empty({x.size(0)}, options)};
    check_targets(target, weight.size(0));
    const RunningLoss running(x, target);
    for_each_chunk(x, weight, [&](std::int64_t first, const at::Tensor&, const at::Tensor& logits) {
      running.add(first, logits);
    });
    const at::Tensor logsumexp = running.logsumexp();
    return {running.loss(logsumexp), logsumexp};
  }

  static ChunkGradients::Pair backward(const at::Tensor& grad_loss, const at::Tensor& x,
                                       const at::Tensor& weight, const at::Tensor& target,
                                       const at::Tensor& logsumexp, bool needs_x,
                                       bool needs_weight) {
    ChunkGradients gradients(grad_loss, x, weight, target, logsumexp, needs_x, needs_weight);
    if (x.is_meta()) return gradients.result();
    for_each_chunk(x, weight, [&](std::int64_t first, const at::Tensor& chunk, at::Tensor& logits) {
      gradients.add(first, chunk, logits, /*kept=*/at::Tensor());
    });
    return gradients.result();
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& target) {
    return {.inputs = {x, weight}, .kept = {x, weight, target}, .formula = [](const Saved& saved) {
              return gradients<LinearCrossEntropyOp>(saved.grad, saved.kept[0], saved.kept[1],
                                                     saved.kept[2], saved.outputs[0],
                                                     bool{saved.needed[0]}, bool{saved.needed[1]});
            }};
  }
};

// Both directions use the chunks of LinearCrossEntropyOp, so the bits are the same.
struct LinearCrossEntropyWithLogitsOp {
  static constexpr auto kForward =
      "linear_cross_entropy_with_logits(Tensor x, Tensor weight, Tensor target) -> (Tensor, "
      "Tensor, Tensor)";
  static constexpr auto kBackward =
      "linear_cross_entropy_with_logits_backward(Tensor grad_loss, Tensor x, Tensor weight, Tensor "
      "target, Tensor logsumexp, Tensor logits, bool needs_x, bool needs_weight) -> (Tensor, "
      "Tensor)";
  // the loss, the logsumexp and the logits
  using Forward = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

  static Forward forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& target) {
    check_inputs(x, weight, target);
    const auto options = x.options().dtype(sum_dtype(x.scalar_type()));
    const at::Tensor kept = at::empty({x.size(0) * weight.size(0)}, x.options());
    if (x.is_meta()) return {at::empty({}, options), at::empty({x.size(0)}, options), kept};
    check_targets(target, weight.size(0));
    const RunningLoss running(x, target);
    for_each_class_chunk(x, weight, [&](std::int64_t first, const at::Tensor& chunk) {
      at::Tensor logits = kept_chunk(kept, x.size(0), first, chunk.size(0));
      at::mm_out(logits, x, chunk.t());
      running.add(first, logits);
    });
    const at::Tensor logsumexp = running.logsumexp();
    return {running.loss(logsumexp), logsumexp, kept};
  }

  static ChunkGradients::Pair backward(const at::Tensor& grad_loss, const at::Tensor& x,
                                       const at::Tensor& weight, const at::Tensor& target,
                                       const at::Tensor& logsumexp, const at::Tensor& logits,
                                       bool needs_x, bool needs_weight) {
    ChunkGradients gradients(grad_loss, x, weight, target, logsumexp, needs_x, needs_weight);
    if (x.is_meta()) return gradients.result();
    for_each_buffer(x, weight, [&](std::int64_t first, const at::Tensor& chunk, at::Tensor& part) {
      gradients.add(first, chunk, part, kept_chunk(logits, x.size(0), first, chunk.size(0)));
    });
    return gradients.result();
  }

  static Derivative derivative(const at::Tensor& x, const at::Tensor& weight,
                               const at::Tensor& target) {
    return {.inputs = {x, weight}, .kept = {x, weight, target}, .formula = [](const Saved& saved) {
              return gradients<LinearCrossEntropyWithLogitsOp>(
                  saved.grad, saved.kept[0], saved.kept[1], saved.kept[2], saved.outputs[0],
                  saved.outputs[1], bool{saved.needed[0]}, bool{saved.needed[1]});
            }};
  }
};

TORCH_LIBRARY_FRAGMENT(rematch, library) {
  register_op<LinearCrossEntropyOp>(library);
  register_op<LinearCrossEntropyWithLogitsOp>(library);
}

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                const at::Tensor& target_T, Logits logits) {
  if (logits == Logits::kKept) {
    return std::get<0>(
        kernels::call<kernels::LinearCrossEntropyWithLogitsOp>(x_TD, weight_VD, target_T));
  }
  return std::get<0>(kernels::call<kernels::LinearCrossEntropyOp>(x_TD, weight_VD, target_T));
}

Logits logits_for(const at::Tensor& x_TD, const at::Tensor& weight_VD) {
  constexpr std::int64_t kWeightsPerLogit = 4;
  const std::int64_t num_logits = x_TD.size(0) * weight_VD.size(0);
  const bool is_small =
      num_logits <= kernels::kChunkElements || kWeightsPerLogit * num_logits <= weight_VD.numel();
  return is_small ? Logits::kKept : Logits::kRecomputed;
}

}  // namespace rematch::fused
