#include "models/layers/dropout.h"

#include <ATen/ops/native_dropout.h>

namespace rematch {

double dropout_ratio(const ModelSpec& spec) {
  return static_cast<double>(spec.option("dropout_percent")) / 100.0;
}

at::Tensor dropout(at::Tensor x, double ratio) {
  if (ratio == 0.0) return x;
  return std::get<0>(at::native_dropout(x, ratio, /*train=*/true));
}

}  // namespace rematch
