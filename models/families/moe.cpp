// A mixture of experts in the style of Llama 4. The model is Llama, but every n-th block has a
// mixture of experts in place of its feed-forward. Sigmoid scores multiply the experts' inputs.
// Source: torchtitan's models/llama4. Unlike torchtitan's model, all blocks use rotary embedding
// and full attention.
#include "models/language/attention.h"
#include "models/language/feed_forward.h"
#include "models/language/language_model.h"

namespace rematch::moe {
namespace {

struct Parts {
  using Attention = GroupedQueryAttention;
  using Ffn = DenseOrMoe;

  static Ffn make_ffn(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                      std::int64_t layer) {
    if ((layer + 1) % spec.at("moe_every") != 0) return DenseOrMoe::dense(parameters, name, spec);
    return DenseOrMoe::moe(parameters, name, spec, RouterScore::kSigmoid,
                           ScoreApplied::kBeforeExperts);
  }

  static InitialValues embedding_values(std::int64_t /*dim*/) { return unit(); }

  static RotaryTable make_table(const ModelSpec& spec, at::Device device) {
    return make_llama_table(spec.at("tokens"), spec.at("dim") / spec.at("heads"), device);
  }
};

}  // namespace
}  // namespace rematch::moe

namespace rematch {

std::unique_ptr<Model> make_moe(const ModelSpec& spec, at::Device device) {
  return std::make_unique<LanguageModel<moe::Parts>>(spec, device);
}

}  // namespace rematch
