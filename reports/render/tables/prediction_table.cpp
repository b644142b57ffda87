#include "reports/render/tables/prediction_table.h"

#include <algorithm>
#include <set>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "policies/catalogue/systems.h"
#include "reports/record/amount_of.h"
#include "reports/render/tables/grid.h"
#include "reports/render/verdict.h"

namespace rematch {
namespace {

using table::Alignment;
using table::bytes_cell;
using table::Grid;
using table::kNotMeasured;

constexpr const char* kFits = "fits";
constexpr std::size_t kNumColumns = 9;

std::string schedule_cell(const PredictedStep& step) {
  return step.has_regions ? std::string(to_string(step.schedule)) : kNotMeasured;
}

std::string forward_and_again(const PredictedStep& step, OpClass op_class) {
  std::string text = std::to_string(amount_of(step.counts.by_class, Phase::kForward, op_class));
  const std::int64_t again = amount_of(step.counts.by_class, Phase::kRecompute, op_class);
  if (again != 0) text.append(" + ").append(std::to_string(again));
  return text;
}

table::Row row_of(const PredictedStep& step) {
  if (!step.refused.empty()) {
    table::Row row{{step.policy, kNotMeasured, "refused"}, step.refused};
    row.cells.resize(kNumColumns, kNotMeasured);
    return row;
  }
  const MemoryRecord& memory = step.memory;
  const bool is_bound = !memory.predicted_peak_note.empty();
  std::vector<std::string> details;
  if (memory.peak_transient) {
    details.push_back("kernels allocate at most " + format_bytes(*memory.peak_transient) +
                      " in addition");
  }
  if (memory.host) {
    details.push_back("on the host at most " + format_bytes(memory.host->peak) + ", copied out " +
                      format_bytes(memory.host->copied_out) + ", back " +
                      format_bytes(memory.host->copied_back));
  }
  if (const std::string_view note = schedule_note(step.policy, step.schedule);
      step.has_regions && !note.empty()) {
    details.emplace_back(note);
  }
  if (is_bound) details.push_back(memory.predicted_peak_note);
  const std::string fits = !step.fits ? kNotMeasured : *step.fits ? "yes" : "no";
  return {{step.policy, schedule_cell(step),
           (is_bound ? "at least " : "") + bytes_cell(memory.peak_allocated), fits,
           describe_place(memory), describe_holders(memory), bytes_cell(memory.after_forward),
           forward_and_again(step, OpClass::kAttentionForward),
           forward_and_again(step, OpClass::kMatmul)},
          joined(details, "; ")};
}

}  // namespace

std::string predictions_to_text(const std::string& words, const std::vector<PredictedStep>& steps,
                                std::size_t width) {
  Grid grid{{{"plan", Alignment::kLeft},
             {"schedule", Alignment::kLeft},
             {"predicted peak"},
             {kFits, Alignment::kLeft},
             {"in", Alignment::kLeft},
             {"held by", Alignment::kLeft, 3},
             {"after forward", Alignment::kRight, 2},
             {"attention", Alignment::kRight, 1},
             {"matmul", Alignment::kRight, 1}},
            "notes"};
  for (const PredictedStep& step : steps) grid.rows.push_back(row_of(step));
  table::drop_empty_columns(grid, kFits);
  return table::format_line(words, TableFormat::kText, width) + "\n" +
         table::format_grid(grid, TableFormat::kText, width) +
         table::format_line("attention, matmul: ops of forward + ops executed again in recompute",
                            TableFormat::kText, width);
}

std::string stages_to_text(const std::vector<PredictedStep>& steps, std::size_t width) {
  const auto is_any = [&](const auto& is) {
    return std::any_of(steps.begin(), steps.end(), [&](const PredictedStep& step) {
      return std::any_of(step.stages.begin(), step.stages.end(), is);
    });
  };
  const bool has_weights =
      is_any([](const PredictedStage& stage) { return stage.weights.has_value(); });
  bool has_ranks = false;
  std::string_view schedule;
  for (const PredictedStep& step : steps) {
    if (step.stages.empty()) continue;
    schedule = step.schedule_name;
    has_ranks |= step.stages.back().rank + 1 < static_cast<std::int64_t>(step.stages.size());
  }
  Grid grid{{{"plan", Alignment::kLeft}, {"stage"}}};
  if (has_ranks) grid.columns.push_back({"rank"});
  for (const char* title : {"in flight", "predicted peak"}) grid.columns.push_back({title});
  grid.columns.push_back({"in", Alignment::kLeft});
  grid.columns.push_back({"held by", Alignment::kLeft, 3});
  for (const char* title : {"forward", "backward"}) grid.columns.push_back({title});
  if (has_weights) grid.columns.push_back({"weights"});
  grid.columns.push_back({"bubble"});
  const auto duration = [](const std::optional<Profile::Duration>& time) {
    return time ? format_duration(*time) : std::string(kNotMeasured);
  };
  for (const PredictedStep& step : steps) {
    for (std::size_t index = 0; index < step.stages.size(); ++index) {
      const PredictedStage& stage = step.stages[index];
      std::vector<std::string> cells = {step.policy, std::to_string(index)};
      if (has_ranks) cells.push_back(std::to_string(stage.rank));
      for (std::string& cell : std::vector<std::string>{
               std::to_string(stage.in_flight), bytes_cell(stage.memory.peak_allocated),
               describe_place(stage.memory), describe_holders(stage.memory),
               duration(stage.forward), duration(stage.backward)}) {
        cells.push_back(std::move(cell));
      }
      if (has_weights) cells.push_back(duration(stage.weights));
      const bool shows_bubble = index == 0 && step.bubble_ratio;
      cells.push_back(shows_bubble ? format_fixed(*step.bubble_ratio * 100, 1) + " %"
                                   : std::string(kNotMeasured));
      grid.rows.push_back({std::move(cells), ""});
    }
  }
  if (grid.rows.empty()) return "";
  std::string words = "schedule " + std::string(schedule) +
                      "; in flight: most micro-batches that a stage holds at once; forward, "
                      "backward: times of one micro-batch, backward with recompute; ";
  if (has_weights) words += "weights: time of its gradients of weights, which run later; ";
  if (has_ranks) words += "peak of a stage: of its rank, while the rank runs this stage; ";
  words += "bubble: share of the step in which the average rank waits";
  return "\n" + table::format_grid(grid, TableFormat::kText, width) +
         table::format_line(words, TableFormat::kText, width);
}

namespace {

std::set<CollectiveKind> kinds_in(const std::vector<PredictedStep>& steps) {
  std::set<CollectiveKind> kinds;
  for (const PredictedStep& step : steps) {
    for (const auto& in_phase : step.traffic) {
      for (const auto& [kind, issued] : in_phase) kinds.insert(kind);
    }
  }
  return kinds;
}

// Adds collectives of the optimizer phase, such as sums of gradients, to those of backward. Reports
// of runs on several ranks also do this.
std::string issued_cell(const Traffic& traffic, CollectiveKind kind) {
  const auto of = [&](Phase phase) { return amount_of(traffic, phase, kind).count; };
  return std::to_string(of(Phase::kForward)) + "/" + std::to_string(of(Phase::kRecompute)) + "/" +
         std::to_string(of(Phase::kBackward) + of(Phase::kOptimizer));
}

Bytes sent_in(const Traffic& traffic) {
  Bytes sent;
  for (const auto& in_phase : traffic) {
    for (const auto& [kind, issued] : in_phase) sent += issued.sent;
  }
  return sent;
}

void add_times(const std::optional<StepRange>& range, table::Row& row) {
  for (const auto part : {&StepRange::nothing_overlaps, &StepRange::all_overlaps}) {
    row.cells.push_back(range ? format_duration((*range.*part)()) : kNotMeasured);
  }
  row.cells.push_back(range ? format_duration(range->compute) : kNotMeasured);
  row.cells.push_back(range ? format_duration(range->communication) : kNotMeasured);
}

std::string source_words(const Profile& profile) {
  const bool is_roofline = profile.source == ProfileSource::kRoofline;
  std::string words = is_roofline ? "the rates of " + profile.device + "'s data sheet"
                                  : "a profile measured on " + profile.device;
  if (!profile.ceilings.empty()) words = "measured ceilings (" + profile.ceilings + ")";
  if (!profile.links.empty()) words += ", of collectives by links (" + profile.links + ")";
  return words;
}

}  // namespace

std::string traffic_to_text(const std::vector<PredictedStep>& steps, const Profile* profile,
                            std::size_t width) {
  const std::set<CollectiveKind> kinds = kinds_in(steps);
  if (kinds.empty() && profile == nullptr) return "";
  Grid grid{{{"plan", Alignment::kLeft}, {"schedule", Alignment::kLeft}}};
  for (const CollectiveKind kind : kinds) grid.columns.push_back({std::string(to_string(kind))});
  if (!kinds.empty()) grid.columns.push_back({"sent"});
  if (profile != nullptr) {
    for (const char* title : {"step", "if all overlaps", "compute", "communication"}) {
      grid.columns.push_back({title});
    }
  }
  for (const PredictedStep& step : steps) {
    if (!step.refused.empty()) continue;
    table::Row row{{step.policy, schedule_cell(step)}, ""};
    for (const CollectiveKind kind : kinds) row.cells.push_back(issued_cell(step.traffic, kind));
    if (!kinds.empty()) row.cells.push_back(format_bytes(sent_in(step.traffic)));
    if (profile != nullptr) add_times(step.range, row);
    grid.rows.push_back(std::move(row));
  }
  std::string words;
  if (!kinds.empty()) {
    words =
        "collectives: issued by a rank in forward/recompute/backward, with the bytes that the rank "
        "sends";
  }
  if (profile != nullptr) {
    words += std::string(words.empty() ? "" : "; ") + "times by " + source_words(*profile) +
             ": the step without overlap, and its lower bound if compute hides all communication";
  }
  return "\n" + table::format_grid(grid, TableFormat::kText, width) +
         table::format_line(words, TableFormat::kText, width);
}

}  // namespace rematch
