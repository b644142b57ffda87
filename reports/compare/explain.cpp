#include "reports/compare/metrics.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "policies/base/format.h"
#include "reports/record/amount_of.h"

namespace rematch {
namespace {

constexpr std::size_t kMaxParts = 8;
constexpr double kWorthNaming = 0.05;  // explanations omit parts with a smaller share
constexpr std::size_t kMaxNamed = 3;

using Parts = std::map<std::string, std::int64_t>;

struct Breakdown {
  std::string by;
  Parts base;
  Parts candidate;
  double scale = 1;  // factor that converts the parts to the metric's unit
};

std::int64_t number_of(std::int64_t count) { return count; }
std::int64_t number_of(Bytes bytes) { return bytes.count; }
std::int64_t number_of(std::chrono::nanoseconds time) { return time.count(); }

template <class Key, class Amount>
Parts parts_of(const std::map<Key, Amount>& amounts) {
  Parts parts;
  for (const auto& [key, amount] : amounts) parts[name_text(key)] = number_of(amount);
  return parts;
}

// Returns the amounts by name, such as "norm in forward". If `noun` is " kernels", the name is
// "norm kernels in forward".
template <class Key, class Amount>
Parts parts_of(const std::array<std::map<Key, Amount>, kNumPhases>& amounts,
               const std::string& noun = "", std::optional<Phase> only = std::nullopt) {
  Parts parts;
  for (const Phase phase : kPhases) {
    if (only && phase != *only) continue;
    const std::string place = noun + " in " + std::string(to_string(phase));
    for (const auto& [key, amount] : amounts.at(static_cast<std::size_t>(phase))) {
      parts[name_text(key) + place] = number_of(amount);
    }
  }
  return parts;
}

Parts kernel_times(const KernelRecord& kernels) {
  Parts parts = parts_of(kernels.time, " kernels");
  for (auto& [name, spent] : parts) spent /= kernels.counted_steps;
  return parts;
}

// Returns nullopt if the two sides counted different numbers of steps, because their totals are
// then not comparable.
template <class Counts, class PartsOf>
std::optional<Breakdown> break_down_counts(const std::string& by, const Counts& base,
                                           const Counts& candidate, PartsOf parts) {
  if (candidate.counted_steps != base.counted_steps) return std::nullopt;
  return Breakdown{by, parts(base), parts(candidate), 1.0 / base.counted_steps};
}

// Returns the part of a step's time in which no kernel runs. Absent if kernels of several streams
// overlap.
std::optional<std::int64_t> time_without_kernels(double step_ns, const Parts& kernels) {
  std::int64_t rest = std::llround(step_ns);
  for (const auto& [name, spent] : kernels) rest -= spent;
  if (rest < 0) return std::nullopt;
  return rest;
}

// Returns nullopt if all kernel times are equal, because the host then causes the difference.
std::optional<Breakdown> break_down_kernels(const MetricRecord& metric, const PointRecord& base,
                                            const PointRecord& candidate) {
  for (const PointRecord* point : {&base, &candidate}) {
    if (!point->kernels || !point->kernels->is_usable()) return std::nullopt;
  }
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
  Breakdown classes{"phase and op class", parts_of(base.time->classes),
                    parts_of(candidate.time->classes)};
  if (!classes.base.empty() && !classes.candidate.empty()) return classes;
  Breakdown phases{"phase", parts_of(base.time->phases), parts_of(candidate.time->phases)};
  if (phases.base.empty() || phases.candidate.empty()) return std::nullopt;
  return phases;
}

std::optional<Breakdown> break_down(const MetricRecord& metric, const PointRecord& base,
                                    const PointRecord& candidate) {
  switch (metric.metric) {
    case Metric::kStepTime:
      return break_down_time(metric, base, candidate);
    case Metric::kPeakAllocated: {
      Breakdown bytes{"holder at the peak", parts_of(base.memory->holders_at_peak),
                      parts_of(candidate.memory->holders_at_peak)};
      if (bytes.base.empty() || bytes.candidate.empty()) return std::nullopt;
      return bytes;
    }
    case Metric::kExecutedOps:
      return break_down_counts("phase and op class", *base.counts, *candidate.counts,
                               [](const auto& counts) { return parts_of(counts.by_class); });
    case Metric::kRecomputedOps:
      return break_down_counts(
          "phase and op class", *base.counts, *candidate.counts,
          [](const auto& counts) { return parts_of(counts.by_class, "", Phase::kRecompute); });
    case Metric::kKernelCount:
      return break_down_counts("phase and kernel class", *base.kernels, *candidate.kernels,
                               [](const auto& kernels) { return parts_of(kernels.count); });
    case Metric::kCollectives:
      return break_down_counts("phase and kind of collective", *base.ranks, *candidate.ranks,
                               [](const auto& ranks) { return parts_of(ranks.collectives); });
    case Metric::kCollectiveBytes:
      return break_down_counts("phase and kind of collective", *base.ranks, *candidate.ranks,
                               [](const auto& ranks) { return parts_of(ranks.collective_bytes); });
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
  std::vector<ContributionRecord> parts;
  for (const std::string& name : names) {
    ContributionRecord part{name, amount_of(breakdown.base, name),
                            amount_of(breakdown.candidate, name)};
    if (part.base == part.candidate) continue;
    part.share_ratio = (static_cast<double>(part.candidate) - static_cast<double>(part.base)) *
                       breakdown.scale / difference;
    parts.push_back(std::move(part));
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& left, const auto& right) {
    return std::abs(left.share_ratio) > std::abs(right.share_ratio);
  });
  if (parts.size() > kMaxParts) parts.resize(kMaxParts);
  return parts;
}

std::string whole_difference(const MetricRecord& metric) {
  if (metric.ratio) return format_change(*metric.ratio - 1);
  return metric.verdict == CompareVerdict::kHigher ? "increase" : "decrease";
}

// If a part decreased although the metric increased, or the other way round, the part's share is
// negative and is printed with a minus sign.
std::string sentence_of(const MetricRecord& metric, const std::vector<ContributionRecord>& parts) {
  std::string sentence;
  std::size_t named = 0;
  for (const ContributionRecord& part : parts) {
    if (named == kMaxNamed) break;
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
