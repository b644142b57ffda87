// Feed-forward of video transformers: down (gelu (up x)), biased.
#pragma once

#include <string>

#include "models/layers/linear.h"

namespace rematch::dit {

struct FeedForward {
  Linear up, down;
  double dropout_ratio = 0.0;
};

// Parameters `name`.up, .down.
FeedForward make_feed_forward(Parameters& parameters, const std::string& name,
                              const ModelSpec& spec);

// Scope "ffn".
at::Tensor feed_forward(const FeedForward& ffn, const at::Tensor& x_BND);

}  // namespace rematch::dit
