#include "policies/catalogue/describe.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <string_view>

#include "policies/base/json.h"
#include "policies/catalogue/plan_facts.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

// Exact while it is short, then in binary units: 640 B, 12.50 KiB.
std::string bytes_text(Bytes bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double amount = static_cast<double>(bytes.count);
  while (amount >= 1024 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", amount, kUnits[unit]);
  return text;
}

std::string counted(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string layers_text(const std::vector<int>& layers) {
  std::string text;
  for (const int layer : layers) {
    if (!text.empty()) text += ' ';
    text += std::to_string(layer);
  }
  return text.empty() ? "none" : text;
}

// Bars separate regions of several layers: 0 1 | 2 3.
std::string checkpointed_text(const LayerFacts& list) {
  std::string text;
  bool bars = false;
  for (const std::vector<int>& layers : list.checkpointed) bars |= layers.size() > 1;
  for (const std::vector<int>& layers : list.checkpointed) {
    if (!text.empty()) text += bars ? " | " : " ";
    text += layers_text(layers);
  }
  return text.empty() ? "none" : text;
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

using Row = std::array<std::string, 6>;

Row row_of(std::size_t index, const PlannedOp& op) {
  std::string treatment(to_string(op.treatment));
  if (op.dead_save) treatment += ", dead";
  return {std::to_string(index),
          op.name,
          op.scope.empty() ? "-" : op.scope,
          op.bytes.count == 0 ? "-" : bytes_text(op.bytes),
          treatment,
          op.reason};
}

// Numbers are right-aligned, names left-aligned; no blanks follow the last column.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      const bool is_number = i == 0 || i == 3;
      text += "  ";
      if (is_number) text += padding;
      text += row[i];
      if (!is_number && i + 1 < row.size()) text += padding;
    }
    text += '\n';
  }
  return text;
}

char letter_of(Treatment treatment) {
  switch (treatment) {
    case Treatment::kSave:
      return 'S';
    case Treatment::kRecompute:
      return 'r';
    case Treatment::kOffload:
      return 'o';
  }
  return '?';
}

// Which matmuls are kept, if some are and some are not: "every second" is easily read the wrong way
// round.
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
  return "  matmuls as they run, S saved, r recomputed where backward needs it: " + text + "\n";
}

std::string order_text(const RegionType& type, const TypeFacts& facts) {
  if (type.whole_on_demand) {
    return "  on_demand order: all that is needed at the first demand, which peaks lower than one "
           "by one\n";
  }
  if (type.demand_steps.empty()) {
    return "  on_demand order: each saved tensor when backward asks for it\n";
  }
  std::string text =
      "  on_demand order: each saved tensor when backward asks for it, but early, to peak lower:\n";
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

std::string totals_text(const RegionType& type, const TypeFacts& facts) {
  const RegionSimulation& whole = facts.whole_region;
  const RegionSimulation& demand = facts.on_demand;
  std::string text = "  each keeps " + bytes_text(whole.kept) + " and its inputs, " +
                     bytes_text(whole.inputs) + "; recomputes " +
                     std::to_string(whole.executed.size()) + " (whole_region) or " +
                     std::to_string(demand.executed.size()) + " (on_demand) of " +
                     counted(type.ops.size(), "op") + "\n";
  text += "  peak in backward, gradients included, inputs not: " + bytes_text(whole.peak) +
          " (whole_region) or " + bytes_text(demand.peak) + " (on_demand)\n";
  if (facts.on_host.count > 0) {
    text += "  of these " + bytes_text(facts.on_host) + " wait on the host";
    if (!type.offload_inputs.empty()) {
      text += ", with " + counted(type.offload_inputs.size(), "input");
    }
    text += "; the plan's last region keeps its own\n";
  }
  if (facts.dead.count > 0) {
    text += "  dead saves: " + bytes_text(facts.dead) +
            " kept that neither backward nor recompute reads\n";
  }
  return text;
}

std::string type_text(const Plan& plan, std::size_t index, const TypeFacts& facts) {
  const RegionType& type = plan.types[index];
  std::string text = "\nregion type " + std::to_string(index) + ", " +
                     (type.by_demand    ? "by demand under either schedule: "
                      : type.early_stop ? "early stop: "
                                        : "no early stop: ") +
                     regions_text(plan, facts) + "\n";
  std::vector<Row> rows = {{"#", "op", "scope", "bytes", "treatment", "reason"}};
  for (std::size_t i = 0; i < type.ops.size(); ++i) rows.push_back(row_of(i, type.ops[i]));
  return text + table(rows) + matmuls_text(type) + totals_text(type, facts) +
         order_text(type, facts);
}

// "layers 1-26, 26 regions, 113 ops; kept:", and a row for each op that is kept.
std::string kept_text(const Plan& plan, std::size_t index, const TypeFacts& facts) {
  const RegionType& type = plan.types[index];
  std::vector<int> layers;
  for (const int region : facts.regions) {
    const std::vector<int>& more = plan.regions[static_cast<std::size_t>(region)].layers;
    layers.insert(layers.end(), more.begin(), more.end());
  }
  std::vector<Row> rows;
  for (std::size_t i = 0; i < type.ops.size(); ++i) {
    if (type.ops[i].treatment == Treatment::kRecompute) continue;
    Row row = row_of(i, type.ops[i]);
    row[0] = "";
    row[5] = row[5].substr(0, row[5].find(", here "));  // the row says what it is here
    rows.push_back(std::move(row));
  }
  std::string text = "\nlayers " + layer_ranges(layers) + ", " +
                     counted(facts.regions.size(), "region") + " of " +
                     counted(type.ops.size(), "op") + " each; kept: ";
  text += rows.empty() ? "nothing\n" : bytes_text(facts.whole_region.kept) + " a region\n";
  text += table(rows);
  if (facts.dead.count > 0) {
    text += "  of it " + bytes_text(facts.dead) +
            " are dead: neither backward nor recompute reads them\n";
  }
  return text;
}

Json op_json(std::size_t index, const PlannedOp& op) {
  return {{"index", index},
          {"name", op.name},
          {"scope", op.scope},
          {"bytes", op.bytes.count},
          {"treatment", to_string(op.treatment)},
          {"reason", op.reason},
          {"dead_save", op.dead_save}};
}

Json recomputed_json(std::size_t whole_region, std::size_t on_demand) {
  return {{"whole_region", whole_region}, {"on_demand", on_demand}};
}

Json type_json(const Plan& plan, std::size_t index, const TypeFacts& facts) {
  const RegionType& type = plan.types[index];
  Json regions = Json::array();
  for (int region : facts.regions) {
    regions.push_back({{"first_scope", plan.regions[region].first_scope},
                       {"last_scope", plan.regions[region].last_scope},
                       {"layers", plan.regions[region].layers}});
  }
  Json ops = Json::array();
  for (std::size_t i = 0; i < type.ops.size(); ++i) ops.push_back(op_json(i, type.ops[i]));
  Json steps = Json::array();
  for (const DemandStep& step : type.demand_steps) {
    steps.push_back({{"pack", step.pack}, {"before", step.before}, {"after", step.after}});
  }
  return {{"regions", regions},
          {"early_stop", type.early_stop},
          {"by_demand", type.by_demand},
          {"ops", ops},
          {"kept_bytes", facts.whole_region.kept.count},
          {"dead_bytes", facts.dead.count},
          {"input_bytes", facts.whole_region.inputs.count},
          {"recomputed_ops",
           recomputed_json(facts.whole_region.executed.size(), facts.on_demand.executed.size())},
          {"peak_bytes",
           {{"whole_region", facts.whole_region.peak.count},
            {"on_demand", facts.on_demand.peak.count}}},
          {"whole_on_demand", type.whole_on_demand},
          {"demand_steps", steps}};
}

}  // namespace

std::string describe_layers(const Plan& plan, const Trace& trace) {
  const std::vector<LayerFacts> lists = layer_facts(plan, trace);
  std::string text = plan.policy;
  for (const LayerFacts& list : lists) {
    text += lists.front().list == list.list ? ", " : "; ";
    if (lists.size() > 1) text += list.list + ": ";
    text += counted(static_cast<std::size_t>(list.num_layers), "layer") + ": checkpoints " +
            checkpointed_text(list) + ", keeps " + layers_text(list.kept);
  }
  return text;
}

std::string describe(const Plan& plan, const Trace& trace, std::string_view note, Detail detail) {
  const PlanFacts facts = plan_facts(plan, trace);
  const bool is_short = detail == Detail::kKeptOps;
  std::string text = (is_short ? plan.policy : describe_layers(plan, trace)) + "\n";
  for (std::size_t i = 0; i < facts.types.size(); ++i) {
    text += is_short ? kept_text(plan, i, facts.types[i]) : type_text(plan, i, facts.types[i]);
  }
  text += "\nin all, from forward to backward: " + bytes_text(facts.held.total()) + " (" +
          bytes_text(facts.held.kept) + " kept by " + counted(plan.regions.size(), "region") +
          ", " + bytes_text(facts.held.inputs) + " region inputs, " +
          bytes_text(facts.held.unmanaged) + " outside regions)\n";
  text += "recomputed ops a step: " + std::to_string(facts.recomputed_whole_region) +
          " (whole_region) or " + std::to_string(facts.recomputed_on_demand) + " (on_demand)\n";
  if (!note.empty()) text.append("note: ").append(note).append("\n");
  return text;
}

Json describe_json(const Plan& plan, const Trace& trace, std::string_view note) {
  const PlanFacts facts = plan_facts(plan, trace);
  Json lists = Json::array();
  for (const LayerFacts& list : facts.lists) {
    lists.push_back({{"list", list.list},
                     {"num_layers", list.num_layers},
                     {"checkpoints", list.checkpointed},
                     {"keeps", list.kept}});
  }
  Json types = Json::array();
  for (std::size_t i = 0; i < facts.types.size(); ++i) {
    types.push_back(type_json(plan, i, facts.types[i]));
  }
  Json json = {
      {"policy", plan.policy},
      {"model", plan.model},
      {"plan_sha256", plan_sha256(plan)},
      {"layers", lists},
      {"types", types},
      {"held_bytes",
       {{"kept", facts.held.kept.count},
        {"inputs", facts.held.inputs.count},
        {"outside_regions", facts.held.unmanaged.count},
        {"total", facts.held.total().count}}},
      {"recomputed_ops", recomputed_json(static_cast<std::size_t>(facts.recomputed_whole_region),
                                         static_cast<std::size_t>(facts.recomputed_on_demand))}};
  if (!note.empty()) json["note"] = note;
  return json;
}

}  // namespace rematch
