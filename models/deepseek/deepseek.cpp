// After torchtitan's models/deepseek_v3.
#include "models/deepseek/deepseek.h"

#include "models/deepseek/latent_attention.h"
#include "models/language/language_model.h"
#include "models/moe/dense_or_moe.h"

namespace rematch {
namespace {

struct Parts {
  using Attention = LatentAttention;
  using Ffn = DenseOrMoe;

  static Ffn make_ffn(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                      std::int64_t layer) {
    if (layer < spec.at("dense_layers")) return DenseOrMoe::dense(parameters, name, spec);
    return DenseOrMoe::moe(parameters, name, spec, RouterScore::kSoftmax,
                           ScoreApplied::kAfterExperts);
  }

  static InitialValues embedding_values(std::int64_t /*dim*/) { return unit(); }

  static RotaryTable make_table(const ModelSpec& spec, at::Device device) {
    return make_yarn_table(spec.at("tokens"), spec.at("rope_dim"), device);
  }
};

}  // namespace

std::unique_ptr<Model> make_deepseek(const ModelSpec& spec, at::Device device) {
  return std::make_unique<LanguageModel<Parts>>(spec, device);
}

}  // namespace rematch
