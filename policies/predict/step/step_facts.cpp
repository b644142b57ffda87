#include "policies/predict/step/step_facts.h"

#include <algorithm>

#include "policies/trace/accumulation.h"

namespace rematch {
namespace {

// Returns for each storage the op that makes it. Returns nullopt for a storage that an op reads
// before any op makes it: a tensor that appeared without an op may share its storage with a later
// tensor.
IdTable<StorageId, std::optional<OpId>> births(const Trace& trace) {
  IdTable<StorageId, std::optional<OpId>> born_at(trace.storages.size());
  IdTable<StorageId, bool> is_seen(trace.storages.size(), false);
  const auto see = [&](ValueId value, std::optional<OpId> maker) {
    const StorageId storage = trace.values[value].storage;
    if (!is_seen[storage]) born_at[storage] = maker;
    is_seen[storage] = true;
  };
  for (const OpId op : trace.ops.ids()) {
    for (const TracedUse& input : trace.ops[op].inputs) see(input.value, std::nullopt);
    for (const ValueId output : trace.ops[op].outputs) see(output, op);
  }
  return born_at;
}

IdTable<StorageId, std::optional<OpId>> frees(const Trace& trace) {
  IdTable<StorageId, std::optional<OpId>> freed_at;
  for (const TracedStorage& storage : trace.storages) freed_at.push_back(storage.freed_at);
  return freed_at;
}

std::vector<DroppedPack> dropped_packs(const Trace& trace) {
  std::vector<DroppedPack> dropped;
  for (const PackId pack : trace.packs.ids()) {
    if (trace.packs[pack].dropped_at) dropped.push_back({*trace.packs[pack].dropped_at, pack});
  }
  std::stable_sort(dropped.begin(), dropped.end(),
                   [](const DroppedPack& a, const DroppedPack& b) { return a.at < b.at; });
  return dropped;
}

// Returns the op at which autograd drops the region's last pack in forward. Returns nullopt if a
// pack lives until backward.
std::optional<OpId> last_drop(const Trace& trace, const TraceRegion& region) {
  OpId last = region.range.first;
  for (const PackId pack : region.packs) {
    if (!trace.packs[pack].dropped_at) return std::nullopt;
    last = std::max(last, *trace.packs[pack].dropped_at);
  }
  return last;
}

std::vector<BackwardPart> parts_of(const std::vector<BackwardEvent>& events) {
  std::vector<BackwardPart> parts;
  for (const BackwardEvent& event : events) {
    const auto index = static_cast<std::int32_t>(&event - events.data());
    const bool is_op = event.kind == BackwardEvent::Kind::kOp;
    if (!is_op || parts.empty() || parts.back().kind != event.kind) {
      const OptionalIndex pack = event.pack ? OptionalIndex(event.pack->index) : std::nullopt;
      parts.push_back({event.kind, pack, index, index + 1, index, event.other_bytes});
      continue;
    }
    BackwardPart& ops = parts.back();
    ops.end = index + 1;
    if (event.other_bytes <= ops.other_bytes) continue;
    ops.highest = index;
    ops.other_bytes = event.other_bytes;
  }
  return parts;
}

// Returns backward of a stage's first micro-batch. Empty for a step of one micro-batch.
std::vector<BackwardEvent> backward_of_first(const Trace& trace) {
  const TracedStage& stage = *trace.stage;
  if (stage.first_other_bytes.empty()) return {};
  std::vector<BackwardEvent> events = trace.backward;
  for (std::size_t index = 0; index < events.size(); ++index) {
    events[index].other_bytes = stage.first_other_bytes.at(index);
    events[index].gradient_bytes = stage.first_gradient_bytes.at(index);
  }
  return events;
}

SplitBackward split_backward(const Trace& trace,
                             const IdTable<StorageId, std::optional<OpId>>& born_at) {
  SplitBackward split;
  split.waiting = weight_gradients(trace);
  split.for_weights = bytes_left_for_weights(trace, split.waiting);
  split.last_release = IdTable<PackId, OptionalIndex>(trace.packs.size());
  IdTable<StorageId, bool> waits(trace.storages.size(), false);
  for (const WeightGradient& weight : split.waiting) {
    split.weight_gradients += weight.gradient;
    for (const PackId pack : weight.inputs) {
      const StorageId storage = trace.values[trace.packs[pack].value].storage;
      if (waits[storage] || !born_at[storage]) continue;
      waits[storage] = true;
      split.inputs.emplace_back(storage, pack);
    }
  }
  IdTable<StorageId, std::optional<PackId>> last(trace.storages.size());
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kRelease) continue;
    const StorageId storage = trace.values[trace.packs[*event.pack].value].storage;
    if (waits[storage]) last[storage] = event.pack;
  }
  for (const StorageId storage : last.ids()) {
    if (last[storage]) split.last_release[*last[storage]] = storage.index;
  }
  split.backward = without_weight_passes(trace.backward, trace, split.waiting,
                                         /*stores=*/micro_batches(trace) == 1);
  return split;
}

}  // namespace

StoragesByOp::StoragesByOp(const IdTable<StorageId, std::optional<OpId>>& op_of_storage,
                           std::size_t num_ops)
    : first_(num_ops + 1, 0) {
  for (const std::optional<OpId> op : op_of_storage) {
    if (op) ++first_[*op + 1];
  }
  for (const OpId op : IdRange(OpId(), OpId(num_ops))) first_[op + 1] += first_[op];
  storages_.resize(first_.back());
  IdTable<OpId, std::size_t> next = first_;
  for (const StorageId storage : op_of_storage.ids()) {
    if (const std::optional<OpId> op = op_of_storage[storage]) storages_[next[*op]++] = storage;
  }
}

StepSimulator::Facts::Facts(const Trace& traced, OptimizerKind optimizer, std::int64_t round)
    : trace(traced),
      optimizer_bytes(rematch::optimizer_bytes(traced, optimizer, round)),
      baseline(traced.parameter_bytes + traced.constant_bytes + gradients_before(traced) +
               optimizer_bytes.state),
      born_at(births(traced)),
      born(born_at, traced.ops.size()),
      freed(frees(traced), traced.ops.size() + 1),
      dropped(dropped_packs(traced)),
      backward_parts(parts_of(traced.backward)),
      index(traced),
      late_copies(traced),
      top_scopes_(top_scopes(traced)) {
  if (trace.stage) set_stage();
  for (const TracedPack& pack : trace.packs) {
    const StorageId storage = trace.values[pack.value].storage;
    pack_storage.push_back(is_born(storage) ? OptionalIndex(storage.index) : std::nullopt);
  }
}

void StepSimulator::Facts::set_stage() {
  const PipelineShape shape = pipeline_shape(trace.dimensions);
  const std::int64_t stage = trace.stage->index;
  scheduled = ScheduledStage{pass_moments(shape, stage % shape.num_ranks),
                             static_cast<std::size_t>(stage / shape.num_ranks),
                             static_cast<std::size_t>(shape.stages_per_rank)};
  first_backward = backward_of_first(trace);
  if (shape.splits_backward) {
    split = split_backward(trace, born_at);
    backward_parts = parts_of(split->backward);
    if (!first_backward.empty()) {
      first_backward = without_weight_passes(std::move(first_backward), trace, split->waiting,
                                             /*stores=*/true);
    }
  }
  first_parts = parts_of(first_backward);
}

const TraceRegion& StepSimulator::Facts::region(OpRange range) {
  const auto [found, is_new] = regions_.try_emplace({range.first, range.end});
  TraceRegion& region = found->second;
  if (!is_new) return region;
  RegionGraph graph = index.graph(range);
  region.range = range;
  region.storages = graph.storage_ids;
  for (std::size_t local = 0; local < graph.storages.size(); ++local) {
    const StorageId storage = graph.storage_ids[local];
    if (graph.storages[local].outside && is_born(storage)) region.inputs.push_back(storage);
  }
  for (const RegionSlot& slot : graph.slots) region.packs.push_back(slot.pack);
  region.dropped_at = last_drop(trace, region);
  region.late_copies = late_copies.of(range);
  for (const auto& known : graphs_) {
    if (!same_behaviour(*known, graph)) continue;
    region.graph = known;
    return region;
  }
  graphs_.push_back(std::make_shared<const RegionGraph>(std::move(graph)));
  region.graph = graphs_.back();
  return region;
}

}  // namespace rematch
