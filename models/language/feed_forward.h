// The second half of a language model's block. It is a SwiGLU feed-forward or a mixture of experts,
// chosen for each layer.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "models/language/expert_exchange.h"
#include "models/layers/linear.h"
#include "models/layers/ops.h"

namespace rematch {

// Computes w2 (silu(w1 x) * w3 x), without biases.
class FeedForward {
 public:
  // Creates the parameters `name`.w1, .w3 and .w2, each with an adapter if the spec asks for
  // adapters. With packed weights, `name`.w13 replaces w1 and w3.
  FeedForward(Parameters& parameters, const std::string& name, const ModelSpec& spec,
              std::int64_t hidden);

  at::Tensor forward(const at::Tensor& x_TD) const;

 private:
  at::Tensor run(const at::Tensor& x_TD) const;

  Ops ops_;
  TensorParallel parallel_;
  JointLinear w13_;
  AdaptedLinear w2_;
};

enum class RouterScore : std::uint8_t { kSigmoid, kSoftmax };
// Whether the router's score multiplies an expert's input or its output.
enum class ScoreApplied : std::uint8_t { kBeforeExperts, kAfterExperts };

// A mixture of experts in place of a feed-forward. A router sends every token to k experts; one
// shared expert sees all tokens. No token is dropped, and the host does not wait for the routing.
// The k copies of each token are sorted by expert. Only the positions at which each expert's rows
// end depend on the data; shapes and ops do not. Source: torchtitan's models/common/moe.py, without
// its load-balancing bias.
//
// Under ep a rank holds a share of the routed experts, and the data determines how many rows these
// experts receive. Under tp the shared expert is split, and every rank holds all routed experts.
// With sp each rank routes its own tokens. balanced_routing sends the same number of rows to every
// expert, regardless of the scores.
class Mixture {
 public:
  // Creates the parameters `name`.router.gate.weight [experts, dim], .experts.w1 and .w3 [experts,
  // expert_ffn, dim], .experts.w2 [experts, dim, expert_ffn] and .shared_experts.*. With packed
  // weights, .experts.w13 [experts, 2 expert_ffn, dim] replaces w1 and w3. Also allocates constants
  // for the spec's batch * tokens tokens.
  Mixture(Parameters& parameters, const std::string& name, const ModelSpec& spec, RouterScore score,
          ScoreApplied applied);

  // Opens scopes "router", "dispatch", "experts", "shared_experts" and "combine".
  at::Tensor forward(const at::Tensor& x_TD) const;

 private:
  struct Routing {
    at::Tensor scores_R1;       // float32
    at::Tensor tokens_RD;       // token of each routed row, int64, expanded to D columns
    at::Tensor row_ends_E;      // int32: where each expert's rows end
    at::Tensor counts_E;        // only under ep; int32: number of rows of each expert
    ExpertExchange::Rows here;  // only under ep: the rows for this rank's experts
  };

  struct Experts {
    Weight w1, w3;  // undefined if weights are packed
    Weight w13;     // undefined otherwise
    Weight w2;
  };

  static Experts make_experts(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec);
  Routing route(const at::Tensor& x_TD) const;
  at::Tensor scores(const at::Tensor& x_TD) const;
  std::pair<at::Tensor, at::Tensor> choose_experts(const at::Tensor& scores_TE) const;
  at::Tensor dispatch(const at::Tensor& x_TD, Routing& routing) const;
  at::Tensor run_experts(const at::Tensor& x_RD, const at::Tensor& row_ends_E) const;
  at::Tensor run_shared_experts(const at::Tensor& x_TD) const;
  at::Tensor combine(at::Tensor routed_RD, const at::Tensor& shared_TD,
                     const Routing& routing) const;

  RouterScore score_;
  ScoreApplied applied_;
  Ops ops_;
  std::int64_t top_k_;
  Weight gate_;
  Experts experts_;
  FeedForward shared_;
  // int32: scatter_add of ones_R_ into zeros_E_ counts the rows of each expert
  at::Tensor ones_R_, zeros_E_;
  at::Tensor balanced_Tk_;  // int64: the experts of each token under balanced_routing
  ExpertExchange exchange_;
};

class DenseOrMoe {
 public:
  // dense() creates the parameters `name`.ffn, with hidden width ffn. moe() creates the parameters
  // `name`.moe.
  static DenseOrMoe dense(Parameters& parameters, const std::string& name, const ModelSpec& spec);
  static DenseOrMoe moe(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                        RouterScore score, ScoreApplied applied);

  // Opens scope "ffn" or "moe".
  at::Tensor forward(const at::Tensor& x_TD) const;

 private:
  using Part = std::variant<FeedForward, Mixture>;
  DenseOrMoe(Part part, double dropout_ratio)
      : part_(std::move(part)), dropout_ratio_(dropout_ratio) {}

  Part part_;
  double dropout_ratio_;
};

}  // namespace rematch
