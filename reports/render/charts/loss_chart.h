// Loss over steps. Policies whose losses have the same bits are one curve: where checkpointing is
// right there is a single line.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "reports/render/charts/chart_point.h"
#include "reports/render/svg.h"

namespace rematch {

struct LossCurve {
  std::vector<std::string> names;           // of the policies on it, the first one first
  std::vector<std::optional<double>> loss;  // by step; absent: not finite
  std::vector<std::string> bits;
};

// Between the lowest and the highest loss of a point's runs at each step: how much the reference
// differs from itself.
struct LossBand {
  std::string name;
  std::size_t num_runs = 0;
  std::vector<std::optional<double>> first_run;  // the losses of the point's own; as in a curve
  std::vector<std::optional<std::array<double, 2>>> range;  // by step; absent: one is not finite

  double widest() const;
};

// Of the first point with steps that was repeated; nothing where none was.
std::optional<LossBand> loss_band(const std::vector<ChartPoint>& points);

// In the order in which they first appear.
std::vector<LossCurve> loss_curves(const std::vector<ChartPoint>& points);

// Below the losses, where there is a band and anything differs, a second panel: the difference to
// the first run of what was repeated, with the band.
Picture draw_losses(const std::vector<LossCurve>& curves, const std::optional<LossBand>& band,
                    double width);

}  // namespace rematch
