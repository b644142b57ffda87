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

// Calls visit(first class, weight_CD, logits_TC) for each chunk in turn. All chunks share one
// buffer.
template <typename Visit>
void for_each_chunk(const at::Tensor& x, const at::Tensor& weight, const Visit& visit) {
  const std::int64_t tokens = x.size(0);
  const std::int64_t classes = weight.size(0);
  const std::int64_t most = classes_in_chunk(x.device(), tokens, classes);
  const at::Tensor buffer = at::empty({tokens * most}, x.options());
  for (std::int64_t first = 0; first < classes; first += most) {
    const std::int64_t count = std::min(most, classes - first);
    const at::Tensor chunk = weight.narrow(0, first, count);
    at::Tensor logits = buffer.narrow(0, 0, tokens * count).view({tokens, count});
    at::mm_out(logits, x, chunk.t());
    visit(first, chunk, logits);
  }
}

// Adds left * right to `sum`, which may have a wider type than the factors.
void add_product(at::Tensor& sum, const at::Tensor& left, const at::Tensor& right) {
  if (left.scalar_type() == sum.scalar_type()) {
    sum.addmm_(left, right);
  } else {
    sum.add_(at::mm(left, right));
  }
}

struct LinearCrossEntropyOp {
  static constexpr auto kForward =
      "linear_cross_entropy(Tensor x, Tensor weight, Tensor target) -> (Tensor, Tensor)";
  static constexpr auto kBackward =
      "linear_cross_entropy_backward(Tensor grad_loss, Tensor x, Tensor weight, Tensor target, "
      "Tensor logsumexp, bool needs_x, bool needs_weight) -> (Tensor, Tensor)";
  using Forward = std::tuple<at::Tensor, at::Tensor>;    // the loss and the logsumexp
  using Gradients = std::tuple<at::Tensor, at::Tensor>;  // the gradients of x and weight

  static Forward forward(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& target) {
    check_inputs(x, weight, target);
    const auto options = x.options().dtype(sum_dtype(x.scalar_type()));
    if (x.is_meta()) return {at::empty({}, options), at::empty({x.size(0)}, options)};
    check_targets(target, weight.size(0));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    const at::Tensor targets = target.contiguous();
    const at::Tensor maximum = at::full({x.size(0)}, -kInfinity, options);
    const at::Tensor sum = at::zeros({x.size(0)}, options);
    const at::Tensor target_logit = at::full({x.size(0)}, kNan, options);
    for_each_chunk(x, weight, [&](std::int64_t first, const at::Tensor&, const at::Tensor& logits) {
      launch(x.device(), LogitChunk{.element = element_of(x, "linear_cross_entropy"),
                                    .rows = logits.size(0),
                                    .width = logits.size(1),
                                    .first = first,
                                    .logits = logits.const_data_ptr(),
                                    .target = targets.const_data_ptr<std::int64_t>(),
                                    .maximum = maximum.mutable_data_ptr(),
                                    .sum = sum.mutable_data_ptr(),
                                    .target_logit = target_logit.mutable_data_ptr()});
    });
    const at::Tensor logsumexp = maximum + at::log(sum);
    return {(logsumexp - target_logit).mean(), logsumexp};
  }

  static Gradients backward(const at::Tensor& grad_loss, const at::Tensor& x,
                            const at::Tensor& weight, const at::Tensor& target,
                            const at::Tensor& logsumexp, bool needs_x, bool needs_weight) {
    const at::ScalarType wide = sum_dtype(x.scalar_type());
    at::Tensor grad_weight;
    if (needs_weight) grad_weight = at::empty(weight.sizes(), weight.options());
    if (x.is_meta())
      return {needs_x ? at::empty(x.sizes(), x.options()) : at::Tensor(), grad_weight};
    at::Tensor grad_x;
    if (needs_x) grad_x = at::zeros(x.sizes(), x.options().dtype(wide));
    const at::Tensor targets = target.contiguous();
    const at::Tensor gradient = grad_loss.to(wide);
    for_each_chunk(x, weight, [&](std::int64_t first, const at::Tensor& chunk, at::Tensor& logits) {
      launch(x.device(), LogitChunkBackward{.element = element_of(x, "linear_cross_entropy"),
                                            .rows = logits.size(0),
                                            .width = logits.size(1),
                                            .first = first,
                                            .logits = logits.mutable_data_ptr(),
                                            .target = targets.const_data_ptr<std::int64_t>(),
                                            .logsumexp = logsumexp.const_data_ptr(),
                                            .grad_loss = gradient.const_data_ptr()});
      if (needs_x) add_product(grad_x, logits, chunk);
      if (needs_weight) {
        at::Tensor part = grad_weight.narrow(0, first, chunk.size(0));
        at::mm_out(part, logits.t(), x);
      }
    });
    return {needs_x ? grad_x.to(x.scalar_type()) : grad_x, grad_weight};
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

TORCH_LIBRARY_FRAGMENT(rematch, library) { register_op<LinearCrossEntropyOp>(library); }

}  // namespace
}  // namespace rematch::kernels

namespace rematch::fused {

at::Tensor linear_cross_entropy(const at::Tensor& x_TD, const at::Tensor& weight_VD,
                                const at::Tensor& target_T) {
  return std::get<0>(kernels::call<kernels::LinearCrossEntropyOp>(x_TD, weight_VD, target_T));
}

}  // namespace rematch::fused
