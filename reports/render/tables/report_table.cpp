#include "reports/render/tables/report_table.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "policies/catalogue/systems.h"
#include "reports/record/amount_of.h"
#include "reports/render/noise.h"
#include "reports/render/tables/grid.h"
#include "reports/render/tables/ranks_table.h"

namespace rematch {
namespace {

using table::Alignment;
using table::bytes_cell;
using table::duration_cell;
using table::Grid;
using table::kNotMeasured;

constexpr std::size_t kMaxNames = 8;  // maximum number of points that a sentence names
constexpr const char* kUtilization = "MFU";

// Returns the numbers of ops in a step's forward, recompute and backward, such as "60/60/60". Takes
// two classes, because the backward of attention has a different op class.
std::string executed_cell(const PointRecord& point, OpClass ahead, OpClass backward) {
  if (!point.counts) return kNotMeasured;
  const auto per_step = [&](Phase phase, OpClass op_class) {
    return format_per_step(amount_of(point.counts->by_class, phase, op_class),
                           point.counts->counted_steps);
  };
  return per_step(Phase::kForward, ahead) + "/" + per_step(Phase::kRecompute, ahead) + "/" +
         per_step(Phase::kBackward, backward);
}

std::string phase_cell(const MemoryRecord& memory) {
  if (!memory.peak_phase) return kNotMeasured;
  const std::string phase(to_string(*memory.peak_phase));
  return memory.peak_scope.empty() ? phase : phase + " " + memory.peak_scope;
}

// Returns the change of the peak relative to policy `none`.
std::string change_cell(const ComparedPoint& compared) {
  const auto peak = measured_peak(*compared.point);
  const auto none = compared.none == nullptr ? std::nullopt : measured_peak(*compared.none);
  return peak && none ? format_change(none->count, peak->count) : kNotMeasured;
}

// Returns the ratio of the step time to the reference's step time. For the reference, returns its
// step time.
std::string step_cell(const PointRecord& point) {
  if (!point.time) return kNotMeasured;
  if (point.time->ratio && point.policy != point.time->ratio->reference) {
    const StepRatioRecord& ratio = *point.time->ratio;
    if (is_too_noisy(ratio.interval)) return kTooNoisy;
    const std::string cell = format_fixed(ratio.ratio, 2) + " " +
                             (ratio.interval ? format_interval(*ratio.interval, 2) : "[?]");
    return ratio.reference == "none" ? cell : cell + " of " + ratio.reference;
  }
  return duration_cell(point.time->step_median);
}

std::string parity_cell(const PointRecord& point) {
  if (!point.parity) return point.device == "cuda-dry" ? "not proven" : kNotMeasured;
  const ParityRecord& parity = *point.parity;
  if (!is_exact(point)) return "not exact";
  if (has_other_bits(parity)) return "DIFFERENT";
  if (parity.every_parameter_has_gradient == false) return "NO PROOF";
  // Compares only the loss and the gradients, because other bits may not have been recorded.
  return parity.loss_bits_equal && parity.gradient_bits_equal ? "equal" : kNotMeasured;
}

// Returns the allocator's peaks in timed steps, whose kernels may differ from the kernels of
// counted steps.
std::string timed_peaks(const PointRecord& point) {
  if (!point.time || !point.time->peak_allocated || !point.time->peak_reserved) return "";
  return "; timed steps: " + format_bytes(*point.time->peak_allocated) + " allocated, " +
         format_bytes(*point.time->peak_reserved) + " reserved at most";
}

bool has_utilization(const PointRecord& point) { return point.model_flops_utilization.has_value(); }

table::Row row_of(const ComparedPoint& compared) {
  const PointRecord& point = *compared.point;
  const MemoryRecord memory = point.memory.value_or(MemoryRecord{});
  table::Row row{
      {point.policy, std::string(to_string(point.identity.schedule)),
       executed_cell(point, OpClass::kAttentionForward, OpClass::kAttentionBackward),
       executed_cell(point, OpClass::kMatmul, OpClass::kMatmul), bytes_cell(memory.peak_allocated),
       phase_cell(memory), change_cell(compared), bytes_cell(memory.after_forward),
       step_cell(point),
       has_utilization(point) ? format_fixed(100 * *point.model_flops_utilization, 1) + " %"
                              : kNotMeasured,
       parity_cell(point)},
      compared.verdict.text};
  if (point.parity && !point.parity->reference_reason.empty()) {
    row.detail += "; compared with " + point.parity->reference;
  }
  row.detail += timed_peaks(point);
  if (const auto note = schedule_note(point.policy, point.identity.schedule); !note.empty()) {
    row.detail.append("; ").append(note);
  }
  const VerdictKind kind = compared.verdict.kind;
  row.is_alarming = kind == VerdictKind::kFailed || kind == VerdictKind::kDifferent ||
                    kind == VerdictKind::kMiscounted;
  return row;
}

// Returns the attention kernel of the timed steps, or "" if the counted steps used the same kernel.
std::string timed_attention(const Report& report) {
  for (const PointRecord& point : report.points) {
    if (!point.time || point.time->attention_backend.empty()) continue;
    if (point.time->attention_backend == point.identity.attention_backend) continue;
    return point.time->attention_backend;
  }
  return "";
}

std::vector<std::string> footer(const Report& report) {
  const std::string machine = machine_words(report.provenance.environment);
  std::vector<std::string> words = {
      "Attention and matmul: executed per step in forward/recompute/backward. Peak: bytes that "
      "tensors hold at op boundaries, parameters included. Step / none: ratio of median step "
      "times with its 95 % interval.",
      "Counts, bytes and equal bits hold on any machine; times hold for this machine and this "
      "shape" +
          (machine.empty() ? "" : ": " + machine) + "."};
  const std::string attention = timed_attention(report);
  if (!attention.empty()) {
    words.push_back("Times use " + attention +
                    " attention, which LibTorch chooses on this card; counts and bytes were "
                    "measured with the selected attention backend.");
  }
  if (std::any_of(report.points.begin(), report.points.end(), has_utilization)) {
    words.insert(words.begin() + 1,
                 "MFU: matmul and attention flops of a step without recompute, over its time and "
                 "the dense peak of the card's data sheet.");
  }
  return words;
}

// Formats the command as Markdown code, unless it contains characters that are unsafe there.
std::string reproduce_line(const std::string& command, TableFormat format) {
  if (format == TableFormat::kText) return command;
  if (command.find_first_of("`<\n\r") != std::string::npos) return table::markdown_text(command);
  return "`" + command + "`";
}

}  // namespace

Grid comparison_grid(const PolicyComparison& comparison) {
  Grid grid{{{"policy", Alignment::kLeft},
             {"schedule", Alignment::kLeft},
             {"attention"},
             {"matmul"},
             {"peak"},
             {"peak phase", Alignment::kLeft, 2},
             {"vs none"},
             {"after forward", Alignment::kRight, 3},
             {"step / none"},
             {kUtilization},
             {"parity", Alignment::kLeft, 1}}};
  for (const ComparedPoint& compared : comparison.points) grid.rows.push_back(row_of(compared));
  table::drop_empty_columns(grid, kUtilization);
  return grid;
}

std::string failure_words(const PolicyComparison& comparison) {
  std::vector<std::string> names;
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    if (point.status == PointStatus::kOk) continue;
    const bool has_peak = point.memory && point.memory->peak_allocated;
    names.push_back(name_of(point) + " (" + std::string(to_string(point.status)) +
                    (has_peak ? " at " + format_bytes(*point.memory->peak_allocated) : "") + ")");
  }
  if (names.empty()) return "";
  return format_part(names.size(), comparison.points.size()) +
         " points did not finish: " + listed(names, kMaxNames) + ".";
}

std::string machine_words(const Environment& machine) {
  std::vector<std::string> parts;
  if (machine.device && machine.device != "cpu") parts.push_back(*machine.device);
  if (parts.empty() && machine.cpu_model) parts.push_back(*machine.cpu_model);
  if (machine.threads) {
    parts.push_back(std::to_string(*machine.threads) +
                    (*machine.threads == 1 ? " thread" : " threads"));
  }
  if (machine.libtorch_version) parts.push_back("LibTorch " + *machine.libtorch_version);
  return joined(parts, ", ");
}

std::string render_table(const Report& report, TableFormat format, std::size_t width) {
  const bool is_text = format == TableFormat::kText;
  const auto paragraph = [&](const std::string& words) {
    if (words.empty()) return std::string();
    return table::format_line(words, format, width) + (is_text ? "" : "\n");
  };
  std::string text;
  for (const PolicyComparison& comparison : compare_policies(report)) {
    text += is_text ? table::format_line(comparison.title, format, width)
                    : "**" + table::markdown_text(comparison.title) + "**\n";
    text += "\n" + table::format_grid(comparison_grid(comparison), format, width) + "\n";
    std::string remarks;
    for (const auto& [grid, words] : {ranks_grid(comparison), host_grid(comparison)}) {
      if (grid.rows.empty()) continue;
      text += table::format_grid(grid, format, width) + "\n";
      remarks += paragraph(words);
    }
    remarks += paragraph(noise_words(comparison)) + paragraph(failure_words(comparison));
    text += remarks + (is_text && !remarks.empty() ? "\n" : "");
  }
  if (report.points.empty()) text += "The report has no points.\n\n";
  for (const std::string& words : footer(report)) text += paragraph(words);
  // The command is not wrapped, so that it can be copied.
  if (!report.provenance.reproduce.empty()) {
    text += "Reproduce with: " + reproduce_line(report.provenance.reproduce, format) + "\n";
  }
  return text;
}

}  // namespace rematch
