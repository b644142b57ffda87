#include "policies/predict/step/micro_batch_run.h"

#include <algorithm>

#include "policies/trace/accumulation.h"
#include "policies/trace/collective.h"

namespace rematch {

StepSimulator::MicroBatchRun::MicroBatchRun(Facts& facts, const std::vector<LocatedRegion>& regions,
                                            Schedule schedule, StepDetails* details,
                                            const MicroBatch& micro_batch)
    : facts_(facts),
      trace_(facts.trace),
      micro_batch_(micro_batch),
      events_(micro_batch.is_first ? facts.first_backward : facts.backward()),
      baseline_(facts.baseline - (micro_batch.is_first ? gradients_before(trace_) : Bytes{})),
      schedule_(schedule),
      recomputed_ops_(details == nullptr ? nullptr : &details->recomputed),
      boundaries_(details == nullptr ? nullptr : &details->boundaries),
      holders_(facts.trace.storages.size(), 0),
      region_of_pack_(facts.trace.packs.size()) {
  regions_.reserve(regions.size());
  for (const LocatedRegion& region : regions) add_region(region);
  // Backward starts with the last region, so moving its values to a store would gain nothing.
  if (!regions_.empty()) regions_.back().stash = {};
  if (facts_.split) hold_inputs_of_waiting();
}

Bytes StepSimulator::MicroBatchRun::held_after_forward() {
  forward();
  end_forward();
  return alive();
}

StepPrediction StepSimulator::MicroBatchRun::run() {
  result_.before = facts_.baseline - gradients_before(trace_) + others_before();
  if (facts_.profile) result_.time.emplace();
  if (facts_.profile && facts_.profile->forward_kernels) result_.recomputed_kernels = 0;
  forward();
  end_forward();
  backward();
  optimizer();
  if (facts_.profile) add_times();
  if (peak_op_) result_.peak = forward_peak(*peak_op_);
  result_.host = stores_.host();
  count_micro_batches();
  return result_;
}

void StepSimulator::MicroBatchRun::add_region(const LocatedRegion& placed) {
  const TraceRegion& in_trace = facts_.region(placed.range);
  const auto key = std::make_pair(in_trace.graph.get(), placed.type);
  auto known = simulations_.find(key);
  if (known == simulations_.end()) {
    known =
        simulations_
            .emplace(key, SimulatedType{simulate_region(*in_trace.graph, *placed.type, schedule_),
                                        stored_storages(*in_trace.graph, *placed.type)})
            .first;
  }
  const auto& [simulation, stored] = known->second;
  const auto index = static_cast<std::int32_t>(regions_.size());
  for (const PackId pack : in_trace.packs) region_of_pack_[pack] = index;
  Region region{.in_trace = &in_trace, .simulation = &simulation};
  if (!stored.empty()) region.stash = {stored, *in_trace.graph};
  regions_.push_back(region);
}

void StepSimulator::MicroBatchRun::hold_inputs_of_waiting() {
  is_kept_when_released_ = IdTable<StorageId, bool>(trace_.storages.size(), false);
  for (const auto& [storage, pack] : facts_.split->inputs) {
    const OptionalIndex region = region_of_pack_[pack];
    if (region.has_value() && !holds_from_forward(regions_[*region], storage)) {
      is_kept_when_released_[storage] = true;
    } else {
      ++holders_[storage];
    }
  }
}

bool StepSimulator::MicroBatchRun::holds_from_forward(const Region& region, StorageId storage) {
  const TraceRegion& in_trace = *region.in_trace;
  const std::vector<int>& kept = region.simulation->timeline.kept;
  return std::find(in_trace.inputs.begin(), in_trace.inputs.end(), storage) !=
             in_trace.inputs.end() ||
         std::any_of(kept.begin(), kept.end(),
                     [&](int local) { return in_trace.storages[local] == storage; });
}

void StepSimulator::MicroBatchRun::forward() {
  for (const OpId op : trace_.ops.ids()) {
    close_region(op);
    open_region(op);
    hold_packs_before(op);
    for (const StorageId storage : facts_.born.at(op)) allocate(storage);
    for (const StorageId storage : facts_.freed.at(op)) release(storage);
    drop_packs(op);
    make_copies(op);
    if (!is_replay_only(trace_.ops[op].name)) note_forward(op);
    // The engine copies a result to a store after the op, so the bytes at the op's boundary do
    // not include the copy.
    put_results(op);
  }
}

void StepSimulator::MicroBatchRun::end_forward() {
  const OpId end = trace_.ops.end_id();
  close_region(end);
  hold_packs_before(end);
  for (const StorageId storage : facts_.freed.at(end)) release(storage);
  drop_packs(end);
  result_.after_forward = baseline_ + alive() + others_in_forward();
  if (boundaries_ != nullptr || peak_op_) {
    held_after_forward_ = holders_;
    copied_after_forward_ = held_copies();
  }
  if (boundaries_ == nullptr) return;
  for (std::size_t i = 0; i < boundaries_->size(); ++i) {
    StepBoundary& boundary = (*boundaries_)[i];
    boundary.holders = forward_holders(boundary_ops_[i], boundary.holders[Holder::kOther]);
  }
}

void StepSimulator::MicroBatchRun::open_region(OpId op) {
  if (next_region_ >= regions_.size()) return;
  Region& region = regions_[next_region_];
  if (region.in_trace->range.first != op || region.in_trace->range.end == op) return;
  ++next_region_;
  region.before = closed_last_;
  for (const StorageId input : region.in_trace->inputs) ++holders_[input];
  for (const int kept : region.simulation->timeline.kept) {
    ++holders_[region.in_trace->storages[kept]];
  }
}

void StepSimulator::MicroBatchRun::close_region(OpId op) {
  if (next_region_ == num_closed_) return;
  Region& region = regions_[num_closed_];
  if (region.in_trace->range.end != op) return;
  ++num_closed_;
  for (const LateCopy& copy : region.in_trace->late_copies) {
    late_copies_.insert({copy.op, {&region, copy.bytes}});
  }
  const bool is_idle = region.in_trace->dropped_at.has_value();
  if (!is_idle) stores_.put_inputs(region.stash);
  if (counts_copies()) result_.time->copies += facts_.link->wait_out(region.stash.host_copies());
  if (closed_last_ != nullptr) leave_device(*closed_last_);
  closed_last_ = is_idle ? nullptr : &region;
  if (is_idle) idle_.push_back(&region);
  drop_idle(op);
}

void StepSimulator::MicroBatchRun::drop_packs(OpId op) {
  for (; next_drop_ < facts_.dropped.size() && facts_.dropped[next_drop_].at <= op; ++next_drop_) {
    const PackId pack = facts_.dropped[next_drop_].pack;
    const OptionalIndex storage = facts_.pack_storage[pack];
    if (storage.has_value() && !region_of_pack_[pack].has_value()) release(StorageId(*storage));
  }
  drop_idle(op);
}

void StepSimulator::MicroBatchRun::drop_idle(OpId op) {
  std::erase_if(idle_, [&](Region* region) {
    if (*region->in_trace->dropped_at > op) return false;
    drop(*region);
    return true;
  });
}

void StepSimulator::MicroBatchRun::drop(Region& region) {
  release_inputs(region);
  drop_copies(region);
  for (const int kept : region.simulation->timeline.kept) {
    release(region.in_trace->storages[kept]);
  }
  stores_.drop_copies(region.stash);
}

void StepSimulator::MicroBatchRun::hold_packs_before(OpId op) {
  for (; trace_.packs.contains(next_pack_) && trace_.packs[next_pack_].at_op <= op; ++next_pack_) {
    const OptionalIndex storage = facts_.pack_storage[next_pack_];
    if (storage.has_value() && !region_of_pack_[next_pack_].has_value()) {
      ++holders_[StorageId(*storage)];
    }
  }
}

void StepSimulator::MicroBatchRun::make_copies(OpId op) {
  const auto [first, last] = late_copies_.equal_range(op);
  for (auto late = first; late != last; ++late) {
    const auto [region, bytes] = late->second;
    const std::optional<OpId> dropped_at = region->in_trace->dropped_at;
    if (dropped_at && *dropped_at <= op) continue;
    region->copied += bytes;
    alive_ += bytes;
  }
  if (next_region_ == num_closed_) return;
  Region& region = regions_[num_closed_];
  const auto& copies = region.in_trace->graph->copies;
  for (; region.num_copied < copies.size(); ++region.num_copied) {
    const RegionCopy& copy = copies[region.num_copied];
    if (region.in_trace->range.first + copy.op > op) return;
    region.copied += copy.bytes;
    alive_ += copy.bytes;
  }
}

void StepSimulator::MicroBatchRun::note_forward(OpId op) {
  if (!micro_batch_.others_in_forward) return;
  const Bytes total = baseline_ + alive() + others_in_forward() + facts_.gathered_at(op);
  // Only the end of forward shows who holds which bytes. Until then, `other` contains all live
  // bytes.
  if (boundaries_ != nullptr) {
    boundaries_->push_back({Phase::kForward, facts_.top_scope(trace_.ops[op].scope), {}});
    boundaries_->back().holders[Holder::kOther] = alive();
    boundary_ops_.push_back(op);
  }
  if (!raises_peak(Phase::kForward, total)) return;
  peak_op_ = op;
  peak_alive_ = alive();
}

void StepSimulator::MicroBatchRun::backward() {
  for (const BackwardPart& part :
       micro_batch_.is_first ? facts_.first_parts : facts_.backward_parts) {
    if (part.kind == BackwardEvent::Kind::kOp) {
      note_ops(part);
      continue;
    }
    const PackId pack(*part.pack);
    const OptionalIndex region = region_of_pack_[pack];
    if (region.has_value()) {
      advance(regions_[*region], part);
    } else if (part.kind == BackwardEvent::Kind::kRelease) {
      const OptionalIndex storage = facts_.pack_storage[pack];
      if (storage.has_value()) release(StorageId(*storage));
    }
    if (part.kind == BackwardEvent::Kind::kRelease) note_release(pack);
  }
}

void StepSimulator::MicroBatchRun::advance(Region& region, const BackwardPart& asked) {
  const RegionTimeline& timeline = region.simulation->timeline;
  if (asked.kind == BackwardEvent::Kind::kDemand) {
    bring_back(region);
    if (region.before != nullptr) bring_back(*std::exchange(region.before, nullptr));
  }
  const RegionTimeline::Event& done = timeline.events[region.next_event++];
  recomputed_ -= region.recomputed;
  for (; region.next_step < done.end_step; ++region.next_step) {
    const RegionTimeline::Step& step = timeline.steps[region.next_step];
    if (step.released.has_value()) {
      release_kept(region, *step.released);
      continue;
    }
    ++result_.recomputed_ops;
    const OpId op = region.in_trace->range.first + step.op;
    if (recomputed_ops_ != nullptr) recomputed_ops_->push_back(op);
    if (facts_.profile) {
      result_.time->recompute += facts_.profile->forward[op];
      if (collective_kind(trace_.ops[op].name)) {
        result_.time->communication += facts_.profile->forward[op];
      }
      if (result_.recomputed_kernels) {
        *result_.recomputed_kernels += (*facts_.profile->forward_kernels)[op];
      }
    }
    note_backward(
        {Phase::kRecompute, asked.first, asked.other_bytes, recomputed_ + step.recomputed});
  }
  region.recomputed = done.recomputed;
  recomputed_ += region.recomputed;
  if (timeline.ends && region.next_event == timeline.events.size()) {
    release_inputs(region);
    drop_copies(region);
    stores_.drop_copies(region.stash);
  }
}

void StepSimulator::MicroBatchRun::note_release(PackId pack) {
  if (!facts_.split) return;
  const OptionalIndex storage = facts_.split->last_release[pack];
  if (!storage.has_value() || !is_kept_when_released_[StorageId(*storage)]) return;
  recomputed_inputs_ += trace_.storages[StorageId(*storage)].bytes;
}

void StepSimulator::MicroBatchRun::note_ops(const BackwardPart& ops) {
  if (boundaries_ == nullptr) {
    note_backward({Phase::kBackward, ops.highest, ops.other_bytes, recomputed_});
    return;
  }
  for (std::int32_t event = ops.first; event < ops.end; ++event) {
    const Bytes other_bytes = events_[event].other_bytes;
    note_backward({Phase::kBackward, event, other_bytes, recomputed_});
  }
}

void StepSimulator::MicroBatchRun::note_backward(const Moment& moment) {
  if (!micro_batch_.others_in_backward) return;
  const HolderBytes& others = *micro_batch_.others_in_backward;
  const Bytes total = baseline_ + alive() + others.total() + moment.recomputed + moment.other_bytes;
  const bool is_peak = raises_peak(moment.phase, total);
  if (!is_peak && boundaries_ == nullptr) return;
  const BackwardEvent& event = events_[moment.event];
  HolderBytes holders = standing_holders();
  holders[Holder::kGradients] += event.gradient_bytes;
  holders[Holder::kSavedActivations] = alive();
  holders[Holder::kRecomputeTransient] = moment.recomputed;
  holders[Holder::kOther] += moment.other_bytes - event.gradient_bytes;
  holders += others;
  const StepBoundary boundary{moment.phase, facts_.top_scope(event.scope), holders};
  if (boundaries_ != nullptr) boundaries_->push_back(boundary);
  if (is_peak) set_peak(boundary);
}

void StepSimulator::MicroBatchRun::optimizer() {
  if (facts_.optimizer_bytes.state.count == 0 || !micro_batch_.is_last) return;
  HolderBytes holders = standing_holders();
  holders[Holder::kGradients] = trace_.gradient_bytes;
  holders[Holder::kOptimizer] += facts_.optimizer_bytes.temporary;
  if (trace_.stage) holders[Holder::kOther] -= trace_.stage->held_bytes;
  holders[Holder::kSavedActivations] = alive();
  holders[Holder::kRecomputeTransient] = recomputed_;
  if (facts_.split) {
    // Weight passes have released the inputs and computed all gradients.
    holders[Holder::kSavedActivations] = {};
  }
  holders += micro_batch_.others_in_optimizer;
  const StepBoundary boundary{Phase::kOptimizer, std::nullopt, holders};
  if (boundaries_ != nullptr) boundaries_->push_back(boundary);
  if (raises_peak(Phase::kOptimizer, holders.total())) set_peak(boundary);
}

void StepSimulator::MicroBatchRun::put_results(OpId op) {
  if (next_region_ == num_closed_) return;
  Region& region = regions_[num_closed_];
  stores_.put_results(region.stash, op - region.in_trace->range.first);
}

void StepSimulator::MicroBatchRun::leave_device(Region& region) {
  if (!stores_.leave(region.stash)) return;
  for (const StoredStorage& value : region.stash.values()) {
    release(region.in_trace->storages[value.storage]);
  }
}

void StepSimulator::MicroBatchRun::bring_back(Region& region) {
  if (counts_copies() && region.stash.is_away()) {
    result_.time->copies += facts_.link->wait_back(region.stash.host_copies());
  }
  stores_.bring_back(region.stash);
}

bool StepSimulator::MicroBatchRun::is_moved_input(const Region& region, StorageId input) {
  const std::vector<StoredStorage>& values = region.stash.values();
  return std::any_of(values.begin(), values.end(), [&](const StoredStorage& value) {
    return value.is_input && region.in_trace->storages[value.storage] == input;
  });
}

void StepSimulator::MicroBatchRun::allocate(StorageId storage) {
  ++holders_[storage];
  alive_ += trace_.storages[storage].bytes;
}

void StepSimulator::MicroBatchRun::release(StorageId storage) {
  if (--holders_[storage] == 0) alive_ -= trace_.storages[storage].bytes;
}

void StepSimulator::MicroBatchRun::release_kept(const Region& region, int storage) {
  if (region.stash.has_left() && region.stash.contains(storage)) {
    stores_.release(region.stash, storage);
  } else {
    release(region.in_trace->storages[storage]);
  }
}

void StepSimulator::MicroBatchRun::release_inputs(const Region& region) {
  for (const StorageId input : region.in_trace->inputs) {
    if (!region.stash.has_left() || !is_moved_input(region, input)) release(input);
  }
  stores_.release_inputs(region.stash);
}

StepBoundary StepSimulator::MicroBatchRun::forward_peak(OpId op) const {
  return {Phase::kForward, facts_.top_scope(trace_.ops[op].scope),
          forward_holders(op, peak_alive_)};
}

HolderBytes StepSimulator::MicroBatchRun::forward_holders(OpId op, Bytes alive) const {
  HolderBytes holders = standing_holders();
  for (const StorageId storage : held_after_forward_.ids()) {
    const std::optional<OpId> born = facts_.born_at[storage];
    if (!born || *born > op || held_after_forward_[storage] == 0) continue;
    holders[Holder::kSavedActivations] += trace_.storages[storage].bytes;
  }
  for (const auto& [made_at, bytes] : copied_after_forward_) {
    if (made_at <= op) holders[Holder::kSavedActivations] += bytes;
  }
  holders[Holder::kOther] += alive - holders[Holder::kSavedActivations] + facts_.gathered_at(op);
  if (micro_batch_.others_in_forward) holders += *micro_batch_.others_in_forward;
  return holders;
}

HolderBytes StepSimulator::MicroBatchRun::standing_holders() const {
  HolderBytes holders;
  holders[Holder::kParameters] = trace_.parameter_bytes;
  holders[Holder::kOptimizer] = facts_.optimizer_bytes.state;
  if (!micro_batch_.is_first) holders[Holder::kGradients] = gradients_before(trace_);
  holders[Holder::kOther] = trace_.constant_bytes;
  return holders;
}

std::vector<std::pair<OpId, Bytes>> StepSimulator::MicroBatchRun::held_copies() const {
  std::vector<std::pair<OpId, Bytes>> held;
  for (const Region& region : regions_) {
    if (region.copied.count == 0) continue;
    for (const RegionCopy& copy : region.in_trace->graph->copies) {
      held.emplace_back(region.in_trace->range.first + copy.op, copy.bytes);
    }
    for (const LateCopy& copy : region.in_trace->late_copies) {
      held.emplace_back(copy.op, copy.bytes);
    }
  }
  return held;
}

Bytes StepSimulator::MicroBatchRun::others_in_forward() const {
  return micro_batch_.others_in_forward ? micro_batch_.others_in_forward->total() : Bytes{};
}

Bytes StepSimulator::MicroBatchRun::others_before() const {
  const HolderBytes& others = micro_batch_.others_in_optimizer;
  return others.total() - others[Holder::kGradients];
}

bool StepSimulator::MicroBatchRun::raises_peak(Phase phase, Bytes total) {
  Bytes& of_phase = result_.peak_by_phase[static_cast<int>(phase)];
  of_phase = std::max(of_phase, total);
  if (total <= peak_) return false;
  peak_ = total;
  return true;
}

void StepSimulator::MicroBatchRun::set_peak(const StepBoundary& boundary) {
  result_.peak = boundary;
  peak_op_.reset();
}

void StepSimulator::MicroBatchRun::count_micro_batches() {
  const std::int64_t num = micro_batches(trace_);
  result_.recomputed_ops *= num;
  result_.host.copied_out = result_.host.copied_out * num;
  result_.host.copied_back = result_.host.copied_back * num;
}

void StepSimulator::MicroBatchRun::add_times() {
  result_.time->forward = facts_.profile->forward_time();
  result_.time->backward = facts_.profile->backward_time();
  result_.time->optimizer = facts_.profile->optimizer;
  result_.time->communication += facts_.communication;
}

}  // namespace rematch
