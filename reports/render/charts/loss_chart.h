// Loss over steps. Policies whose losses have the same bits are one curve: where checkpointing is
// right there is a single line.
#pragma once

#include <vector>

#include "reports/render/charts/chart_point.h"
#include "reports/render/svg.h"

namespace rematch {

struct LossCurve {
  std::vector<std::string> names;           // of the policies on it, the first one first
  std::vector<std::optional<double>> loss;  // by step; absent: not finite
  std::vector<std::string> bits;
};

// In the order in which they first appear.
std::vector<LossCurve> loss_curves(const std::vector<ChartPoint>& points);

Picture draw_losses(const std::vector<LossCurve>& curves, double width);

}  // namespace rematch
