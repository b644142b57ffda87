#include "policies/planners/sac_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

#include "policies/planners/block_regions.h"

namespace rematch {
namespace {

double milliseconds(Profile::Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// A module as the planner defines it: a block, or the ops before, between or after blocks.
struct Module {
  OpRange range;
  bool is_block = false;
};

std::vector<Module> modules_of(const Trace& trace, const std::vector<OpRange>& blocks) {
  std::vector<Module> modules;
  OpId done;
  const auto add = [&](OpRange range, bool is_block) {
    if (range.first < range.end) modules.push_back({range, is_block});
    done = range.end;
  };
  for (OpRange block : blocks) {
    add({done, block.first}, false);
    add(block, true);
  }
  add({done, trace.ops.end_id()}, false);
  return modules;
}

// Computes the memory figures of modules in the same way as PyTorch's memory tracker.
class Tracker {
 public:
  explicit Tracker(const Trace& trace) : trace_(trace), maker_(trace.storages.size()) {
    for (const OpId op : trace.ops.ids()) {
      for (ValueId output : trace.ops[op].outputs) {
        std::optional<OpId>& maker = maker_[trace.values[output].storage];
        if (!maker) maker = op;
      }
    }
    for (const OpId op : trace.ops.ids()) {
      for (const TracedUse& use : trace.ops[op].inputs) {
        last_read_[trace.values[use.value].storage] = op;
      }
    }
  }

  // Returns the memory figures of the module with these ops. Counts saved tensors, and tensors that
  // later ops read.
  SacModule figures(OpRange range) const {
    SacModule module;
    std::set<StorageId> saved;
    std::set<StorageId> saved_here;
    for (const TracedPack& pack : trace_.packs) {
      const StorageId storage = trace_.values[pack.value].storage;
      if (!maker_[storage] || maker_[storage] >= range.end) continue;
      if (pack.dropped_at && *pack.dropped_at <= range.end) continue;
      if (pack.at_op <= range.end) saved.insert(storage);
      if (pack.at_op <= range.end && maker_[storage] >= range.first) saved_here.insert(storage);
    }
    for (const auto& [storage, last] : last_read_) {
      if (maker_[storage] < range.first || maker_[storage] >= range.end || last < range.end) {
        continue;
      }
      saved.insert(storage);
      saved_here.erase(storage);  // the module's output
    }
    for (StorageId storage : saved) module.total_kept_bytes += trace_.storages[storage].bytes.count;
    for (StorageId storage : saved_here) module.kept_bytes += trace_.storages[storage].bytes.count;
    add_gradients(range, module);
    return module;
  }

 private:
  void add_gradients(OpRange range, SacModule& module) const {
    std::int64_t before = 0;
    bool begun = false;
    std::int64_t first = 0;
    for (const BackwardEvent& event : trace_.backward) {
      if (event.kind != BackwardEvent::Kind::kOp) continue;
      const std::int64_t now = event.other_bytes.count - event.gradient_bytes.count;
      const bool is_inside = event.scope && trace_.scopes[*event.scope].first_op >= range.first &&
                             trace_.scopes[*event.scope].end_op <= range.end;
      if (is_inside) {
        if (!begun) first = before;
        begun = true;
        module.gradient_bytes = std::max(module.gradient_bytes, now - first);
      } else if (!begun) {
        module.born_bytes = event.gradient_bytes.count;
      }
      before = now;
    }
    if (!begun) module.born_bytes = 0;
  }

  const Trace& trace_;
  IdTable<StorageId, std::optional<OpId>> maker_;
  std::map<StorageId, OpId> last_read_;
};

SacModel model_of(const Trace& trace, const Profile& profile, const std::vector<Module>& modules) {
  const Tracker tracker(trace);
  SacModel model;
  model.parameter_bytes = trace.parameter_bytes.count;
  for (const Module& found : modules) {
    SacModule module = tracker.figures(found.range);
    module.name = "module" + std::to_string(model.modules.size());
    module.is_leaf = !found.is_block;
    module.post_order = static_cast<int>(model.modules.size());
    if (found.is_block) {
      const SacOps ops = sac_ops_of(trace, profile, found.range);
      module.all_bytes = std::max(
          module.kept_bytes,
          std::accumulate(ops.memory_bytes.begin(), ops.memory_bytes.end(), std::int64_t{0}));
      module.runtime_ms = std::accumulate(ops.runtimes_ms.begin(), ops.runtimes_ms.end(), 0.0);
      module.lines = sac_tradeoff(ops);
    }
    model.modules.push_back(std::move(module));
  }
  return model;
}

double estimated_peak(const SacModel& model) {
  std::int64_t most = 0;
  for (const SacModule& module : model.modules) {
    most = std::max(most, module.total_kept_bytes + module.gradient_bytes + module.born_bytes);
  }
  return static_cast<double>(model.parameter_bytes + most);
}

}  // namespace

SacOps sac_ops_of(const Trace& trace, const Profile& profile, OpRange range) {
  // The smallest allocation on CUDA. PyTorch's estimator rounds sizes up to a multiple of it.
  constexpr std::int64_t kAllocation = 512;
  SacOps ops;
  std::map<StorageId, int> maker;
  for (const OpId id : range.ids()) {
    const TracedOp& op = trace.ops[id];
    const int index = id - range.first;
    std::set<StorageId> storages(op.writes.begin(), op.writes.end());
    for (ValueId output : op.outputs) storages.insert(trace.values[output].storage);
    std::int64_t bytes = 0;
    for (StorageId storage : storages) {
      const std::int64_t size = trace.storages[storage].bytes.count;
      bytes += op.is_view ? 0 : (size + kAllocation - 1) / kAllocation * kAllocation;
      maker.try_emplace(storage, index);
    }
    ops.memory_bytes.push_back(bytes);
    ops.runtimes_ms.push_back(milliseconds(profile.forward[id]));
    if (op.is_view) ops.views.push_back(index);
    if (op.draws_random) ops.random.push_back(index);
    if (!op.writes.empty()) ops.in_place.emplace_back(index, maker.at(op.writes.front()));
  }
  // The region's output is kept in any case, for the op that reads it. So saving the output costs
  // nothing.
  for (OpId id = range.end; id-- > range.first;) {
    if (trace.ops[id].is_view || !trace.ops[id].writes.empty()) continue;
    ops.memory_bytes[id - range.first] = 0;
    break;
  }
  return ops;
}

std::vector<FittedLine> sac_tradeoff(const SacOps& ops) {
  struct Group {
    double bytes = 0;
    double time = 0;
    double worth() const { return time > 0 ? bytes / time : std::numeric_limits<double>::max(); }
  };
  std::map<int, Group> groups;  // groups of ops, keyed by the first op of the group
  std::map<int, int> head;
  for (const auto& [op, parent] : ops.in_place) head[op] = parent;
  for (int op : ops.random) head.try_emplace(op, ops.random.front());
  const std::set<int> views(ops.views.begin(), ops.views.end());
  Group taken;   // views, which are always recomputed
  Group stored;  // tensors from outside that are written in place
  Group all;
  for (std::size_t i = 0; i < ops.memory_bytes.size(); ++i) {
    const int op = static_cast<int>(i);
    const auto found = head.find(op);
    const int first = found == head.end() ? op : found->second;
    const bool is_stored =
        head.contains(first) && head.at(first) == first &&
        std::find(ops.random.begin(), ops.random.end(), first) == ops.random.end();
    Group& group = views.contains(op) ? taken : is_stored ? stored : groups[first];
    for (Group* sum : {&group, &all}) {
      sum->bytes += static_cast<double>(ops.memory_bytes[i]);
      sum->time += ops.runtimes_ms[i];
    }
  }
  std::vector<Group> order;
  for (const auto& [first, group] : groups) order.push_back(group);
  std::stable_sort(order.begin(), order.end(),
                   [](const Group& a, const Group& b) { return a.worth() > b.worth(); });
  order.push_back(stored);
  // Makes the curve an upper bound: shifts each share of bytes by kShift, and pairs the share with
  // the time of the next, larger share.
  constexpr double kShift = 1e-2;
  std::map<double, double> curve;
  const auto add = [&] {
    curve[taken.bytes / std::max(1.0, all.bytes) + kShift] =
        all.time > 0 ? taken.time / all.time : 0;
  };
  add();
  for (const Group& group : order) {
    taken.bytes += group.bytes;
    taken.time += group.time;
    add();
  }
  std::vector<FittedPoint> points;
  for (auto point = curve.begin(); std::next(point) != curve.end(); ++point) {
    points.push_back({point->first, std::next(point)->second});
  }
  if (points.size() < 2) return {{0, 1}};
  return fit_two_lines(points);
}

std::variant<Plan, Rejected> plan_by_sac(const Trace& trace, const Profile& profile,
                                         double budget_ratio) {
  if (!(budget_ratio > 0 && budget_ratio <= 1)) {
    return Rejected{"sac_ilp's budget must be a fraction of the peak, above 0 and at most 1, not " +
                    without_zeros(budget_ratio)};
  }
  auto found = block_regions(trace);
  if (auto* rejected = std::get_if<Rejected>(&found)) return std::move(*rejected);
  const auto& blocks = std::get<BlockRegions>(found);
  const std::vector<Module> modules = modules_of(trace, blocks.ranges);
  const SacModel model = model_of(trace, profile, modules);
  const auto solution = sac_discards(model, estimated_peak(model) * budget_ratio);
  const std::string name = "sac_ilp(" + without_zeros(budget_ratio) + ")";
  if (!solution) {
    return Rejected{name + " finds no plan within its budget; give a larger fraction, at most 1"};
  }
  std::vector<BlockSaves> saves;
  std::size_t block = 0;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    if (!modules[i].is_block) continue;
    if (solution->discards[i]) {
      const SacOps ops = sac_ops_of(trace, profile, modules[i].range);
      const double kept = std::clamp(1 - *solution->discards[i], 0.0, 1.0);
      if (auto chosen = sac_saves(ops, kept)) saves.push_back({block, std::move(*chosen)});
    }
    ++block;
  }
  return plan_with_saves(trace, blocks, saves, name);
}

}  // namespace rematch
