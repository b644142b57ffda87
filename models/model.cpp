#include "models/model.h"

#include "models/data/shapes.h"
#include "models/data/text.h"

namespace rematch {

// models/families/NAME.cpp defines the function make_NAME.
#define REMATCH_DECLARE(enumerator, name) \
  std::unique_ptr<Model> make_##name(const ModelSpec& spec, at::Device device);
REMATCH_MODEL_FAMILIES(REMATCH_DECLARE)
#undef REMATCH_DECLARE

std::unique_ptr<Model> make_model(const ModelSpec& spec, at::Device device) {
  using Make = std::unique_ptr<Model> (*)(const ModelSpec&, at::Device);
#define REMATCH_NAME(enumerator, name) make_##name,
  constexpr Make kMake[] = {REMATCH_MODEL_FAMILIES(REMATCH_NAME)};
#undef REMATCH_NAME
  return kMake[static_cast<std::size_t>(spec.family)](spec, device);
}

std::unique_ptr<DataSource> make_data(const ModelSpec& spec, const std::string& data_file,
                                      std::uint64_t seed, at::Device device) {
  if (!trains_on_text(spec.family)) return make_shape_data(spec, seed, device);
  std::string text = data_file.empty() ? std::string(shipped_text()) : read_text(data_file);
  return make_text_data(spec, std::move(text), seed, device);
}

}  // namespace rematch
