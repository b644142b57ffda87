// The second half of a block whose layers differ: a feed-forward or a mixture of experts.
#pragma once

#include <string>
#include <variant>

#include "models/moe/mixture.h"

namespace rematch {

class DenseOrMoe {
 public:
  // `name`.ffn of width ffn, or `name`.moe.
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
