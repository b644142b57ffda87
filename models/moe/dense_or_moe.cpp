#include "models/moe/dense_or_moe.h"

#include "models/layers/dropout.h"
#include "models/scope/scope.h"

namespace rematch {

DenseOrMoe DenseOrMoe::dense(Parameters& parameters, const std::string& name,
                             const ModelSpec& spec) {
  return {FeedForward(parameters, name + ".ffn", spec.at("dim"), spec.at("ffn"), ops_of(spec)),
          dropout_ratio(spec)};
}

DenseOrMoe DenseOrMoe::moe(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                           RouterScore score, ScoreApplied applied) {
  return {Mixture(parameters, name + ".moe", spec, score, applied), dropout_ratio(spec)};
}

at::Tensor DenseOrMoe::forward(const at::Tensor& x_TD) const {
  if (const auto* mixture = std::get_if<Mixture>(&part_)) {
    const Scope scope("moe");
    return dropout(mixture->forward(x_TD), dropout_ratio_);
  }
  const Scope scope("ffn");
  return dropout(std::get<FeedForward>(part_).forward(x_TD), dropout_ratio_);
}

}  // namespace rematch
