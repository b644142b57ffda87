// What the peak is made of, one bar a policy; and how holders look in every chart.
#pragma once

#include <vector>

#include "reports/record/holder.h"
#include "reports/render/charts/bar_chart.h"
#include "reports/render/charts/chart_point.h"
#include "reports/render/charts/legend.h"

namespace rematch {

// Bytes that a policy decides about are coloured, the rest are grey. The order is that of stacks,
// from the bottom.
struct HolderLook {
  Holder holder;
  Paint fill;
  const char* words;
};
const std::vector<HolderLook>& holder_looks();
std::vector<LegendEntry> holder_legend();

bool has_holders(const std::vector<ChartPoint>& points);
BarChart holder_chart(const std::vector<ChartPoint>& points);

}  // namespace rematch
