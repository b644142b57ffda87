#include "reports/render/tables/plan_table.h"

#include <set>
#include <utility>
#include <vector>

#include "policies/base/format.h"
#include "policies/catalogue/describe.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/catalogue/systems.h"
#include "policies/trace/op_class.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string region_text(const PlannedRegion& region) {
  if (region.first_scope == region.last_scope) return region.first_scope;
  return region.first_scope + " to " + region.last_scope;
}

std::string regions_text(const Plan& plan, const TypeFacts& facts) {
  std::string text;
  for (int region : facts.regions) {
    if (!text.empty()) text += ", ";
    text += region_text(plan.regions[region]);
  }
  return text;
}

table::Grid grid_of_ops(bool is_numbered) {
  using table::Alignment;
  table::Grid grid{{{"op", Alignment::kLeft},
                    {"scope", Alignment::kLeft},
                    {"bytes"},
                    {"treatment", Alignment::kLeft},
                    {"reason", Alignment::kLeft, /*yields=*/1}}};
  if (is_numbered) grid.columns.insert(grid.columns.begin(), {"#"});
  return grid;
}

table::Row row_of(const PlannedOp& op) {
  std::string treatment(op.skipped ? "skip" : to_string(op.treatment));
  if (op.dead_save) treatment += ", dead";
  return {{op.name, op.scope.empty() ? "-" : op.scope,
           op.bytes.count == 0 ? "-" : format_bytes(op.bytes), std::move(treatment), op.reason}};
}

char letter_of(Treatment treatment) {
  return treatment.is_kept() ? traits_of(*treatment.kept_in).letter : 'r';
}

// Lists all matmuls if some are saved and others are recomputed, because "every second" would be
// easy to misread.
std::string matmuls_text(const RegionType& type) {
  std::string text;
  std::string_view scope;
  std::set<Treatment> treatments;
  for (const PlannedOp& op : type.ops) {
    const std::string_view name = std::string_view(op.name).substr(0, op.name.find('.'));
    if (op_class_of(name) != OpClass::kMatmul) continue;
    treatments.insert(op.treatment);
    if (text.empty() || op.scope != scope) {
      text.append(text.empty() ? "" : ", ").append(op.scope.empty() ? "-" : op.scope);
    }
    scope = op.scope;
    text.append({' ', letter_of(op.treatment)});
  }
  if (treatments.size() < 2) return "";
  return "  matmuls in execution order (S saved, r recomputed when backward needs it): " + text +
         "\n";
}

std::string order_text(const RegionType& type, const TypeFacts& facts) {
  if (type.whole_on_demand) {
    return "  on_demand order: recompute all tensors when backward first needs any of them; one "
           "tensor at a time has a higher peak\n";
  }
  if (type.demand_steps.empty()) {
    return "  on_demand order: recompute each saved tensor when backward needs it\n";
  }
  std::string text =
      "  on_demand order: recompute each saved tensor when backward needs it, except, for a lower "
      "peak:\n";
  for (const DemandStep& step : type.demand_steps) {
    for (int pack : step.before) {
      text += "    " + facts.slots[pack] + " before " + facts.slots[step.pack] + "\n";
    }
    for (int pack : step.after) {
      text += "    " + facts.slots[pack] + " after " + facts.slots[step.pack] + "\n";
    }
  }
  return text;
}

// Returns text such as "104 (whole_region) or 96 (on_demand) of 113 ops", or "104 of 113 ops under
// either schedule". `unit` is the text after the figures, " of 113 ops".
std::string under_each_schedule(const std::string& policy, const std::string& whole_region,
                                const std::string& on_demand, const std::string& unit = "") {
  if (whole_region == on_demand) return on_demand + unit + " under either schedule";
  const std::string_view note = schedule_note(policy, Schedule::kOnDemand);
  return whole_region + " (whole_region) or " + on_demand + " (on_demand" +
         (note.empty() ? "" : ": ") + std::string(note) + ")" + unit;
}

std::string totals_text(const std::string& policy, const RegionType& type, const TypeFacts& facts) {
  const RegionSimulation& whole = facts.whole_region;
  const RegionSimulation& demand = facts.on_demand;
  std::string text = "  each keeps " + format_bytes(whole.kept) + " and its inputs, " +
                     format_bytes(whole.inputs) + "; recomputes " +
                     under_each_schedule(policy, std::to_string(whole.executed.size()),
                                         std::to_string(demand.executed.size()),
                                         " of " + counted(type.ops.size(), "op")) +
                     "\n";
  text += "  peak in backward, with gradients, without inputs: " +
          under_each_schedule(policy, format_bytes(whole.peak), format_bytes(demand.peak)) + "\n";
  if (facts.on_host.count > 0) {
    text += "  kept on the host: " + format_bytes(facts.on_host);
    if (const auto& inputs = type.stored_inputs[Store::kHost]; !inputs.empty()) {
      text += ", including " + counted(inputs.size(), "input");
    }
    text += "; the plan's last region keeps them on the device\n";
  }
  if (facts.dead.count > 0) {
    text += "  dead saves: " + format_bytes(facts.dead) +
            " that neither backward nor recompute reads\n";
  }
  return text;
}

std::string type_text(const Plan& plan, std::size_t index, const TypeFacts& facts,
                      std::size_t width) {
  const RegionType& type = plan.types[index];
  table::Grid grid = grid_of_ops(/*is_numbered=*/true);
  for (std::size_t op = 0; op < type.ops.size(); ++op) {
    table::Row& row = grid.rows.emplace_back(row_of(type.ops[op]));
    row.cells.insert(row.cells.begin(), std::to_string(op));
  }
  return "\nregion type " + std::to_string(index) + ", " +
         (type.by_demand    ? "on demand under either schedule: "
          : type.early_stop ? "early stop: "
                            : "no early stop: ") +
         regions_text(plan, facts) + "\n" + table::format_grid(grid, TableFormat::kText, width) +
         matmuls_text(type) + totals_text(plan.policy, type, facts) + order_text(type, facts);
}

// Returns a heading, "layers 1-26: 26 regions of 113 ops; kept: ...", and a row for each kept op.
std::string kept_text(const Plan& plan, std::size_t index, const TypeFacts& facts,
                      std::size_t width) {
  const RegionType& type = plan.types[index];
  std::vector<int> layers;
  for (const int region : facts.regions) {
    const std::vector<int>& more = plan.regions[static_cast<std::size_t>(region)].layers;
    layers.insert(layers.end(), more.begin(), more.end());
  }
  table::Grid grid = grid_of_ops(/*is_numbered=*/false);
  for (const PlannedOp& op : type.ops) {
    if (!op.treatment.is_kept()) continue;
    table::Row& row = grid.rows.emplace_back(row_of(op));
    std::string& reason = row.cells.back();
    reason = reason.substr(0, reason.find(", here "));  // omits the op's name, which the row shows
  }
  std::string text = "\n";
  text += table::format_line(
      (layers.size() == 1 ? "layer " : "layers ") + layer_ranges(layers) + ": " +
          counted(facts.regions.size(), "region") + " of " + counted(type.ops.size(), "op") +
          "; kept: " +
          (grid.rows.empty() ? "nothing" : format_bytes(facts.whole_region.kept) + " a region"),
      TableFormat::kText, width);
  if (!grid.rows.empty()) text += table::format_grid(grid, TableFormat::kText, width);
  if (facts.dead.count > 0) {
    text += table::format_line(
        format_bytes(facts.dead) +
            " of these results are dead: neither backward nor recompute reads them",
        TableFormat::kText, width);
  }
  return text;
}

std::string in_all_text(const Plan& plan, const PlanFacts& facts, std::string_view note,
                        std::size_t width) {
  const auto line = [width](const std::string& words) {
    return table::format_line(words, TableFormat::kText, width);
  };
  std::string text =
      "\n" + line("in total, from forward to backward: " + format_bytes(facts.held.total()) + " (" +
                  format_bytes(facts.held.kept) + " kept by " +
                  counted(plan.regions.size(), "region") + ", " + format_bytes(facts.held.inputs) +
                  " region inputs, " + format_bytes(facts.held.unmanaged) + " outside regions)");
  text += line("recomputed ops a step: " +
               under_each_schedule(plan.policy, std::to_string(facts.recomputed_whole_region),
                                   std::to_string(facts.recomputed_on_demand)));
  for (const std::string& each : lines_of(plan.hidden)) text += line("hidden: " + each);
  if (!note.empty()) text += line("note: " + std::string(note));
  return text;
}

}  // namespace

std::string plan_to_text(const Plan& plan, const Trace& trace, std::string_view note,
                         std::size_t width) {
  const PlanFacts facts = plan_facts(plan, trace);
  std::string text = describe_layers(plan, trace) + "\n";
  for (std::size_t i = 0; i < facts.types.size(); ++i) {
    text += type_text(plan, i, facts.types[i], width);
  }
  return text + in_all_text(plan, facts, note, width);
}

std::string kept_to_text(const Plan& plan, const Trace& trace, std::string_view note,
                         std::size_t width) {
  const PlanFacts facts = plan_facts(plan, trace);
  std::string text = plan.policy + "\n";
  for (std::size_t i = 0; i < facts.types.size(); ++i) {
    text += kept_text(plan, i, facts.types[i], width);
  }
  return text + in_all_text(plan, facts, note, width);
}

}  // namespace rematch
