#include "reports/render/charts/holder_chart.h"

#include <algorithm>

#include "reports/render/format.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

// A line a phase, in a step's order: "\nforward 96.0 MiB: saved_activations 43 %, optimizer 31 %".
std::string peaks_of_phases(const MemoryRecord& memory) {
  std::string lines;
  for (const char* phase : {"forward", "loss", "recompute", "backward", "optimizer"}) {
    const auto holders = memory.holders_by_phase.find(phase);
    const auto peak = memory.peak_by_phase.find(phase);
    if (holders == memory.holders_by_phase.end() || peak == memory.peak_by_phase.end()) continue;
    lines.append("\n").append(phase).append(" ").append(format_bytes(peak->second));
    lines.append(": ").append(describe_holders(holders->second, peak->second));
  }
  return lines;
}

Bar bar_of(const ChartPoint& charted) {
  const PointRecord& point = charted.point();
  Bar bar;
  bar.text = {charted.policy, charted.schedule, std::string(to_string(point.status)),
              describe_chart_point(charted), charted.baseline ? Weight::kBold : Weight::kNormal};
  if (!point.memory || !point.memory->peak_allocated) return bar;
  const MemoryRecord& memory = *point.memory;
  bar.text.value = format_bytes(*memory.peak_allocated);
  bar.text.hint += peaks_of_phases(memory);
  if (point.status != PointStatus::kOk) {
    bar.text.value.append(", ").append(to_string(point.status));
  }
  for (const HolderLook& look : holder_looks()) {
    const auto found = memory.holders_at_peak.find(look.holder);
    if (found == memory.holders_at_peak.end()) continue;
    bar.segments.push_back({static_cast<double>(found->second.count), look.fill,
                            std::string(look.words) + ": " + format_bytes(found->second) +
                                " of the peak in " + describe_place(memory)});
  }
  if (bar.segments.empty()) {
    bar.segments = {{static_cast<double>(memory.peak_allocated->count), Paint::kLightGrey,
                     "who held it was not measured"}};
  }
  return bar;
}

}  // namespace

const std::vector<HolderLook>& holder_looks() {
  static const std::vector<HolderLook> kLooks = {
      {Holder::kParameters, Paint::kDarkGrey, "parameters"},
      {Holder::kOptimizer, Paint::kGrey, "optimizer"},
      {Holder::kGradients, Paint::kLightGrey, "gradients"},
      {Holder::kSavedActivations, Paint::kBlue, "saved activations"},
      {Holder::kRecomputeTransient, Paint::kOrange, "recomputed"},
      {Holder::kOther, Paint::kTeal, "temporaries"},
  };
  return kLooks;
}

std::vector<LegendEntry> holder_legend() {
  std::vector<LegendEntry> entries;
  for (const HolderLook& look : holder_looks()) {
    entries.push_back({MarkerKind::kSquare, look.fill, Paint::kClear, look.words});
  }
  return entries;
}

bool has_holders(const std::vector<ChartPoint>& points) {
  return std::any_of(points.begin(), points.end(), [](const ChartPoint& charted) {
    return charted.point().memory && charted.point().memory->peak_allocated;
  });
}

BarChart holder_chart(const std::vector<ChartPoint>& points) {
  BarChart chart;
  chart.title = "What holds the peak";
  chart.axis_title = "peak allocated";
  chart.quantity = Quantity::kBytes;
  chart.legend = holder_legend();
  for (const ChartPoint& charted : points) chart.bars.push_back(bar_of(charted));
  return chart;
}

}  // namespace rematch
