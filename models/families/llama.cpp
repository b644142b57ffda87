// Llama 3: pre-RMSNorm blocks with grouped-query attention, rotary embedding and SwiGLU, no biases.
// The model learns to predict the next byte, with cross-entropy. Options: frozen first blocks,
// low-rank adapters. Source: torchtitan's models/llama3. Shapes: T all tokens of the batch, D dim.
#include "models/language/attention.h"
#include "models/language/feed_forward.h"
#include "models/language/language_model.h"
#include "models/scope/names.h"

namespace rematch::llama {
namespace {

class LlamaFfn {
 public:
  LlamaFfn(Parameters& parameters, const std::string& name, const ModelSpec& spec)
      : part_(parameters, name + ".ffn", spec, spec.at("ffn")),
        dropout_ratio_(dropout_ratio(spec)) {}

  at::Tensor forward(const at::Tensor& x_TD) const {
    const Scope scope(scope_names::kFfn);
    return dropout(part_.forward(x_TD), dropout_ratio_);
  }

 private:
  FeedForward part_;
  double dropout_ratio_;
};

struct Parts {
  using Attention = GroupedQueryAttention;
  using Ffn = LlamaFfn;

  static Ffn make_ffn(Parameters& parameters, const std::string& name, const ModelSpec& spec,
                      std::int64_t /*layer*/) {
    return {parameters, name, spec};
  }

  static InitialValues embedding_values(std::int64_t dim) { return uniform_by_fan_in(dim); }

  static RotaryTable make_table(const ModelSpec& spec, at::Device device) {
    return make_llama_table(spec.at("tokens"), spec.at("dim") / spec.at("heads"), device);
  }
};

}  // namespace
}  // namespace rematch::llama

namespace rematch {

std::unique_ptr<Model> make_llama(const ModelSpec& spec, at::Device device) {
  return std::make_unique<LanguageModel<llama::Parts>>(spec, device);
}

}  // namespace rematch
