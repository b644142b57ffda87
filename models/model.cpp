#include "models/model.h"

#include <stdexcept>

#include "models/deepseek/deepseek.h"
#include "models/dit/dit.h"
#include "models/llama/llama.h"
#include "models/moe/moe.h"

namespace rematch {

std::unique_ptr<Model> make_model(const ModelSpec& spec, at::Device device) {
  switch (spec.family) {
    case ModelFamily::kLlama:
      return make_llama(spec, device);
    case ModelFamily::kMoe:
      return make_moe(spec, device);
    case ModelFamily::kDeepseek:
      return make_deepseek(spec, device);
    case ModelFamily::kDit:
      return make_dit(spec, device);
    case ModelFamily::kLtx:
      return make_ltx(spec, device);
  }
  throw std::invalid_argument("unknown model family");
}

}  // namespace rematch
