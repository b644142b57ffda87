#include "reports/record/compare.h"

namespace rematch {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, kMetrics.size()> kNames = {
    "step_time_ns",        "peak_allocated_bytes",
    "peak_reserved_bytes", "executed_ops",
    "recomputed_ops",      "kernel_count",
    "recomputed_flops",    "collectives",
    "collective_bytes",    "loss"};
constexpr std::array<std::string_view, kMetrics.size()> kShortNames = {
    "step_time",    "peak_allocated",   "peak_reserved", "executed_ops",     "recomputed_ops",
    "kernel_count", "recomputed_flops", "collectives",   "collective_bytes", "loss"};
constexpr std::array<std::string_view, 8> kCompareVerdicts = {
    "faster", "slower", "same", "unsure", "lower", "higher", "different", "not_measured"};

}  // namespace

std::string_view to_string(Metric metric) { return kNames.at(static_cast<std::size_t>(metric)); }

std::string_view short_name(Metric metric) {
  return kShortNames.at(static_cast<std::size_t>(metric));
}

std::optional<Metric> metric_from_string(std::string_view name) {
  for (const Metric metric : kMetrics) {
    if (name == to_string(metric) || name == short_name(metric)) return metric;
  }
  return std::nullopt;
}

std::string_view to_string(CompareVerdict verdict) {
  return kCompareVerdicts.at(static_cast<std::size_t>(verdict));
}

std::optional<CompareVerdict> compare_verdict_from_string(std::string_view text) {
  for (std::size_t index = 0; index < kCompareVerdicts.size(); ++index) {
    if (text == kCompareVerdicts.at(index)) return static_cast<CompareVerdict>(index);
  }
  return std::nullopt;
}

}  // namespace rematch
