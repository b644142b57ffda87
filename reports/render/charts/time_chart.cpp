#include "reports/render/charts/time_chart.h"

#include <algorithm>
#include <array>

#include "reports/record/by_phase.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

struct PhaseLook {
  const char* phase;
  Paint fill;
};
// A timed step does not tell recompute from the backward that asks for it.
constexpr std::array kPhaseLooks = {
    PhaseLook{"forward", Paint::kBlue}, PhaseLook{"loss", Paint::kPurple},
    PhaseLook{"recompute", Paint::kOrange}, PhaseLook{"backward", Paint::kTeal},
    PhaseLook{"optimizer", Paint::kGrey}};

struct ClassLook {
  Paint fill;
  const char* words;
};

ClassLook look_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::kMatmul:
      return {Paint::kBlue, "matmul"};
    case OpClass::kAttentionForward:
    case OpClass::kAttentionBackward:
      return {Paint::kOrange, "attention"};
    case OpClass::kNorm:
      return {Paint::kPurple, "norm"};
    case OpClass::kElementwise:
      return {Paint::kTeal, "elementwise"};
    case OpClass::kReduction:
      return {Paint::kYellow, "reduction"};
    case OpClass::kCopy:
      return {Paint::kPink, "copy"};
    default:
      return {Paint::kGrey, "other"};
  }
}

constexpr std::array kClassOrder = {OpClass::kMatmul,    OpClass::kAttentionForward,
                                    OpClass::kNorm,      OpClass::kElementwise,
                                    OpClass::kReduction, OpClass::kCopy,
                                    OpClass::kOther};

Bar empty_bar(const ChartPoint& charted) {
  Bar bar;
  bar.text = {charted.policy, charted.schedule, "-", describe_chart_point(charted),
              charted.baseline ? Weight::kBold : Weight::kNormal};
  if (charted.point().status != PointStatus::kOk) {
    bar.text.value = to_string(charted.point().status);
  }
  return bar;
}

Bar phase_bar(const ChartPoint& charted) {
  Bar bar = empty_bar(charted);
  const PointRecord& point = charted.point();
  if (!point.time || !point.time->step_median) return bar;
  bar.text.value = format_duration(*point.time->step_median);
  for (const PhaseLook& look : kPhaseLooks) {
    const auto found = point.time->phases.find(look.phase);
    if (found == point.time->phases.end()) continue;
    bar.segments.push_back({static_cast<double>(found->second.count()), look.fill,
                            std::string(look.phase) + ": " + format_duration(found->second)});
  }
  return bar;
}

// Saturates: a file may say anything, and sums of it too.
std::string in_words(double time_ns) {
  constexpr double kLongest = 9e18;
  return format_duration(
      nanoseconds(static_cast<std::int64_t>(std::clamp(time_ns, -kLongest, kLongest))));
}

// By the words of its look, since several classes may share one.
Bar class_bar(const ChartPoint& charted, Phase phase) {
  Bar bar = empty_bar(charted);
  if (!charted.point().time) return bar;
  const auto& classes = charted.point().time->classes[static_cast<std::size_t>(phase)];
  double total = 0;
  for (const OpClass representative : kClassOrder) {
    const ClassLook look = look_of(representative);
    double sum = 0;
    for (const auto& [op_class, time] : classes) {
      if (std::string(look_of(op_class).words) == look.words)
        sum += static_cast<double>(time.count());
    }
    total += sum;
    bar.segments.push_back({sum, look.fill, std::string(look.words) + ": " + in_words(sum)});
  }
  bar.text.value = in_words(total);
  return bar;
}

}  // namespace

bool has_times(const std::vector<ChartPoint>& points) {
  return std::any_of(points.begin(), points.end(), [](const ChartPoint& charted) {
    return charted.point().time && !charted.point().time->phases.empty();
  });
}

BarChart phase_time_chart(const std::vector<ChartPoint>& points) {
  BarChart chart;
  chart.title = "Step time by phase";
  chart.axis_title = "median time of a step";
  chart.quantity = Quantity::kDuration;
  for (const PhaseLook& look : kPhaseLooks) {
    const bool used = std::any_of(points.begin(), points.end(), [&look](const ChartPoint& charted) {
      return charted.point().time && charted.point().time->phases.contains(look.phase);
    });
    if (used) chart.legend.push_back({MarkerKind::kSquare, look.fill, Paint::kClear, look.phase});
  }
  for (const ChartPoint& charted : points) chart.bars.push_back(phase_bar(charted));
  return chart;
}

std::vector<BarChart> class_time_charts(const std::vector<ChartPoint>& points) {
  std::vector<BarChart> charts;
  double longest = 0;
  for (const Phase phase : kPhases) {
    BarChart chart;
    chart.title = "Op time in " + std::string(to_string(phase)) + ", by class";
    chart.axis_title = "time a step in " + std::string(to_string(phase));
    chart.quantity = Quantity::kDuration;
    double phase_longest = 0;
    for (const ChartPoint& charted : points) {
      chart.bars.push_back(class_bar(charted, phase));
      double total = 0;
      for (const BarSegment& segment : chart.bars.back().segments) total += segment.value;
      phase_longest = std::max(phase_longest, total);
    }
    if (phase_longest == 0) continue;
    longest = std::max(longest, phase_longest);
    for (const OpClass representative : kClassOrder) {
      const ClassLook look = look_of(representative);
      chart.legend.push_back({MarkerKind::kSquare, look.fill, Paint::kClear, look.words});
    }
    charts.push_back(std::move(chart));
  }
  for (BarChart& chart : charts) chart.at_least = longest;
  return charts;
}

}  // namespace rematch
