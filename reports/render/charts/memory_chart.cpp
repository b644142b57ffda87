#include "reports/render/charts/memory_chart.h"

#include <algorithm>

#include "reports/render/charts/axes.h"
#include "reports/render/charts/holder_chart.h"
#include "reports/render/format.h"
#include "reports/render/text_width.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

constexpr double kTextSize = 12.5;
constexpr double kSmallSize = 12;
constexpr double kTop = 46;  // two lines of words above the plot
constexpr double kPlotHeight = 118;
constexpr double kStripHeight = 5;
// A plot is some 300 pixels wide; finer samples would not be seen.
constexpr std::size_t kMostSamples = 150;

Paint phase_paint(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return Paint::kBlue;
    case Phase::kRecompute:
      return Paint::kOrange;
    case Phase::kBackward:
      return Paint::kTeal;
    case Phase::kOptimizer:
      break;
  }
  return Paint::kGrey;
}

// Of all holders up to and with the first `layers`; a double, because sums of what a file says can
// be anything.
double stacked(const MemoryTimeline& timeline, std::size_t layers, std::size_t sample) {
  double sum = 0;
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto found = timeline.bytes.find(holder_looks()[layer].holder);
    if (found != timeline.bytes.end()) sum += static_cast<double>(found->second[sample]);
  }
  return sum;
}

double total(const MemoryTimeline& timeline, std::size_t sample) {
  return stacked(timeline, holder_looks().size(), sample);
}

// Of each run of samples, the highest; so the peak is always among them.
std::vector<std::size_t> drawn_samples(const MemoryTimeline& timeline) {
  const std::size_t samples = timeline.op_index.size();
  const std::size_t drawn = std::min(samples, kMostSamples);
  std::vector<std::size_t> chosen;
  for (std::size_t run = 0; run < drawn; ++run) {
    std::size_t highest = run * samples / drawn;
    for (std::size_t at = highest; at < (run + 1) * samples / drawn; ++at) {
      if (total(timeline, at) > total(timeline, highest)) highest = at;
    }
    chosen.push_back(highest);
  }
  return chosen;
}

struct Panel {
  const MemoryTimeline& timeline;
  std::vector<std::size_t> samples;
  Box area;
  Scale x;
  Scale y;

  double x_of(std::size_t sample) const {
    return x(static_cast<double>(timeline.op_index[sample]));
  }
};

// Painted from the top layer down, each as a whole area: a layer covers what is above it.
void draw_stack(Picture& picture, const Panel& panel) {
  const auto& looks = holder_looks();
  for (std::size_t layer = looks.size(); layer-- > 0;) {
    if (!panel.timeline.bytes.contains(looks[layer].holder)) continue;
    Path path{{{panel.x_of(panel.samples.front()), panel.area.bottom}},
              looks[layer].fill,
              Paint::kClear,
              1,
              looks[layer].words};
    for (const std::size_t sample : panel.samples) {
      path.corners.push_back(
          {panel.x_of(sample), panel.y(stacked(panel.timeline, layer + 1, sample))});
    }
    path.corners.push_back({panel.x_of(panel.samples.back()), panel.area.bottom});
    picture.add(std::move(path));
  }
}

void draw_phases(Picture& picture, const Panel& panel) {
  const double top = panel.area.bottom + 3;
  for (std::size_t at = 0; at < panel.samples.size();) {
    const Phase phase = panel.timeline.phase[panel.samples[at]];
    std::size_t end = at;
    while (end < panel.samples.size() && panel.timeline.phase[panel.samples[end]] == phase) ++end;
    const double to =
        end < panel.samples.size() ? panel.x_of(panel.samples[end]) : panel.area.right;
    picture.add(Rectangle{{panel.x_of(panel.samples[at]), top, to, top + kStripHeight},
                          phase_paint(phase),
                          std::string(to_string(phase))});
    at = end;
  }
}

void draw_peak(Picture& picture, const Panel& panel, const std::string& hint) {
  const std::size_t peak = *std::max_element(
      panel.samples.begin(), panel.samples.end(), [&panel](std::size_t a, std::size_t b) {
        return total(panel.timeline, a) < total(panel.timeline, b);
      });
  const Position at{panel.x_of(peak), panel.y(total(panel.timeline, peak))};
  picture.add(Line{at, {at.x, panel.area.bottom}, Paint::kInk, 1, Dash::kDashed});
  picture.add(Marker{MarkerKind::kCircle, at, 4, Paint::kInk, Paint::kSurface, hint});
}

// "peak 38.8 MiB in the backward of blocks.7"
std::string peak_words(const MemoryRecord& memory) {
  if (!memory.peak_allocated) return "peak not measured";
  const std::string words = "peak " + format_bytes(*memory.peak_allocated);
  return memory.peak_phase ? words + " in " + describe_place(memory) : words;
}

void draw_head(Picture& picture, const ChartPoint& charted, const std::string& words) {
  const double note = charted.schedule.empty() ? 0 : text_width(charted.schedule, kSmallSize) + 8;
  const Label name{{0, 13},
                   fit_text(charted.policy, kTextSize, (picture.width - note) / 1.13),
                   Anchor::kStart,
                   Paint::kInk,
                   kTextSize,
                   Weight::kBold,
                   describe_chart_point(charted)};
  picture.add(name);
  if (note > 0) {
    picture.add(Label{
        {extent(name).right + 8, 13}, charted.schedule, Anchor::kStart, Paint::kMuted, kSmallSize});
  }
  picture.add(Label{{0, 30},
                    fit_text(words, kSmallSize, picture.width),
                    Anchor::kStart,
                    Paint::kMuted,
                    kSmallSize});
}

}  // namespace

bool has_timeline(const ChartPoint& charted) {
  const PointRecord& point = charted.point();
  return point.memory && point.memory->timeline && !point.memory->timeline->op_index.empty() &&
         !point.memory->timeline->bytes.empty();
}

double highest_timeline(const std::vector<ChartPoint>& points) {
  double highest = 0;
  for (const ChartPoint& charted : points) {
    if (!has_timeline(charted)) continue;
    const MemoryTimeline& timeline = *charted.point().memory->timeline;
    for (std::size_t at = 0; at < timeline.op_index.size(); ++at) {
      highest = std::max(highest, total(timeline, at));
    }
  }
  return highest;
}

Picture draw_memory(const ChartPoint& charted, double highest, double width) {
  const MemoryTimeline& timeline = *charted.point().memory->timeline;
  Picture picture{"Memory over a step of " + name_of(charted), width, 0, {}};
  const std::string words = peak_words(*charted.point().memory);
  draw_head(picture, charted, words);
  const Axis y_axis = make_axis(Quantity::kBytes, 0, highest, 3);

  const double last_op =
      static_cast<double>(*std::max_element(timeline.op_index.begin(), timeline.op_index.end()));
  Axis x_axis = make_axis(Quantity::kCount, 0, last_op, 4);
  // The step ends where it ends, not at a round number.
  x_axis.high = std::max(1.0, last_op);
  while (x_axis.ticks.size() > 1 && x_axis.ticks.back().value > x_axis.high)
    x_axis.ticks.pop_back();
  const double left = y_labels_width(y_axis);
  const Box area{left, kTop + 14, width - 6, kTop + 14 + kPlotHeight};
  draw_y_axis(picture, y_axis, area);
  const Panel panel{timeline, drawn_samples(timeline), area, x_scale(x_axis, area),
                    y_scale(y_axis, area)};
  draw_stack(picture, panel);
  draw_phases(picture, panel);
  draw_peak(picture, panel, words);
  Box strip = area;
  strip.bottom += kStripHeight + 3;
  draw_x_axis(picture, x_axis, strip, GridLines::kHorizontal);
  picture.add(Label{{0, kTop + 2}, y_axis.unit, Anchor::kStart, Paint::kMuted, kSmallSize});
  picture.add(Label{
      {area.right, strip.bottom + 33}, "ops executed", Anchor::kEnd, Paint::kMuted, kSmallSize});
  picture.height = strip.bottom + 40;
  return picture;
}

std::vector<LegendEntry> memory_legend() {
  std::vector<LegendEntry> entries = holder_legend();
  entries.push_back({MarkerKind::kCircle, Paint::kInk, Paint::kClear, "peak"});
  return entries;
}

Picture draw_memory_panels(const std::vector<ChartPoint>& points, int columns) {
  constexpr double kPanelWidth = 350;
  constexpr double kPanelGap = 24;
  const double width = columns * kPanelWidth + (columns - 1) * kPanelGap;
  const Picture legend = draw_legend(memory_legend(), width);
  Picture whole{"Memory over a step, by holder", width, legend.height, {}};
  insert(whole, legend, {0, 0});
  const double highest = highest_timeline(points);
  int column = 0;
  double top = legend.height + 8;
  for (const ChartPoint& charted : points) {
    if (!has_timeline(charted)) continue;
    const Picture panel = draw_memory(charted, highest, kPanelWidth);
    insert(whole, panel, {column * (kPanelWidth + kPanelGap), top});
    whole.height = std::max(whole.height, top + panel.height);
    if (++column == columns) {
      column = 0;
      top = whole.height + kPanelGap;
    }
  }
  return whole;
}

}  // namespace rematch
