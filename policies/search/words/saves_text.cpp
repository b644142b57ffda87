#include "policies/search/words/saves_text.h"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <iterator>
#include <map>

#include "policies/base/text.h"
#include "policies/search/front/gathered_parameters.h"
#include "policies/trace/op_class.h"

namespace rematch {
namespace {

// The description of one layer, without its index. Two layers may have equal `words` although the
// plan treats them differently. The other members tell such layers apart.
struct LayerSaves {
  std::string list;
  std::vector<int> types;  // indices of the region types of the layer
  bool shares_region = false;
  LayerRun words;
  bool operator==(const LayerSaves&) const = default;
};

// Returns names of ops, such as "attention.core::aten::mm#2" for the second op of that name in its
// scope. Omits the number if there is only one such op.
template <class Choose>
std::vector<std::string> ops_of(const RegionType& type, const Choose& choose) {
  std::map<std::string, int> total;
  for (const PlannedOp& op : type.ops) ++total[op.scope + "::" + op.name];
  std::map<std::string, int> seen;
  std::vector<std::string> saves;
  for (const PlannedOp& op : type.ops) {
    const std::string key = op.scope + "::" + op.name;
    const int nth = ++seen[key];
    if (!choose(op.treatment)) continue;
    std::string text = op.scope.empty() ? op.name : key;
    if (total[key] > 1) text.append("#").append(std::to_string(nth));
    saves.push_back(std::move(text));
  }
  return saves;
}

std::vector<std::string> saved_ops(const RegionType& type) {
  return ops_of(type, [](Treatment treatment) { return treatment.is_kept(); });
}

std::vector<std::string> offloaded_by(const RegionType& type) {
  std::vector<std::string> offloads =
      ops_of(type, [](Treatment treatment) { return treatment.is_moved(); });
  if (!is_empty(type.stored_inputs)) offloads.insert(offloads.begin(), "inputs");
  return offloads;
}

std::string without_prefix(const std::string& path, const std::string& block) {
  return path.size() > block.size() ? path.substr(block.size() + 1) : "";
}

enum class Coverage : std::uint8_t { kElsewhere, kInside, kCovers };

Coverage coverage_of(const PlannedRegion& region, const TracedBlock& block,
                     const std::string& path) {
  if (region.first_scope.starts_with(path + ".")) return Coverage::kInside;
  const bool covers =
      std::find(region.layers.begin(), region.layers.end(), block.index) != region.layers.end() &&
      region.first_scope.starts_with(block.list + ".") &&
      region.first_scope.find('.', block.list.size() + 1) == std::string::npos;
  return covers ? Coverage::kCovers : Coverage::kElsewhere;
}

// Returns for each block of the trace how often the same layer has run before. Absent: the layer
// runs only once in the step.
std::vector<OptionalIndex> runs_of_blocks(const Trace& trace) {
  std::map<std::string_view, int> total;
  for (const TracedBlock& block : trace.blocks) ++total[trace.scopes[block.scope].path];
  std::map<std::string_view, int> seen;
  std::vector<OptionalIndex> runs;
  for (const TracedBlock& block : trace.blocks) {
    const std::string& path = trace.scopes[block.scope].path;
    const int run = seen[path]++;
    runs.push_back(total[path] > 1 ? OptionalIndex(run) : std::nullopt);
  }
  return runs;
}

// Finds the plan's regions in one run of a block. See Note [Runs are counted].
class RegionsOfBlock {
 public:
  RegionsOfBlock(const TracedBlock& block, const std::string& path, OptionalIndex run)
      : block_(block), path_(path), run_(run) {}

  // Returns whether the region covers the block. Call it for every region of the plan, in order.
  Coverage next(const PlannedRegion& region) {
    const Coverage coverage = coverage_of(region, block_, path_);
    const bool is_counted = run_.has_value() && region.first_scope == path_;
    return is_counted && seen_++ != *run_ ? Coverage::kElsewhere : coverage;
  }

 private:
  const TracedBlock& block_;
  const std::string& path_;
  OptionalIndex run_;
  int seen_ = 0;
};

// Returns "0-3", or for layers that run several times "0 (2 runs), 2-5".
std::string ranges_of_runs(const std::vector<int>& layers) {
  std::map<int, int> num_runs;
  for (const int layer : layers) ++num_runs[layer];
  std::vector<std::string> parts;
  for (auto first = num_runs.begin(); first != num_runs.end();) {
    std::vector<int> alike;
    auto end = first;
    for (; end != num_runs.end() && end->second == first->second; ++end) {
      alike.push_back(end->first);
    }
    parts.push_back(layer_ranges(alike));
    if (first->second > 1) {
      parts.back() +=
          " (" + std::to_string(first->second) + (alike.size() > 1 ? " runs each)" : " runs)");
    }
    first = end;
  }
  return joined(parts);
}

// Returns the name of a region of several scopes, for example "ffn_norm to ffn".
std::string name_inside(const PlannedRegion& region, const std::string& path) {
  std::string name = without_prefix(region.first_scope, path);
  if (region.first_scope == region.last_scope) return name;
  return name + " to " + without_prefix(region.last_scope, path);
}

// The names of the ops whose results a region saves or offloads, as text.
struct TypeWords {
  std::vector<std::string> saves;
  std::vector<std::string> offloads;
};

// `types` contains one text for each region type of the plan, because many regions share a type.
LayerSaves saves_of(const Plan& plan, const std::vector<TypeWords>& types, const TracedBlock& block,
                    const std::string& path, OptionalIndex run) {
  RegionsOfBlock regions(block, path, run);
  LayerSaves saves;
  saves.list = block.list;
  LayerRun& words = saves.words;
  for (const PlannedRegion& region : plan.regions) {
    const Coverage coverage = regions.next(region);
    if (coverage == Coverage::kElsewhere) continue;
    words.is_checkpointed = true;
    saves.types.push_back(region.type);
    saves.shares_region |= region.layers.size() > 1;
    const TypeWords& type = types[region.type];
    words.saves.insert(words.saves.end(), type.saves.begin(), type.saves.end());
    words.offloads.insert(words.offloads.end(), type.offloads.begin(), type.offloads.end());
    if (coverage == Coverage::kInside) {
      words.regions.push_back(name_inside(region, path));
    } else if (region.layers.size() > 1) {
      words.regions.push_back(
          std::string("layers ").append(layer_ranges(region.layers)).append(" as one region"));
    }
  }
  return saves;
}

}  // namespace

std::vector<LayerRun> layer_runs(const Plan& plan, const Trace& trace) {
  std::vector<TypeWords> types;
  for (const RegionType& type : plan.types) types.push_back({saved_ops(type), offloaded_by(type)});
  std::vector<LayerSaves> saves;
  const std::vector<OptionalIndex> runs_of = runs_of_blocks(trace);
  for (std::size_t index = 0; index < trace.blocks.size(); ++index) {
    const TracedBlock& block = trace.blocks[index];
    saves.push_back(saves_of(plan, types, block, trace.scopes[block.scope].path, runs_of[index]));
  }
  std::vector<LayerRun> runs;
  for (std::size_t first = 0, end = 0; first < saves.size(); first = end) {
    std::vector<int> indices;
    for (; end < saves.size() && saves[first] == saves[end]; ++end) {
      indices.push_back(trace.blocks[end].index);
    }
    runs.push_back(saves[first].words);
    runs.back().layers = ranges_of_runs(indices);
  }
  return runs;
}

namespace {

// An op that a layer keeps: op number `nth` of the `total` ops with its name in its scope.
struct KeptOp {
  std::string selector;  // "attention::mm"
  int nth = 0;
  int total = 0;
  auto operator<=>(const KeptOp&) const = default;
};

// Describes how the plan treats one layer. The layer may be part of a region that covers more
// layers.
struct Layer {
  int index = 0;
  bool is_checkpointed = false;
  // true: the layer keeps casts or copies, which the text does not name
  bool keeps_casts = false;
  bool holds_gathers = false;
  // true: everything except gathered parameters is kept; `keeps` is then empty
  bool drops_gathers_alone = false;
  std::vector<KeptOp> keeps;
  // the layer's regions, unless a single region covers the whole layer
  std::vector<std::string> regions;
  int num_in_segment = 1;
  bool offloads_inputs = false;
  bool offloads_kept = false;
};

// Returns "mm" for "aten::mm", because the namespace does not help the reader.
std::string short_name(const std::string& op) {
  const std::size_t end = op.find("::");
  return end == std::string::npos ? op : op.substr(end + 2);
}

// Adds the ops that the region keeps. In a region of several layers, adds only the ops of layer
// number `place` in it. Omits ops for which `is_gather(index)` is true, because the text describes
// gathers separately.
template <class IsGather>
void add_kept(const RegionType& type, bool is_segment, int place, const IsGather& is_gather,
              Layer& layer) {
  std::string prefix = "+";
  prefix += std::to_string(place);
  std::map<std::string, int> total;
  std::vector<KeptOp> found;
  for (std::size_t index = 0; index < type.ops.size(); ++index) {
    const PlannedOp& op = type.ops[index];
    std::string scope = op.scope;
    if (is_segment) {
      const bool is_here = scope == prefix || scope.starts_with(prefix + ".");
      if (!is_here) continue;
      scope.erase(0, std::min(scope.size(), prefix.size() + 1));
    }
    std::string selector = scope.empty() ? "" : scope + "::";
    selector += short_name(op.name);
    const int nth = ++total[selector];
    if (!op.treatment.is_kept() || is_gather(index)) continue;
    if (op_class_of(op.name.substr(0, op.name.find('.'))) == OpClass::kCopy) {
      layer.keeps_casts = true;
    } else {
      found.push_back({std::move(selector), nth, 0});
    }
  }
  for (KeptOp& op : found) {
    op.total = total[op.selector];
    layer.keeps.push_back(std::move(op));
  }
}

Layer layer_of(const Plan& plan, const TracedBlock& block, const std::string& path,
               OptionalIndex run, GatheredParameters& gathered) {
  RegionsOfBlock regions(block, path, run);
  Layer layer;
  layer.index = block.index;
  layer.holds_gathers = gathered.are_held(block);
  layer.drops_gathers_alone = gathered.are_all_that_is_dropped(block);
  for (std::size_t index = 0; index < plan.regions.size(); ++index) {
    const PlannedRegion& region = plan.regions[index];
    const Coverage coverage = regions.next(region);
    if (coverage == Coverage::kElsewhere) continue;
    layer.is_checkpointed = true;
    const auto& layers = region.layers;
    const auto place = std::find(layers.begin(), layers.end(), block.index) - layers.begin();
    const bool is_segment = layers.size() > 1;
    add_kept(
        plan.types[region.type], is_segment, static_cast<int>(place),
        [&](std::size_t op) { return gathered.is_gather(index, op); }, layer);
    const RegionType& type = plan.types[region.type];
    layer.offloads_inputs |= !is_empty(type.stored_inputs);
    layer.offloads_kept |= std::any_of(type.ops.begin(), type.ops.end(),
                                       [](const PlannedOp& op) { return op.treatment.is_moved(); });
    if (is_segment) layer.num_in_segment = static_cast<int>(layers.size());
    if (coverage == Coverage::kInside) layer.regions.push_back(name_inside(region, path));
  }
  if (layer.drops_gathers_alone) {
    layer.keeps.clear();
    layer.keeps_casts = false;
  } else if (layer.is_checkpointed && layer.holds_gathers) {
    layer.keeps.insert(layer.keeps.begin(), {"gathered parameters", 1, 1});
  }
  return layer;
}

// Ops that are kept by the same set of layers.
struct KeptTogether {
  std::vector<int> layers;
  std::vector<KeptOp> ops;
};

std::vector<KeptTogether> kept_together(const std::vector<Layer>& layers) {
  std::map<KeptOp, std::vector<int>> layers_of;
  std::vector<KeptOp> in_order;
  for (const Layer& layer : layers) {
    for (const KeptOp& op : layer.keeps) {
      std::vector<int>& of_op = layers_of[op];
      if (of_op.empty()) in_order.push_back(op);
      of_op.push_back(layer.index);
    }
  }
  std::vector<KeptTogether> groups;
  for (const KeptOp& op : in_order) {
    const std::vector<int>& of_op = layers_of[op];
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return group.layers == of_op; });
    if (same != groups.end()) {
      same->ops.push_back(op);
    } else {
      groups.push_back({of_op, {op}});
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.layers.size() > b.layers.size(); });
  return groups;
}

// Returns for example "attention::mm#1, ffn::mm". A selector without a number stands for all ops of
// that name in its scope.
std::string words_of(const std::vector<KeptOp>& ops) {
  std::vector<std::string> words;
  for (const KeptOp& op : ops) {
    const bool has_all = std::count_if(ops.begin(), ops.end(), [&](const KeptOp& other) {
                           return other.selector == op.selector;
                         }) == op.total;
    if (!has_all) {
      words.push_back(std::string(op.selector).append("#").append(std::to_string(op.nth)));
    } else if (op.nth == 1) {
      words.push_back(op.selector);
    }
  }
  return joined(words);
}

// Adds texts such as "0-31: keep attention::mm" and "13-31 also ffn::mm#1".
void add_keeps(const std::vector<Layer>& layers, std::vector<std::string>& parts) {
  std::vector<int> keeping;
  for (const KeptTogether& group : kept_together(layers)) {
    const bool is_more =
        std::includes(keeping.begin(), keeping.end(), group.layers.begin(), group.layers.end());
    parts.push_back(ranges_of_runs(group.layers) + (is_more ? " also " : ": keep ") +
                    words_of(group.ops));
    std::vector<int> all;
    std::set_union(keeping.begin(), keeping.end(), group.layers.begin(), group.layers.end(),
                   std::back_inserter(all));
    keeping = std::move(all);
  }
}

// Adds a text such as "1-31 in segments of 2 to 3".
void add_segments(const std::vector<Layer>& layers, std::vector<std::string>& parts) {
  std::vector<int> inside;
  int least = 0;
  int most = 0;
  for (const Layer& layer : layers) {
    if (layer.num_in_segment == 1) continue;
    inside.push_back(layer.index);
    least = least == 0 ? layer.num_in_segment : std::min(least, layer.num_in_segment);
    most = std::max(most, layer.num_in_segment);
  }
  if (inside.empty()) return;
  std::string words = ranges_of_runs(inside) + " in segments of " + std::to_string(least);
  if (most > least) words.append(" to ").append(std::to_string(most));
  parts.push_back(std::move(words));
}

// Adds a text such as "0-30 offload their inputs", with the layers for which `holds` returns true.
// Adds nothing if `holds` returns false for all layers.
template <class Holds>
void add_layers(const std::vector<Layer>& layers, const Holds& holds, const char* words,
                std::vector<std::string>& parts) {
  std::vector<int> indices;
  for (const Layer& layer : layers) {
    if (holds(layer)) indices.push_back(layer.index);
  }
  if (!indices.empty()) parts.push_back(ranges_of_runs(indices) + words);
}

std::string words_of(const std::vector<Layer>& layers) {
  std::vector<std::string> parts;
  const auto add = [&](const char* words, const auto& holds) {
    add_layers(layers, holds, words, parts);
  };
  add_keeps(layers, parts);
  add(" also casts", [](const Layer& layer) { return layer.keeps_casts && !layer.keeps.empty(); });
  add(": keep casts", [](const Layer& layer) { return layer.keeps_casts && layer.keeps.empty(); });
  add(": recompute all", [](const Layer& layer) {
    return layer.is_checkpointed && !layer.drops_gathers_alone && layer.keeps.empty() &&
           !layer.keeps_casts;
  });
  add(": keep all",
      [](const Layer& layer) { return !layer.is_checkpointed && !layer.holds_gathers; });
  add(": keep all, including gathered parameters",
      [](const Layer& layer) { return !layer.is_checkpointed && layer.holds_gathers; });
  add(": keep all but gathered parameters",
      [](const Layer& layer) { return layer.is_checkpointed && layer.drops_gathers_alone; });
  add_segments(layers, parts);
  add(" offload their inputs", [](const Layer& layer) { return layer.offloads_inputs; });
  add(" offload what they keep", [](const Layer& layer) { return layer.offloads_kept; });
  std::map<std::string, std::vector<int>> of_regions;
  for (const Layer& layer : layers) {
    if (!layer.regions.empty()) of_regions[joined(layer.regions)].push_back(layer.index);
  }
  for (const auto& [regions, of_layers] : of_regions) {
    parts.push_back("regions of " + ranges_of_runs(of_layers) + ": " + regions);
  }
  return joined(parts, "; ");
}

}  // namespace

std::string saves_text(const Plan& plan, const Trace& trace) {
  std::vector<std::string> lists;
  std::map<std::string, std::vector<Layer>> by_list;
  GatheredParameters gathered(plan, trace);
  const std::vector<OptionalIndex> runs_of = runs_of_blocks(trace);
  for (std::size_t index = 0; index < trace.blocks.size(); ++index) {
    const TracedBlock& block = trace.blocks[index];
    std::vector<Layer>& layers = by_list[block.list];
    if (layers.empty()) lists.push_back(block.list);
    layers.push_back(
        layer_of(plan, block, trace.scopes[block.scope].path, runs_of[index], gathered));
  }
  for (auto& [list, layers] : by_list) {
    std::stable_sort(layers.begin(), layers.end(),
                     [](const Layer& a, const Layer& b) { return a.index < b.index; });
  }
  std::string text;
  for (const std::string& list : lists) {
    text.append(text.empty() ? "" : "; ").append(lists.size() == 1 ? "layers" : list).append(" ");
    text += words_of(by_list[list]);
  }
  return text;
}

}  // namespace rematch
