#include "reports/render/charts/time_chart.h"

#include <algorithm>
#include <array>
#include <map>

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

// A record has kernel classes by name; those of a newer version are "other".
ClassLook look_of(const std::string& kernel_class) {
  if (kernel_class.starts_with("attention")) return look_of(OpClass::kAttentionForward);
  if (kernel_class == "memory") return look_of(OpClass::kCopy);
  if (kernel_class == "softmax_loss") return look_of(OpClass::kReduction);
  return look_of(op_class_from_string(kernel_class).value_or(OpClass::kOther));
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

bool has_kernel_times(const PointRecord& point) {
  return point.kernels && point.kernels->is_usable();
}

// Nanoseconds of a step by the words of a look, since several classes may share one.
using LookTimes = std::map<std::string, double>;

LookTimes kernel_times(const PointRecord& point, std::size_t phase) {
  LookTimes times;
  if (!has_kernel_times(point)) return times;
  for (const auto& [kernel_class, time] : point.kernels->time[phase]) {
    times[look_of(kernel_class).words] +=
        static_cast<double>(time.count()) / point.kernels->counted_steps;
  }
  return times;
}

LookTimes op_times(const PointRecord& point, std::size_t phase) {
  LookTimes times;
  if (!point.time) return times;
  for (const auto& [op_class, time] : point.time->classes[phase]) {
    times[look_of(op_class).words] += static_cast<double>(time.count());
  }
  return times;
}

// A point whose step has no time in any phase was not measured; one without any in this took none.
bool is_measured(const PointRecord& point, TimeSource source) {
  if (source == TimeSource::kKernels) return has_kernel_times(point);
  return point.time && std::any_of(point.time->classes.begin(), point.time->classes.end(),
                                   [](const auto& classes) { return !classes.empty(); });
}

Bar class_bar(const ChartPoint& charted, Phase phase, TimeSource source) {
  Bar bar = empty_bar(charted);
  if (!is_measured(charted.point(), source)) return bar;
  const auto slot = static_cast<std::size_t>(phase);
  const LookTimes times = source == TimeSource::kKernels ? kernel_times(charted.point(), slot)
                                                         : op_times(charted.point(), slot);
  double total = 0;
  for (const OpClass representative : kClassOrder) {
    const ClassLook look = look_of(representative);
    const auto found = times.find(look.words);
    const double spent = found == times.end() ? 0 : found->second;
    total += spent;
    bar.segments.push_back({spent, look.fill, std::string(look.words) + ": " + in_words(spent)});
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

TimeSource class_time_source(const std::vector<ChartPoint>& points) {
  const bool on_gpu = std::any_of(points.begin(), points.end(), [](const ChartPoint& charted) {
    return has_kernel_times(charted.point());
  });
  return on_gpu ? TimeSource::kKernels : TimeSource::kOps;
}

std::vector<BarChart> class_time_charts(const std::vector<ChartPoint>& points) {
  const TimeSource source = class_time_source(points);
  const std::string what = source == TimeSource::kKernels ? "Kernel time" : "Op time";
  std::vector<BarChart> charts;
  double longest = 0;
  for (const Phase phase : kPhases) {
    BarChart chart;
    chart.title = what + " in " + std::string(to_string(phase)) + ", by class";
    chart.axis_title = "time a step in " + std::string(to_string(phase));
    chart.quantity = Quantity::kDuration;
    double phase_longest = 0;
    for (const ChartPoint& charted : points) {
      chart.bars.push_back(class_bar(charted, phase, source));
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
