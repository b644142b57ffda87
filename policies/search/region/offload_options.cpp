#include "policies/search/region/offload_options.h"

#include <algorithm>
#include <utility>

#include "policies/predict/step/stored.h"
#include "policies/search/region/block_front.h"

namespace rematch {
namespace {

// The inputs and ops of a region that may be moved to the host.
struct CanLeave {
  std::vector<RegionInput> inputs;
  std::vector<bool> ops;  // indexed by op: whether a kept result of the op may be offloaded
};

class OffloadOptions {
 public:
  OffloadOptions(const SearchedTrace& searched, int first, const std::vector<int>& kinds)
      : trace_(searched.trace),
        map_(searched.map),
        first_(first),
        kinds_(kinds),
        space_(searched.space),
        pricer_(searched, first, static_cast<int>(kinds.size())) {}

  std::vector<SpanOption> run(const std::vector<std::vector<int>>& save_sets) {
    std::vector<SpanOption> options;
    // backward needs no tensor of the region, so there is nothing to offload
    if (!has_live_slot(pricer_.graph(pricer_.whole()))) return options;
    const CanLeave can_leave = leave_everywhere();
    for (const std::vector<int>& saves : save_sets) {
      RegionSaves picked{pricer_.whole(), saves, {}, can_leave.inputs};
      add(picked, options);
      std::copy_if(saves.begin(), saves.end(), std::back_inserter(picked.offloaded),
                   [&](int op) { return can_leave.ops[static_cast<std::size_t>(op)]; });
      if (picked.offloaded.empty()) continue;
      add(picked, options);
      picked.offload_inputs.clear();
      if (!can_leave.inputs.empty()) add(picked, options);
    }
    return options;
  }

 private:
  bool stands_at(std::size_t place) const {
    if (place + kinds_.size() > map_.spans.size()) return false;
    for (std::size_t i = 0; i < kinds_.size(); ++i) {
      if (map_.spans[place + i].kind != kinds_[i]) return false;
    }
    return true;
  }

  CanLeave leave_everywhere() const {
    CanLeave common = leave_at(first_);
    for (std::size_t place = 0; place < map_.spans.size(); ++place) {
      if (!stands_at(place)) continue;
      const CanLeave here = leave_at(static_cast<int>(place));
      std::erase_if(common.inputs, [&](const RegionInput& input) {
        return std::find(here.inputs.begin(), here.inputs.end(), input) == here.inputs.end();
      });
      for (std::size_t op = 0; op < common.ops.size(); ++op) {
        common.ops[op] = common.ops[op] && here.ops[op];
      }
    }
    return common;
  }

  CanLeave leave_at(int first) const {
    const int last = first + static_cast<int>(kinds_.size()) - 1;
    const RegionGraph graph =
        map_.index.graph({map_.spans[first].range.first, map_.spans[last].range.end});
    const auto frees_memory = [&](int value) {
      const StorageId id = graph.storage_ids[graph.values[value].storage];
      return map_.is_alone[id] && map_.owner[id] >= first && map_.owner[id] <= last;
    };
    CanLeave can_leave;
    for (const RegionInput& input : movable_inputs(trace_, graph)) {
      if (frees_memory(graph.ops[input.op].reads[input.argument].value)) {
        can_leave.inputs.push_back(input);
      }
    }
    for (std::size_t op = 0; op < graph.ops.size(); ++op) {
      const std::vector<int>& outputs = graph.ops[op].outputs;
      const std::string& name = trace_.ops[graph.range.first + static_cast<int>(op)].name;
      can_leave.ops.push_back(traits_of(Store::kHost).can_hold(name) && !outputs.empty() &&
                              std::all_of(outputs.begin(), outputs.end(), frees_memory));
    }
    return can_leave;
  }

  void add(const RegionSaves& picked, std::vector<SpanOption>& options) {
    const Bytes offloaded = bytes_of(picked);
    if (offloaded.count == 0) return;
    SpanOption option{pricer_.price({picked}), {picked}};
    option.figures.held -= offloaded;
    option.figures.offloaded = offloaded;
    option.figures.time +=
        space_.offload->wait_out(offloaded) + space_.offload->wait_back(offloaded);
    if (kinds_.size() > 1) option.figures.covers = kinds_;
    options.push_back(std::move(option));
  }

  Bytes bytes_of(const RegionSaves& picked) {
    const RegionGraph& graph = pricer_.graph(picked.range);
    RegionType type;
    type.ops = ops_saving(graph, picked.saves);
    for (std::size_t op = 0; op < type.ops.size(); ++op) {
      type.ops[op].name = trace_.ops[graph.range.first + static_cast<int>(op)].name;
    }
    set_offloads(picked, type);
    return rematch::bytes_of(stored_storages(graph, type), graph);
  }

  const Trace& trace_;
  const SpanMap& map_;
  int first_;
  const std::vector<int>& kinds_;
  const SearchSpace& space_;
  SpanPricer pricer_;
};

}  // namespace

std::vector<SpanOption> offload_options(const SearchedTrace& searched, int first,
                                        const std::vector<int>& kinds,
                                        const std::vector<std::vector<int>>& save_sets) {
  return OffloadOptions(searched, first, kinds).run(save_sets);
}

void set_offloads(const RegionSaves& picked, RegionType& type) {
  for (const int op : picked.offloaded) {
    type.ops[static_cast<std::size_t>(op)].treatment = Treatment::kOffload;
  }
  type.stored_inputs[Store::kHost] = picked.offload_inputs;
}

}  // namespace rematch
