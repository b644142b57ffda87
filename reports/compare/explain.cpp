#include "reports/compare/explain.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "reports/compare/metrics.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr std::size_t kMostParts = 8;
constexpr double kWorthNaming = 0.05;  // of the difference, in the sentence
constexpr std::size_t kMostNamed = 3;

using Parts = std::map<std::string, std::int64_t>;

struct Breakdown {
  std::string by;
  Parts base;
  Parts candidate;
  double scale = 1;  // from parts to the metric's unit
};

std::string name_of(OpClass op_class, std::size_t phase) {
  return std::string(to_string(op_class)) + " in " +
         std::string(to_string(static_cast<Phase>(phase)));
}

Parts class_times(const TimeRecord& time) {
  Parts parts;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [op_class, spent] : time.classes.at(phase)) {
      parts[name_of(op_class, phase)] = spent.count();
    }
  }
  return parts;
}

Parts phase_times(const TimeRecord& time) {
  Parts parts;
  for (const auto& [phase, spent] : time.phases) parts[phase] = spent.count();
  return parts;
}

Parts holders(const MemoryRecord& memory) {
  Parts parts;
  for (const auto& [holder, bytes] : memory.holders_at_peak) {
    parts[std::string(to_string(holder))] = bytes.count;
  }
  return parts;
}

Parts class_counts(const CountsRecord& counts, Metric metric) {
  Parts parts;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    const bool is_recompute = static_cast<Phase>(phase) == Phase::kRecompute;
    if (metric == Metric::kRecomputedOps && !is_recompute) continue;
    for (const auto& [op_class, executed] : counts.by_class.at(phase)) {
      parts[name_of(op_class, phase)] = executed;
    }
  }
  return parts;
}

Parts kernel_times(const KernelRecord& kernels) {
  Parts parts;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [kernel_class, spent] : kernels.time.at(phase)) {
      parts[kernel_class + " kernels in " + std::string(to_string(static_cast<Phase>(phase)))] =
          spent.count() / kernels.counted_steps;
    }
  }
  return parts;
}

Parts kernel_counts(const KernelRecord& kernels) {
  Parts parts;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [kernel_class, count] : kernels.count.at(phase)) {
      parts[kernel_class + " in " + std::string(to_string(static_cast<Phase>(phase)))] = count;
    }
  }
  return parts;
}

Parts collectives(const RanksRecord& ranks, Metric metric) {
  const RanksRecord::Counts& counts =
      metric == Metric::kCollectives ? ranks.collectives : ranks.collective_bytes;
  Parts parts;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [kind, count] : counts.at(phase)) {
      parts[kind + " in " + std::string(to_string(static_cast<Phase>(phase)))] = count;
    }
  }
  return parts;
}

// The time of a step beyond its kernels. Absent where kernels of several streams overlap.
std::optional<std::int64_t> time_without_kernels(double step_ns, const Parts& kernels) {
  std::int64_t rest = std::llround(step_ns);
  for (const auto& [name, spent] : kernels) rest -= spent;
  if (rest < 0) return std::nullopt;
  return rest;
}

// Absent where no kernel takes another time: then it is the host's time that differs.
std::optional<Breakdown> break_down_kernels(const MetricRecord& metric, const PointRecord& base,
                                            const PointRecord& candidate) {
  if (!kernel_count(base) || !kernel_count(candidate)) return std::nullopt;
  Breakdown kernels{"phase and kernel class", kernel_times(*base.kernels),
                    kernel_times(*candidate.kernels)};
  if (kernels.base == kernels.candidate) return std::nullopt;
  const auto below = time_without_kernels(*metric.base, kernels.base);
  const auto above = time_without_kernels(*metric.candidate, kernels.candidate);
  if (below && above) {
    kernels.base["time without a kernel"] = *below;
    kernels.candidate["time without a kernel"] = *above;
  }
  return kernels;
}

std::optional<Breakdown> break_down_time(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate) {
  if (auto kernels = break_down_kernels(metric, base, candidate)) return kernels;
  if (!base.time || !candidate.time) return std::nullopt;
  Breakdown classes{"phase and op class", class_times(*base.time), class_times(*candidate.time)};
  if (!classes.base.empty() && !classes.candidate.empty()) return classes;
  Breakdown phases{"phase", phase_times(*base.time), phase_times(*candidate.time)};
  if (phases.base.empty() || phases.candidate.empty()) return std::nullopt;
  return phases;
}

std::optional<Breakdown> break_down(const MetricRecord& metric, const PointRecord& base,
                                    const PointRecord& candidate) {
  switch (metric.metric) {
    case Metric::kStepTime:
      return break_down_time(metric, base, candidate);
    case Metric::kPeakAllocated: {
      Breakdown bytes{"holder at the peak", holders(*base.memory), holders(*candidate.memory)};
      if (bytes.base.empty() || bytes.candidate.empty()) return std::nullopt;
      return bytes;
    }
    case Metric::kExecutedOps:
    case Metric::kRecomputedOps: {
      // Totals are comparable, and shares exact, where both counted as many steps.
      const int steps = base.counts->counted_steps;
      if (candidate.counts->counted_steps != steps) return std::nullopt;
      return Breakdown{"phase and op class", class_counts(*base.counts, metric.metric),
                       class_counts(*candidate.counts, metric.metric), 1.0 / steps};
    }
    case Metric::kKernelCount: {
      const int steps = base.kernels->counted_steps;
      if (candidate.kernels->counted_steps != steps) return std::nullopt;
      return Breakdown{"phase and kernel class", kernel_counts(*base.kernels),
                       kernel_counts(*candidate.kernels), 1.0 / steps};
    }
    case Metric::kCollectives:
    case Metric::kCollectiveBytes: {
      const int steps = base.ranks->counted_steps;
      if (candidate.ranks->counted_steps != steps) return std::nullopt;
      return Breakdown{"phase and kind of collective", collectives(*base.ranks, metric.metric),
                       collectives(*candidate.ranks, metric.metric), 1.0 / steps};
    }
    case Metric::kPeakReserved:
    case Metric::kRecomputedFlops:
    case Metric::kLoss:
      break;
  }
  return std::nullopt;
}

bool is_difference(CompareVerdict verdict) {
  return verdict == CompareVerdict::kFaster || verdict == CompareVerdict::kSlower ||
         verdict == CompareVerdict::kLower || verdict == CompareVerdict::kHigher;
}

std::vector<ContributionRecord> contributions(const Breakdown& breakdown, double difference) {
  std::set<std::string> names;
  for (const auto& [name, value] : breakdown.base) names.insert(name);
  for (const auto& [name, value] : breakdown.candidate) names.insert(name);
  const auto value_in = [](const Parts& parts, const std::string& name) {
    const auto found = parts.find(name);
    return found == parts.end() ? 0 : found->second;
  };
  std::vector<ContributionRecord> parts;
  for (const std::string& name : names) {
    ContributionRecord part{name, value_in(breakdown.base, name),
                            value_in(breakdown.candidate, name)};
    if (part.base == part.candidate) continue;
    part.share_ratio = (static_cast<double>(part.candidate) - static_cast<double>(part.base)) *
                       breakdown.scale / difference;
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& left, const auto& right) {
    return std::abs(left.share_ratio) > std::abs(right.share_ratio);
  });
  if (parts.size() > kMostParts) parts.resize(kMostParts);
  return parts;
}

std::string whole_difference(const MetricRecord& metric) {
  if (metric.ratio) return format_change(*metric.ratio - 1);
  return metric.verdict == CompareVerdict::kHigher ? "increase" : "decrease";
}

// A part that moved the other way has a negative share: it is said as what it took away.
std::string sentence_of(const MetricRecord& metric, const std::vector<ContributionRecord>& parts) {
  std::string sentence;
  std::size_t named = 0;
  for (const ContributionRecord& part : parts) {
    if (named == kMostNamed) break;
    if (named > 0 && std::abs(part.share_ratio) < kWorthNaming) break;
    std::string share = part.share_ratio < 0 ? "-" : "";
    share += format_percent(part.share_ratio);
    sentence += named == 0
                    ? share + " of the " + whole_difference(metric) + " is " + as_words(part.name)
                    : ", " + share + " " + as_words(part.name);
    ++named;
  }
  return sentence;
}

}  // namespace

std::optional<ExplanationRecord> explain(const MetricRecord& metric, const PointRecord& base,
                                         const PointRecord& candidate) {
  if (!is_difference(metric.verdict)) return std::nullopt;
  const std::optional<Breakdown> breakdown = break_down(metric, base, candidate);
  if (!breakdown) return std::nullopt;
  ExplanationRecord explanation;
  explanation.metric = metric.metric;
  explanation.by = breakdown->by;
  explanation.parts = contributions(*breakdown, *metric.candidate - *metric.base);
  if (explanation.parts.empty()) return std::nullopt;
  explanation.sentence = sentence_of(metric, explanation.parts);
  return explanation;
}

}  // namespace rematch
