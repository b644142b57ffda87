#include "reports/render/tables/prediction_table.h"

#include "policies/base/joined.h"
#include "reports/render/format.h"
#include "reports/render/tables/cells.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

using table::Alignment;
using table::bytes_cell;
using table::Grid;
using table::kNotMeasured;

std::string forward_and_again(std::int64_t forward, std::int64_t again) {
  std::string text = std::to_string(forward);
  if (again != 0) text.append(" + ").append(std::to_string(again));
  return text;
}

table::Row row_of(const PredictedStep& step) {
  const MemoryRecord& memory = step.memory;
  const bool is_bound = !memory.predicted_peak_note.empty();
  std::vector<std::string> details;
  if (memory.peak_transient) {
    details.push_back("kernels allocate at most " + format_bytes(*memory.peak_transient) +
                      " inside on top");
  }
  if (memory.host) {
    details.push_back("on the host at most " + format_bytes(memory.host->peak) + ", copied out " +
                      format_bytes(memory.host->copied_out) + ", back " +
                      format_bytes(memory.host->copied_back));
  }
  if (is_bound) details.push_back(memory.predicted_peak_note);
  return {{step.policy, step.schedule.empty() ? kNotMeasured : step.schedule,
           (is_bound ? "at least " : "") + bytes_cell(memory.peak_allocated),
           describe_place(memory), describe_holders(memory), bytes_cell(memory.after_forward),
           forward_and_again(step.attention, step.attention_again),
           forward_and_again(step.matmul, step.matmul_again)},
          joined(details, "; ")};
}

}  // namespace

std::string predictions_to_text(const std::string& words, const std::vector<PredictedStep>& steps,
                                std::size_t width) {
  Grid grid{{{"plan", Alignment::kLeft},
             {"schedule", Alignment::kLeft},
             {"predicted peak"},
             {"in", Alignment::kLeft},
             {"held by", Alignment::kLeft, 3},
             {"after forward", Alignment::kRight, 2},
             {"attention", Alignment::kRight, 1},
             {"matmul", Alignment::kRight, 1}},
            "notes"};
  for (const PredictedStep& step : steps) grid.rows.push_back(row_of(step));
  return table::format_line(words, TableFormat::kText, width) + "\n" +
         table::format_grid(grid, TableFormat::kText, width) +
         table::format_line("attention, matmul: ops of forward + ops executed again in recompute",
                            TableFormat::kText, width);
}

}  // namespace rematch
