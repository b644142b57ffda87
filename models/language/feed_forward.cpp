// Shapes: T tokens, D dim, F hidden width. In a mixture: E experts, k experts per token, R = T * k
// routed rows, F expert_ffn.
#include "models/language/feed_forward.h"

#include <ATen/ops/_grouped_mm.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/chunk.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/div.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/scatter_add.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros.h>

#include <optional>

#include "kernels/fused/silu_mul.h"
#include "models/scope/names.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

// Uses a stable sort, so that the rows of one expert stay in the order of their tokens.
constexpr std::optional<bool> kStable = true;

Held held_experts(const Parameters& parameters, const ModelSpec& spec) {
  return {.dimension = 0,
          .axis = rank_axis(spec, "ep"),
          .is_partial_over_tp = parameters.tensor_parallel().splits_tokens};
}

Weight add_experts(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                   std::int64_t inputs, std::int64_t outputs) {
  return parameters.add(name, {spec.at("experts"), outputs, inputs}, uniform_by_fan_in(inputs),
                        held_experts(parameters, spec));
}

// Computes silu(gate) * up, where each row of x_T2F holds the row's gate, then its up.
at::Tensor packed_gate(const at::Tensor& x_T2F, Ops ops) {
  if (ops == Ops::kFused) return fused::packed_silu_mul(x_T2F);
  const std::vector<at::Tensor> halves_TF = at::chunk(x_T2F, 2, /*dim=*/-1);
  const at::Tensor gate_TF = at::silu(halves_TF[0]);
  return at::mul(gate_TF, halves_TF[1]);
}

// Returns how many tokens this rank holds between blocks, after the split by ulysses and sp.
std::int64_t tokens_of_rank(const ModelSpec& spec) {
  const std::int64_t num_ranks =
      rank_axis(spec, "ulysses").size * (spec.option("sp") == 1 ? rank_axis(spec, "tp").size : 1);
  return spec.at("batch") * spec.at("tokens") / num_ranks;
}

// Multiplies each row of x_RI by the transposed weight_EOI of the row's expert.
at::Tensor grouped_linear(const at::Tensor& x_RI, const at::Tensor& weight_EOI,
                          const at::Tensor& row_ends_E) {
  const at::Tensor weight_EIO = weight_EOI.transpose(1, 2);
  return at::_grouped_mm(x_RI, weight_EIO, row_ends_E);
}

// Multiplies each row by its score, in float32.
at::Tensor weigh(const at::Tensor& x_RD, const at::Tensor& scores_R1) {
  at::Tensor wide_RD = x_RD.to(at::kFloat);
  wide_RD = at::mul(wide_RD, scores_R1);
  return wide_RD.to(x_RD.scalar_type());
}

}  // namespace

FeedForward::FeedForward(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                         std::int64_t hidden)
    : ops_(ops_of(spec)),
      parallel_(parameters.tensor_parallel()),
      w13_(make_joint_linear(parameters, spec, name + ".w13",
                             {{name + ".w1", hidden}, {name + ".w3", hidden}}, spec.at("dim"),
                             Bias::kNo)),
      w2_(make_adapted_linear(parameters, name + ".w2", hidden, spec.at("dim"),
                              spec.option("adapter_rank"), LinearSplit::kByInputs)) {}

at::Tensor FeedForward::forward(const at::Tensor& x_TD) const {
  at::Tensor result_TD = run(enter(x_TD, parallel_));
  return leave(std::move(result_TD), parallel_);
}

at::Tensor FeedForward::run(const at::Tensor& x_TD) const {
  if (w13_.packed.weight.defined()) {
    const at::Tensor hidden_TF = packed_gate(apply_linear(w13_.packed, x_TD), ops_);
    return apply_linear(w2_, hidden_TF);
  }
  at::Tensor hidden_TF = apply_linear(w13_.separate[0], x_TD);
  if (ops_ == Ops::kFused) {
    const at::Tensor up_TF = apply_linear(w13_.separate[1], x_TD);
    hidden_TF = fused::silu_mul(hidden_TF, up_TF);
    return apply_linear(w2_, hidden_TF);
  }
  hidden_TF = at::silu(hidden_TF);
  const at::Tensor up_TF = apply_linear(w13_.separate[1], x_TD);
  hidden_TF = at::mul(hidden_TF, up_TF);
  return apply_linear(w2_, hidden_TF);
}

Mixture::Mixture(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                 RouterScore score, ScoreApplied applied)
    : score_(score),
      applied_(applied),
      ops_(ops_of(spec)),
      top_k_(spec.at("top_k")),
      gate_(parameters.add(name + ".router.gate.weight", {spec.at("experts"), spec.at("dim")},
                           uniform_by_fan_in(spec.at("dim")),
                           {.is_partial_over_tp = parameters.tensor_parallel().splits_tokens})),
      experts_(make_experts(parameters, name + ".experts", spec)),
      shared_(parameters, name + ".shared_experts", spec, spec.at("shared_ffn")),
      exchange_(spec) {
  const auto options = at::TensorOptions().dtype(at::kInt).device(parameters.device());
  const std::int64_t num_rows = tokens_of_rank(spec) * top_k_;
  ones_R_ = at::ones({num_rows}, options);
  zeros_E_ = at::zeros({spec.at("experts")}, options);
  if (spec.option("balanced_routing") == 0) return;
  const at::Tensor rows_R = at::arange(num_rows, options.dtype(at::kLong));
  balanced_Tk_ = at::remainder(rows_R, spec.at("experts")).view({-1, top_k_});
}

Mixture::Experts Mixture::make_experts(Parameters& parameters, const std::string& name,
                                       const ModelSpec& spec) {
  const std::int64_t dim = spec.at("dim");
  const std::int64_t hidden = spec.at("expert_ffn");
  Experts experts;
  if (spec.option("packed_weights") == 1) {
    experts.w13 =
        parameters.add_packed(name + ".w13", {{name + ".w1", hidden}, {name + ".w3", hidden}},
                              {spec.at("experts"), 0, dim}, /*packed=*/1, uniform_by_fan_in(dim),
                              held_experts(parameters, spec));
  } else {
    experts.w1 = add_experts(parameters, name + ".w1", spec, dim, hidden);
    experts.w3 = add_experts(parameters, name + ".w3", spec, dim, hidden);
  }
  experts.w2 = add_experts(parameters, name + ".w2", spec, hidden, dim);
  return experts;
}

at::Tensor Mixture::forward(const at::Tensor& x_TD) const {
  Routing routing = route(x_TD);
  at::Tensor routed_RD = dispatch(x_TD, routing);
  routed_RD = run_experts(routed_RD, routing.row_ends_E);
  const at::Tensor shared_TD = run_shared_experts(x_TD);
  return combine(std::move(routed_RD), shared_TD, routing);
}

Mixture::Routing Mixture::route(const at::Tensor& x_TD) const {
  const Scope scope(scope_names::kRouter);
  const at::Tensor scores_TE = scores(x_TD);
  const auto [best_Tk, experts_Tk] = choose_experts(scores_TE);
  const at::Tensor experts_R = experts_Tk.view(-1);
  const at::Tensor order_R = std::get<1>(at::sort(experts_R, kStable, /*dim=*/0));
  at::Tensor counts_E = at::scatter_add(zeros_E_, 0, experts_R, ones_R_);
  Routing routing;
  if (exchange_.is_split()) {
    routing.counts_E = counts_E;
  } else {
    routing.row_ends_E = at::cumsum(counts_E, 0, at::kInt);
  }
  at::Tensor scores_R = best_Tk.view(-1);
  scores_R = at::index_select(scores_R, 0, order_R);
  routing.scores_R1 = scores_R.unsqueeze(1);
  at::Tensor tokens_R = at::div(order_R, top_k_, "floor");
  tokens_R = tokens_R.unsqueeze(1);
  routing.tokens_RD = tokens_R.expand({-1, x_TD.size(1)});
  return routing;
}

// Returns the experts that each token is routed to, and their scores.
std::pair<at::Tensor, at::Tensor> Mixture::choose_experts(const at::Tensor& scores_TE) const {
  if (balanced_Tk_.defined()) return {at::gather(scores_TE, 1, balanced_Tk_), balanced_Tk_};
  auto [best_Tk, experts_Tk] = at::topk(scores_TE, top_k_);
  return {std::move(best_Tk), std::move(experts_Tk)};
}

// Scores are float32 for every dtype of the model, because rounding would turn close scores into
// ties.
at::Tensor Mixture::scores(const at::Tensor& x_TD) const {
  at::Tensor logits_TE;
  {
    const Scope scope(scope_names::kGate);
    const at::Tensor wide_TD = x_TD.to(at::kFloat);
    const at::Tensor wide_gate_ED = gate_.value().to(at::kFloat);
    logits_TE = at::linear(wide_TD, wide_gate_ED);
  }
  if (score_ == RouterScore::kSigmoid) return at::sigmoid(logits_TE);
  return at::softmax(logits_TE, /*dim=*/-1);
}

at::Tensor Mixture::dispatch(const at::Tensor& x_TD, Routing& routing) const {
  const Scope scope(scope_names::kDispatch);
  at::Tensor x_RD = at::gather(x_TD, 0, routing.tokens_RD);
  if (applied_ == ScoreApplied::kBeforeExperts) x_RD = weigh(x_RD, routing.scores_R1);
  if (!exchange_.is_split()) return x_RD;
  routing.here = exchange_.to_experts(x_RD, routing.counts_E);
  routing.row_ends_E = routing.here.row_ends_L;
  return std::move(routing.here.x_MD);
}

at::Tensor Mixture::run_experts(const at::Tensor& x_RD, const at::Tensor& row_ends_E) const {
  const Scope scope(scope_names::kExperts);
  if (experts_.w13.defined()) {
    const at::Tensor hidden_RF = packed_gate(grouped_linear(x_RD, experts_.w13, row_ends_E), ops_);
    return grouped_linear(hidden_RF, experts_.w2, row_ends_E);
  }
  at::Tensor hidden_RF = grouped_linear(x_RD, experts_.w1, row_ends_E);
  if (ops_ == Ops::kFused) {
    const at::Tensor up_RF = grouped_linear(x_RD, experts_.w3, row_ends_E);
    hidden_RF = fused::silu_mul(hidden_RF, up_RF);
    return grouped_linear(hidden_RF, experts_.w2, row_ends_E);
  }
  hidden_RF = at::silu(hidden_RF);
  const at::Tensor up_RF = grouped_linear(x_RD, experts_.w3, row_ends_E);
  hidden_RF = at::mul(hidden_RF, up_RF);
  return grouped_linear(hidden_RF, experts_.w2, row_ends_E);
}

at::Tensor Mixture::run_shared_experts(const at::Tensor& x_TD) const {
  const Scope scope(scope_names::kSharedExperts);
  return shared_.forward(x_TD);
}

at::Tensor Mixture::combine(at::Tensor routed_RD, const at::Tensor& shared_TD,
                            const Routing& routing) const {
  const Scope scope(scope_names::kCombine);
  if (exchange_.is_split()) {
    routed_RD = exchange_.from_experts(std::move(routed_RD), routing.here);
  }
  if (applied_ == ScoreApplied::kAfterExperts) routed_RD = weigh(routed_RD, routing.scores_R1);
  return at::scatter_add(shared_TD, 0, routing.tokens_RD, routed_RD);
}

DenseOrMoe DenseOrMoe::dense(Parameters& parameters, const std::string& name,
                             const ModelSpec& spec) {
  return {FeedForward(parameters, name + ".ffn", spec, spec.at("ffn")), dropout_ratio(spec)};
}

DenseOrMoe DenseOrMoe::moe(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                           RouterScore score, ScoreApplied applied) {
  return {Mixture(parameters, name + ".moe", spec, score, applied), dropout_ratio(spec)};
}

at::Tensor DenseOrMoe::forward(const at::Tensor& x_TD) const {
  if (const auto* mixture = std::get_if<Mixture>(&part_)) {
    const Scope scope(scope_names::kMoe);
    return dropout(mixture->forward(x_TD), dropout_ratio_);
  }
  const Scope scope(scope_names::kFfn);
  return dropout(std::get<FeedForward>(part_).forward(x_TD), dropout_ratio_);
}

}  // namespace rematch
