#include "models/model.h"

#include "models/dit/dit.h"
#include "models/llama/llama.h"

namespace rematch {

std::unique_ptr<Model> make_model(const ModelSpec& spec, at::Device device) {
  if (spec.family == ModelFamily::kLlama) return make_llama(spec, device);
  return make_dit(spec, device);
}

}  // namespace rematch
