#include "policies/trace/json.h"
#include "reports/record/by_phase.h"
#include "reports/record/field_value.h"
#include "reports/record/parts_json.h"

namespace rematch {

Json kernels_to_json(const KernelRecord& kernels) {
  return {{"counted_steps", kernels.counted_steps},
          {"kernel_count", phases_to_json(kernels.count)},
          {"kernel_time_ns", phases_to_json(kernels.time)},
          {"launches", phases_to_json(kernels.launches)},
          {"dropped_records", kernels.dropped_records},
          {"unattributed_kernels", kernels.unattributed_kernels},
          {"badly_stamped_records", kernels.badly_stamped_records},
          {"unknown_time_ratio", to_value(kernels.unknown_time_ratio)},
          {"unknown_names", kernels.unknown_names},
          {"slowdown_ratio", to_value(kernels.slowdown_ratio)},
          {"note", text_or_null(kernels.note)},
          {"invalid", text_or_null(kernels.invalid)}};
}

KernelRecord kernels_from_json(const JsonField& field) {
  KernelRecord kernels;
  read_member(field, "counted_steps", kernels.counted_steps);
  read_phases(field.at("kernel_count"), kernels.count);
  read_phases(field.at("kernel_time_ns"), kernels.time);
  read_member(field, "dropped_records", kernels.dropped_records);
  read_member(field, "unattributed_kernels", kernels.unattributed_kernels);
  read_member(field, "badly_stamped_records", kernels.badly_stamped_records);
  read_member(field, "unknown_time_ratio", kernels.unknown_time_ratio);
  read_member(field, "unknown_names", kernels.unknown_names);
  read_member(field, "slowdown_ratio", kernels.slowdown_ratio);
  if (const auto launches = field.find("launches")) read_phases(*launches, kernels.launches);
  if (field.find("note")) read_text(field, "note", kernels.note);  // older reports have none
  read_text(field, "invalid", kernels.invalid);
  return kernels;
}

}  // namespace rematch
