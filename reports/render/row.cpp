#include "reports/render/row.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "reports/render/format.h"

namespace rematch {
namespace {

std::int64_t count_of(const CountsRecord& counts, Phase phase, OpClass op_class) {
  const auto& by_class = counts.by_class.at(static_cast<std::size_t>(phase));
  const auto found = by_class.find(op_class);
  return found == by_class.end() ? 0 : found->second;
}

// "60/60/60": executed in a step's forward, recompute and backward. Attention is another class in
// backward than in forward and recompute.
std::string executed(const PointRecord& point, OpClass ahead, OpClass backward) {
  if (!point.counts) return kNotMeasured;
  const CountsRecord& counts = *point.counts;
  const int steps = counts.counted_steps;
  return format_per_step(count_of(counts, Phase::kForward, ahead), steps) + "/" +
         format_per_step(count_of(counts, Phase::kRecompute, ahead), steps) + "/" +
         format_per_step(count_of(counts, Phase::kBackward, backward), steps);
}

std::string bytes_cell(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : kNotMeasured;
}

std::string place_cell(const PointRecord& point) {
  if (!point.memory || !point.memory->peak_phase) return kNotMeasured;
  const MemoryRecord& memory = *point.memory;
  std::string place(to_string(*memory.peak_phase));
  if (!memory.peak_scope.empty()) place.append(" ").append(memory.peak_scope);
  return place;
}

std::string change_cell(const ComparedPoint& compared) {
  const PointRecord* none = compared.none;
  if (none == nullptr || none->status != PointStatus::kOk ||
      compared.point->status != PointStatus::kOk) {
    return kNotMeasured;
  }
  const auto peak_of = [](const PointRecord& point) {
    return point.memory ? point.memory->peak_allocated : std::nullopt;
  };
  const std::optional<Bytes> mine = peak_of(*compared.point);
  const std::optional<Bytes> theirs = peak_of(*none);
  if (!mine || !theirs || theirs->count == 0) return kNotMeasured;
  return format_change(theirs->count, mine->count);
}

std::string step_cell(const ComparedPoint& compared) {
  const PointRecord& point = *compared.point;
  if (!point.time) return kNotMeasured;
  // The reference's own ratio says nothing; its time is what the others are held against.
  if (point.time->ratio && point.policy != point.time->ratio->reference) {
    const StepRatioRecord& ratio = *point.time->ratio;
    std::string cell = format_fixed(ratio.ratio, 2);
    cell += ratio.interval ? " [" + format_fixed((*ratio.interval)[0], 2) + " " +
                                 format_fixed((*ratio.interval)[1], 2) + "]"
                           : " [?]";
    return ratio.reference == "none" ? cell : cell + " of " + ratio.reference;
  }
  return point.time->step_median ? format_duration(*point.time->step_median) : kNotMeasured;
}

std::string parity_cell(const PointRecord& point) {
  if (!point.parity) return kNotMeasured;
  const ParityRecord& parity = *point.parity;
  const std::array parts = {parity.loss_bits_equal, parity.gradient_bits_equal,
                            parity.parameter_hash_equal, parity.generator_hash_equal};
  if (std::find(parts.begin(), parts.end(), false) != parts.end()) return "DIFFERENT";
  if (parity.every_parameter_has_gradient == false) return "NO PROOF";
  // Loss and gradients are what parity is about; the rest may not have been recorded.
  if (parity.loss_bits_equal && parity.gradient_bits_equal) return "equal";
  return kNotMeasured;
}

std::string control_words(const ControlRecord& control) {
  const std::string words = "Timed again, it differs from itself (A/A) by ";
  if (!control.interval) return words + format_change(control.ratio - 1) + ", in one block";
  return words + format_change((*control.interval)[0] - 1) + " to " +
         format_change((*control.interval)[1] - 1);
}

}  // namespace

const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = {
      {"policy", Alignment::kLeft, 0},       {"schedule", Alignment::kLeft, 0},
      {"attention", Alignment::kRight, 0},   {"matmul", Alignment::kRight, 0},
      {"peak", Alignment::kRight, 0},        {"peak is in", Alignment::kLeft, 2},
      {"vs none", Alignment::kRight, 0},     {"after forward", Alignment::kRight, 3},
      {"step / none", Alignment::kRight, 0}, {"parity", Alignment::kLeft, 1},
  };
  return kColumns;
}

Row make_row(const ComparedPoint& compared) {
  const PointRecord& point = *compared.point;
  const std::optional<MemoryRecord>& memory = point.memory;
  Row row;
  row.cells = {point.policy,
               std::string(to_string(point.identity.schedule)),
               executed(point, OpClass::kAttentionForward, OpClass::kAttentionBackward),
               executed(point, OpClass::kMatmul, OpClass::kMatmul),
               memory ? bytes_cell(memory->peak_allocated) : kNotMeasured,
               place_cell(point),
               change_cell(compared),
               memory ? bytes_cell(memory->after_forward) : kNotMeasured,
               step_cell(compared),
               parity_cell(point)};
  row.detail = compared.verdict.text;
  if (point.parity && !point.parity->reference_reason.empty()) {
    row.detail.append(". Compared with ").append(point.parity->reference);
    row.detail.append(": ").append(point.parity->reference_reason);
  }
  if (point.time && point.time->control) {
    row.detail.append(". ").append(control_words(*point.time->control));
  }
  if (point.time && point.time->quality && point.time->quality->num_outliers.value_or(0) > 0) {
    row.detail.append(". ").append(std::to_string(*point.time->quality->num_outliers));
    row.detail.append(" of its timed steps are outliers, and kept");
  }
  if (point.time && point.time->quality && point.time->quality->verdict != "good") {
    row.detail.append(". Times are ").append(point.time->quality->verdict);
    for (const std::string& reason : point.time->quality->reasons) {
      row.detail.append(", ").append(reason);
    }
  }
  return row;
}

}  // namespace rematch
