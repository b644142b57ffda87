#include "harness/profile/kernel_record.h"

namespace rematch {

KernelRecord kernel_record(const KernelUse& use, const CountsRecord& executed) {
  KernelRecord record;
  record.counted_steps = executed.counted_steps;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [kernel_class, totals] : use.by_class[phase]) {
      const std::string name(to_string(kernel_class));
      record.count[phase][name] = totals.count;
      record.time[phase][name] = totals.time;
    }
    for (const auto& [name, totals] : use.by_name[phase]) {
      record.launches[phase][name] = totals.count;
    }
  }
  record.dropped_records = use.dropped;
  record.unattributed_kernels = use.unattributed;
  record.badly_stamped_records = use.badly_stamped;
  record.unknown_names = use.unknown_names;
  const auto all = static_cast<double>(use.total_time().count());
  if (all > 0) record.unknown_time_ratio = static_cast<double>(use.unknown_time.count()) / all;
  record.note = use.note.value_or("");
  if (use.invalid) {
    record.invalid = *use.invalid;
  } else if (const auto difference = disagreement(use, executed.by_class)) {
    record.invalid = *difference;
  }
  return record;
}

std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> op_class_times(
    const KernelUse& use, int counted_steps) {
  std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases> times;
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    for (const auto& [op_class, totals] : use.by_op_class[phase]) {
      times[phase][op_class] = totals.time / counted_steps;
    }
  }
  return times;
}

}  // namespace rematch
