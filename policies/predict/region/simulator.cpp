#include "policies/predict/region/simulator.h"

#include <algorithm>

#include "policies/predict/region/trace_index.h"

namespace rematch {

RegionSimulation simulate_region(const Trace& trace, OpId first_op, OpId end_op,
                                 const RegionType& type, Schedule schedule) {
  return simulate_region(make_region_graph(trace, {first_op, end_op}), type, schedule);
}

RegionSimulation simulate_region(const RegionGraph& graph, const RegionType& type,
                                 Schedule schedule) {
  return play_region(graph, type, replay_extent(type, schedule));
}

namespace {

class RegionPlayer {
 public:
  RegionPlayer(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
               const NextEarly& next, std::vector<DemandStep>* steps,
               std::optional<Bytes> give_up_at)
      : graph_(graph),
        extent_(extent),
        next_(next),
        named_(steps),
        give_up_at_(give_up_at),
        stop_(type.early_stop ? graph.stop : static_cast<int>(graph.ops.size())),
        skipped_(skipped_ops(type)),
        state_(graph, kept_values(graph, type.ops)),
        steps_(graph.slots.size(), nullptr),
        alive_(graph.slots.size(), true) {
    for (std::size_t slot = 0; slot < alive_.size(); ++slot) {
      alive_[slot] = !graph.slots[slot].is_dropped;
    }
    num_alive_ = static_cast<std::size_t>(std::count(alive_.begin(), alive_.end(), true));
    for (const DemandStep& step : type.demand_steps) {
      if (is_slot(step.pack)) steps_[step.pack] = &step;
    }
  }

  RegionSimulation play() {
    result_.curve.reserve(graph_.events.size() + graph_.ops.size());
    result_.timeline.events.reserve(graph_.events.size());
    result_.kept = state_.held();
    result_.timeline.kept = state_.originals();
    for (const RegionStorage& storage : graph_.storages) {
      if (storage.is_input) result_.inputs += storage.bytes;
    }
    result_.inputs += copied_bytes(graph_);
    sample(state_.held());
    for (const RegionEvent& event : graph_.events) {
      if (gives_up()) break;
      switch (event.kind) {
        case BackwardEvent::Kind::kOp:
          other_ = event.other_bytes;
          sample(state_.held());
          break;
        case BackwardEvent::Kind::kDemand:
          other_ = event.other_bytes;
          is_demanded_ = true;
          demand(*event.slot);
          end_event();
          break;
        case BackwardEvent::Kind::kPutAway:
          state_.finish(*event.slot);
          end_event();
          break;
        case BackwardEvent::Kind::kRelease:
          release(*event.slot);
          end_event();
      }
    }
    return std::move(result_);
  }

 private:
  void demand(int slot) {
    // A value from outside the region still exists and is not recomputed.
    if (!graph_.values[graph_.slots[slot].use.value].producer.has_value()) return;
    demanded_ = slot;
    if (!begun_) begin();
    if (!state_.is_planned_slot(slot)) return;
    if (extent_ == ReplayExtent::kLazyClosure && !next_) {
      materialize_in_order(slot, steps_[slot], [this](int each) { materialize(each); });
    } else if (extent_ == ReplayExtent::kLazyClosure) {
      DemandStep step{slot, {}, {}};
      run_early(step.before);
      materialize(slot);
      run_early(step.after);
      if (!step.before.empty() || !step.after.empty()) named_->push_back(std::move(step));
    }
    if (gives_up()) return;  // a simulation that gave up may not have made the slot's value
    state_.take(slot);
  }

  void begin() {
    begun_ = true;
    std::vector<int> slots;
    for (std::size_t slot = 0; slot < graph_.slots.size(); ++slot) {
      const RegionUse& use = graph_.slots[slot].use;
      if (alive_[slot] && can_be_recomputed(graph_, use)) slots.push_back(static_cast<int>(slot));
    }
    if (extent_ == ReplayExtent::kPrefix) {
      state_.plan_prefix(slots, stop_, skipped_);
    } else {
      state_.plan_closure(slots);
    }
    if (extent_ != ReplayExtent::kLazyClosure) run(state_.missing());
  }

  void materialize(int slot) {
    if (is_slot(slot) && state_.is_planned_slot(slot)) run(state_.missing(slot));
  }

  void run_early(std::vector<int>& early) {
    while (!gives_up()) {
      const OptionalIndex slot = next_(demanded_, state_);
      if (!slot.has_value()) return;
      early.push_back(*slot);
      materialize(*slot);
    }
  }

  void run(const std::vector<int>& ops) {
    for (int op : ops) {
      if (gives_up()) return;
      result_.executed.push_back({graph_.range.first + op, graph_.slots[demanded_].pack});
      const ReplayState::Running running = state_.execute(op);
      add_to_curve(with_others(running.most));
      note_peak(running.at_boundary);
      note_boundary(op, running.at_boundary);
    }
  }

  // Records the bytes at an op boundary, with the op's inputs released and all its results present.
  void note_boundary(int op, Bytes held) {
    note_let_go();
    result_.timeline.steps.push_back({std::nullopt, op, held - state_.held_originals()});
  }

  void note_let_go() {
    for (int storage : state_.take_released_originals()) {
      result_.timeline.steps.push_back({storage, 0, {}});
    }
  }

  void end_event() {
    note_let_go();
    if (num_alive_ == 0 && !result_.timeline.ends) {
      for (int storage : state_.originals()) {
        result_.timeline.steps.push_back({storage, 0, {}});
      }
      result_.timeline.ends = true;
    }
    const Bytes recomputed =
        result_.timeline.ends ? Bytes{} : state_.held() - state_.held_originals();
    result_.timeline.events.push_back({result_.timeline.steps.size(), recomputed});
  }

  void release(int slot) {
    if (!alive_[slot]) return;
    alive_[slot] = false;
    --num_alive_;
    state_.finish(slot);
    state_.drop(slot);
  }

  void sample(Bytes held) {
    add_to_curve(with_others(held));
    note_peak(held);
  }

  void add_to_curve(Bytes bytes) {
    result_.curve.push_back(bytes);
    result_.peak = std::max(result_.peak, bytes);
  }

  bool gives_up() const { return give_up_at_ && result_.peak >= *give_up_at_; }

  void note_peak(Bytes held) {
    const Bytes bytes = with_others(held);
    result_.boundary_peak = std::max(result_.boundary_peak, bytes);
    if (is_demanded_) result_.demanded_peak = std::max(result_.demanded_peak, bytes);
  }

  bool is_slot(int slot) const { return slot < static_cast<int>(graph_.slots.size()); }

  Bytes with_others(Bytes held) const { return held + graph_.other_bytes_before + other_; }

  const RegionGraph& graph_;
  ReplayExtent extent_;
  const NextEarly& next_;
  std::vector<DemandStep>* named_;
  std::optional<Bytes> give_up_at_;
  int stop_;
  std::vector<int> skipped_;
  ReplayState state_;
  std::vector<const DemandStep*> steps_;  // indexed by slot
  std::vector<bool> alive_;               // indexed by slot
  std::size_t num_alive_ = 0;
  int demanded_ = 0;          // slot of the latest demand
  bool is_demanded_ = false;  // true if any slot was demanded, even a slot that needs no op
  bool begun_ = false;
  Bytes other_;  // backward's bytes minus other_bytes_before
  RegionSimulation result_;
};

}  // namespace

RegionSimulation play_region(const RegionGraph& graph, const RegionType& type, ReplayExtent extent,
                             const NextEarly& next, std::vector<DemandStep>* steps,
                             std::optional<Bytes> give_up_at) {
  RegionSimulation simulation = RegionPlayer(graph, type, extent, next, steps, give_up_at).play();
  if (graph.events.empty()) {
    simulation.curve.clear();
    simulation.peak = simulation.boundary_peak = {};
  }
  return simulation;
}

}  // namespace rematch
