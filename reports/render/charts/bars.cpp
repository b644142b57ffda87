#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "policies/base/format.h"
#include "policies/trace/by_phase.h"
#include "reports/record/amount_of.h"
#include "reports/render/charts/builders.h"
#include "reports/render/tables/compare_table.h"

namespace rematch::chart {
namespace {

using std::chrono::nanoseconds;

// The sizes of a bar's parts, one for each style. Absent if they were not measured.
using Parts = std::optional<std::vector<double>>;

// Limits the value, because a file may contain any number, and a sum of such numbers could
// overflow.
std::int64_t whole(double value) {
  constexpr double kLargest = 9e18;
  return static_cast<std::int64_t>(std::clamp(value, -kLargest, kLargest));
}

std::string count_text(double value) { return format_fixed(value, 0); }
std::string bytes_text(double value) { return format_bytes({whole(value)}); }
std::string time_text(double value) { return format_duration(nanoseconds(whole(value))); }

Row row_of(const ComparedPoint& compared) {
  return {compared.point->policy,
          compared.schedule,
          "",
          compared.hint(),
          compared.is_baseline(),
          {},
          {}};
}

// Adds a row for each point, and a legend entry for each style that occurs in a row.
void add_bars(Rows& chart, const std::vector<ComparedPoint>& points,
              std::span<const SeriesStyle> styles,
              const std::function<Parts(const PointRecord&)>& parts_of,
              std::string (*text_of)(double)) {
  std::vector<bool> is_used(styles.size(), false);
  for (const ComparedPoint& compared : points) {
    Row row = row_of(compared);
    double total = 0;
    const Parts parts = parts_of(*compared.point);
    for (std::size_t index = 0; parts && index < styles.size(); ++index) {
      const double value = (*parts)[index];
      total += value;
      is_used[index] = is_used[index] || value > 0;
      row.segments.push_back(
          {value, styles[index].fill, std::string(styles[index].words) + ": " + text_of(value)});
    }
    if (parts) row.value = text_of(total);
    if (const PointStatus status = compared.point->status; status != PointStatus::kOk) {
      row.value += (parts ? ", " : "") + std::string(to_string(status));
    }
    if (row.value.empty()) row.value = "-";
    chart.rows.push_back(std::move(row));
  }
  for (std::size_t index = 0; index < styles.size(); ++index) {
    if (is_used[index]) chart.legend.push_back(key_of(styles[index]));
  }
}

// Returns text such as " in 8 steps" if all points counted the same number of steps, else "".
std::string over_steps(const std::vector<ComparedPoint>& points) {
  int steps = 0;
  for (const ComparedPoint& compared : points) {
    if (!compared.point->counts) continue;
    const int mine = compared.point->counts->counted_steps;
    if (steps != 0 && steps != mine) return "";
    steps = mine;
  }
  return steps == 0 ? "" : " in " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
}

// Returns a line break and a line for each phase, in a step's order: "forward 96.0 MiB:
// saved_activations 43 %, optimizer 31 %".
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

// Recompute has no time of its own, because it runs inside backward.
constexpr std::array kPhaseStyles = {
    SeriesStyle{"forward", Paint::kBlue}, SeriesStyle{"loss", Paint::kPurple},
    SeriesStyle{"recompute", Paint::kOrange}, SeriesStyle{"backward", Paint::kTeal},
    SeriesStyle{"optimizer", Paint::kGrey}};

constexpr std::array kClassStyles = {
    SeriesStyle{"matmul", Paint::kBlue},      SeriesStyle{"attention", Paint::kOrange},
    SeriesStyle{"norm", Paint::kPurple},      SeriesStyle{"elementwise", Paint::kTeal},
    SeriesStyle{"reduction", Paint::kYellow}, SeriesStyle{"copy", Paint::kPink},
    SeriesStyle{"other", Paint::kGrey}};

// Several classes of ops or kernels share a style. Unknown classes are shown as "other".
std::size_t look_of(std::string_view name) {
  if (name.starts_with("attention")) name = "attention";
  if (name == "memory") name = "copy";
  if (name == "softmax_loss") name = "reduction";
  const auto* found =
      std::find_if(kClassStyles.begin(), kClassStyles.end() - 1,
                   [&name](const SeriesStyle& style) { return style.words == name; });
  return static_cast<std::size_t>(found - kClassStyles.begin());
}

bool has_kernel_times(const PointRecord& record) {
  return record.kernels && record.kernels->is_usable();
}

Parts kernel_times(const PointRecord& record, std::size_t phase) {
  if (!has_kernel_times(record)) return std::nullopt;
  std::vector<double> times(kClassStyles.size());
  for (const auto& [kernel_class, time] : record.kernels->time[phase]) {
    times[look_of(kernel_class)] +=
        static_cast<double>(time.count()) / record.kernels->counted_steps;
  }
  return times;
}

// Absent if no phase has times.
Parts op_times(const PointRecord& record, std::size_t phase) {
  if (!record.time || std::all_of(record.time->classes.begin(), record.time->classes.end(),
                                  [](const auto& classes) { return classes.empty(); })) {
    return std::nullopt;
  }
  std::vector<double> times(kClassStyles.size());
  for (const auto& [op_class, time] : record.time->classes[phase]) {
    times[look_of(to_string(op_class))] += static_cast<double>(time.count());
  }
  return times;
}

// Adds a row that shows the ratio as a dot and as text. Adds the verdict to the legend.
void add_ratio(Rows& chart, Row row, double ratio,
               const std::optional<std::array<double, 2>>& interval, const std::string& verdict,
               int decimals) {
  row.value = format_fixed(ratio, decimals);
  if (interval) row.value += " " + format_interval(*interval, decimals, ", ");
  const Paint paint = verdict == "slower" || verdict == "higher"  ? Paint::kOrange
                      : verdict == "faster" || verdict == "lower" ? Paint::kBlue
                                                                  : Paint::kGrey;
  row.dot = {ratio, interval, paint};
  chart.rows.push_back(std::move(row));
  const bool is_known = std::any_of(chart.legend.begin(), chart.legend.end(), [&](const Key& key) {
    return key.text == capitalized(verdict);
  });
  if (!is_known && !verdict.empty()) {
    chart.legend.push_back({capitalized(verdict), MarkerKind::kCircle, paint});
  }
}

constexpr const char* kIntervalWords =
    "An interval that includes 1 shows no difference. An arrow marks an interval that is cut off.";

}  // namespace

Key key_of(const SeriesStyle& style) {
  return {capitalized(style.words), MarkerKind::kSquare, style.fill};
}

Rows op_counts(const std::vector<ComparedPoint>& points, OpClass op_class) {
  const std::string words = as_words(to_string(op_class));
  Rows chart{"Executed " + words + " ops", "", capitalized(words) + " ops" + over_steps(points)};
  chart.words =
      op_class == OpClass::kMatmul
          ? "Counted in forward and recompute; ops of backward are not shown."
          : "Counts all executed ops: a policy that recomputes everything doubles the counts.";
  const auto counts_of = [op_class](const PointRecord& record) -> Parts {
    if (!record.counts) return std::nullopt;
    std::vector<double> counts;
    for (const Phase phase : {Phase::kForward, Phase::kRecompute}) {
      counts.push_back(static_cast<double>(amount_of(record.counts->by_class, phase, op_class)));
    }
    return counts;
  };
  constexpr std::array kStyles = {SeriesStyle{"forward", Paint::kBlue},
                                  SeriesStyle{"recompute", Paint::kOrange}};
  add_bars(chart, points, kStyles, counts_of, count_text);
  for (const ComparedPoint& compared : points) {
    const Parts counts = counts_of(*compared.point);
    if (compared.point->policy == "none" && counts) chart.reference = (*counts)[0] + (*counts)[1];
  }
  if (chart.reference) chart.legend.push_back({"count of none", MarkerKind::kSquare, Paint::kInk});
  return chart;
}

Rows peak_holders(const std::vector<ComparedPoint>& points) {
  Rows chart{"Memory at the peak, by holder", "A policy affects only the blue and orange bytes.",
             "Peak allocated", Quantity::kBytes};
  const auto holders_of = [](const PointRecord& record) -> Parts {
    if (!record.memory || !record.memory->peak_allocated) return std::nullopt;
    std::vector<double> bytes(kHolderStyles.size());
    for (std::size_t look = 0; look < kStackedHolders.size(); ++look) {
      bytes[look] = static_cast<double>(
          amount_of(record.memory->holders_at_peak, kStackedHolders.at(look)).count);
    }
    if (record.memory->holders_at_peak.empty()) {
      bytes.back() = static_cast<double>(record.memory->peak_allocated->count);
    }
    return bytes;
  };
  add_bars(chart, points, kHolderStyles, holders_of, bytes_text);
  for (std::size_t index = 0; index < points.size(); ++index) {
    const auto& memory = points[index].point->memory;
    if (memory) chart.rows[index].hint += peaks_of_phases(*memory);
  }
  return chart;
}

Rows phase_times(const std::vector<ComparedPoint>& points) {
  Rows chart{"Step time by phase", "Recompute runs inside backward, when backward needs it.",
             "Median time of a step", Quantity::kDuration};
  const auto phases_of = [](const PointRecord& record) -> Parts {
    if (!record.time || !record.time->step_median) return std::nullopt;
    std::vector<double> times;
    for (const SeriesStyle& style : kPhaseStyles) {
      times.push_back(static_cast<double>(amount_of(record.time->phases, style.words).count()));
    }
    return times;
  };
  add_bars(chart, points, kPhaseStyles, phases_of, time_text);
  for (std::size_t index = 0; index < points.size(); ++index) {
    // the median of whole steps, not the sum of the phases' medians
    const auto step = measured_step(*points[index].point);
    if (step) chart.rows[index].value = format_duration(*step);
  }
  return chart;
}

std::vector<Rows> class_times(const std::vector<ComparedPoint>& points) {
  const bool is_on_gpu =
      std::any_of(points.begin(), points.end(),
                  [](const ComparedPoint& compared) { return has_kernel_times(*compared.point); });
  std::vector<Rows> charts;
  double longest = 0;
  for (const Phase phase : kPhases) {
    const std::string name(to_string(phase));
    Rows chart{(is_on_gpu ? "Kernel time in " : "Op time in ") + name + ", by class",
               is_on_gpu ? "From the device's own activity records."
                         : "From a separate step in which every op was timed alone.",
               "Time of a step in " + name, Quantity::kDuration};
    const auto times_of = [&](const PointRecord& record) {
      const auto slot = static_cast<std::size_t>(phase);
      return is_on_gpu ? kernel_times(record, slot) : op_times(record, slot);
    };
    add_bars(chart, points, kClassStyles, times_of, time_text);
    if (chart.is_empty()) continue;
    for (const Row& row : chart.rows) longest = std::max(longest, row.total());
    charts.push_back(std::move(chart));
  }
  for (Rows& chart : charts) chart.at_least = longest;
  return charts;
}

Rows step_ratios(const std::vector<ComparedPoint>& points) {
  Rows chart{"Step time relative to the reference", kIntervalWords, "", Quantity::kRatio};
  for (const ComparedPoint& compared : points) {
    const auto& time = compared.point->time;
    if (!time || !time->ratio || compared.point->policy == time->ratio->reference) continue;
    const StepRatioRecord& ratio = *time->ratio;
    chart.axis_title = "Step time / " + ratio.reference + ", 95 % interval";
    add_ratio(chart, row_of(compared), ratio.ratio, ratio.interval, ratio.verdict, 2);
  }
  return chart;
}

Rows metric_ratios(const CompareRecord& record, Metric metric) {
  const std::string name = capitalized(words_of(metric));
  Rows chart{name + ", candidate over base",
             metric == Metric::kStepTime ? kIntervalWords : "Exact: every difference counts.",
             name + ", candidate / base", Quantity::kRatio};
  for (const bool is_difference : {true, false}) {
    for (const ComparedRow& compared : record.rows) {
      for (const MetricRecord& measured : compared.metrics) {
        if (measured.metric != metric || !measured.ratio) continue;
        if ((measured.verdict != CompareVerdict::kSame) != is_difference) continue;
        const std::string schedule(to_string(compared.schedule));
        const std::string hint = compared.model + " on " + compared.device + "\n" +
                                 compared.policy + " " + schedule + "\n" + measured.note;
        add_ratio(chart, {compared.policy, schedule, "", hint, false, {}, {}}, *measured.ratio,
                  measured.interval, std::string(to_string(measured.verdict)), 3);
      }
    }
  }
  return chart;
}

}  // namespace rematch::chart
