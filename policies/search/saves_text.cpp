#include "policies/search/saves_text.h"

#include <algorithm>
#include <map>

namespace rematch {
namespace {

// What is said of one layer.
struct LayerSaves {
  int layer = 0;
  std::string list;
  std::vector<int> types;  // of its regions
  bool shares_region = false;
  std::vector<std::string> regions;
  std::vector<std::string> saves;
  bool operator==(const LayerSaves&) const = default;
};

bool same_treatment(LayerSaves a, LayerSaves b) {
  a.layer = b.layer = 0;
  return a == b;
}

// "attention.core::aten::mm#2": the second of that name in its scope. Without a number if it is the
// only one.
std::vector<std::string> saved_ops(const RegionType& type) {
  std::map<std::string, int> total;
  for (const PlannedOp& op : type.ops) ++total[op.scope + "::" + op.name];
  std::map<std::string, int> seen;
  std::vector<std::string> saves;
  for (const PlannedOp& op : type.ops) {
    const std::string key = op.scope + "::" + op.name;
    const int nth = ++seen[key];
    if (op.treatment == Treatment::kRecompute) continue;
    std::string text = op.scope.empty() ? op.name : key;
    if (total[key] > 1) text.append("#").append(std::to_string(nth));
    saves.push_back(std::move(text));
  }
  return saves;
}

std::string without_prefix(const std::string& path, const std::string& block) {
  return path.size() > block.size() ? path.substr(block.size() + 1) : "";
}

std::vector<LayerSaves> saves_by_layer(const Plan& plan, const Trace& trace) {
  std::vector<LayerSaves> all;
  for (const TracedBlock& block : trace.blocks) {
    LayerSaves saves{block.index, block.list, {}, false, {}, {}};
    const std::string& path = trace.scopes[block.scope].path;
    for (const PlannedRegion& region : plan.regions) {
      const bool is_inside = region.first_scope.starts_with(path + ".");
      const bool covers = !is_inside && !region.first_scope.empty() &&
                          std::find(region.layers.begin(), region.layers.end(), block.index) !=
                              region.layers.end() &&
                          region.first_scope.starts_with(block.list + ".") &&
                          region.first_scope.find('.', block.list.size() + 1) == std::string::npos;
      if (!is_inside && !covers) continue;
      saves.types.push_back(region.type);
      saves.shares_region |= region.layers.size() > 1;
      for (std::string& op : saved_ops(plan.types[region.type])) saves.saves.push_back(op);
      if (is_inside) {
        std::string name = without_prefix(region.first_scope, path);
        if (region.first_scope != region.last_scope) {
          name.append(" to ").append(without_prefix(region.last_scope, path));
        }
        saves.regions.push_back(std::move(name));
      } else if (region.layers.size() > 1) {
        saves.regions.push_back(
            std::string("layers ").append(layer_ranges(region.layers)).append(" as one region"));
      }
    }
    all.push_back(std::move(saves));
  }
  return all;
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : ", ").append(part);
  return text;
}

}  // namespace

std::vector<LayerRun> layer_runs(const Plan& plan, const Trace& trace) {
  const std::vector<LayerSaves> layers = saves_by_layer(plan, trace);
  std::vector<LayerRun> runs;
  for (std::size_t first = 0; first < layers.size();) {
    std::size_t end = first + 1;
    while (end < layers.size() && same_treatment(layers[first], layers[end])) ++end;
    std::vector<int> indices;
    for (std::size_t i = first; i < end; ++i) indices.push_back(layers[i].layer);
    runs.push_back({layer_ranges(indices), !layers[first].types.empty(), layers[first].regions,
                    layers[first].saves});
    first = end;
  }
  return runs;
}

std::string saves_text(const Plan& plan, const Trace& trace) {
  std::string text;
  for (const LayerRun& run : layer_runs(plan, trace)) {
    text += text.empty() ? "layers " : "; ";
    text.append(run.layers).append(": ");
    if (!run.is_checkpointed) {
      text += "keep all";
      continue;
    }
    text.append(run.saves.empty() ? "recompute all" : "keep ").append(joined(run.saves));
    if (!run.regions.empty()) text.append(" (regions: ").append(joined(run.regions)).append(")");
  }
  return text;
}

}  // namespace rematch
