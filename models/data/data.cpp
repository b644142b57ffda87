#include "models/data/shapes.h"
#include "models/data/text.h"
#include "models/model.h"

namespace rematch {

std::unique_ptr<DataSource> make_data(const ModelSpec& spec, const std::string& data_file,
                                      std::uint64_t seed, at::Device device) {
  if (!trains_on_text(spec.family)) return make_shape_data(spec, seed, device);
  std::string text = data_file.empty() ? std::string(shipped_text()) : read_text(data_file);
  return make_text_data(spec, std::move(text), seed, device);
}

}  // namespace rematch
