// Simulates one micro-batch of a step: forward, backward with recompute, and the optimizer if the
// micro-batch is the last one. Private to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "policies/predict/region/simulator.h"
#include "policies/predict/step/step.h"
#include "policies/predict/step/step_facts.h"
#include "policies/predict/step/store_ledger.h"
#include "policies/predict/step/stored.h"

namespace rematch {

// One micro-batch of a step, and what else a rank of a pipeline holds while the micro-batch runs.
// Absent bytes: the step has no such pass, so its bytes do not count.
struct StepSimulator::MicroBatch {
  std::optional<HolderBytes> others_in_forward = HolderBytes{};
  std::optional<HolderBytes> others_in_backward = HolderBytes{};
  HolderBytes others_in_optimizer = {};
  bool is_first = false;  // finds no gradients, although the step has several micro-batches
  bool is_last = true;    // the optimizer follows
};

// Byte counts exclude baseline_, which is added to the results.
class StepSimulator::MicroBatchRun {
 public:
  MicroBatchRun(Facts& facts, const std::vector<LocatedRegion>& regions, Schedule schedule,
                StepDetails* details, const MicroBatch& micro_batch = {});

  // Returns the bytes that forward leaves for backward.
  Bytes held_after_forward();

  StepPrediction run();

 private:
  struct SimulatedType {
    RegionSimulation simulation;
    std::vector<StoredStorage> stored;
  };
  struct Region {
    const TraceRegion* in_trace = nullptr;
    const RegionSimulation* simulation = nullptr;
    StoreLedger::Stash stash;
    // the region whose values are brought back when backward of this region starts
    Region* before = nullptr;
    std::size_t next_step = 0;
    std::size_t next_event = 0;
    std::size_t num_copied = 0;
    Bytes copied;  // bytes of the region's copies of overwritten tensors
    Bytes recomputed;
  };
  // The part of the simulation's state that changes with every event of backward.
  struct Moment {
    Phase phase = Phase::kBackward;
    std::int32_t event = 0;  // index into the trace's backward
    Bytes other_bytes;       // bytes that backward holds at this event
    Bytes recomputed;
  };

  // Set-up
  void add_region(const LocatedRegion& placed);
  // Keeps the inputs of waiting matmuls until the end of backward. If a region recomputes an input,
  // the recomputed tensor is kept from its last release on.
  void hold_inputs_of_waiting();
  static bool holds_from_forward(const Region& region, StorageId storage);

  // Forward
  void forward();
  void end_forward();
  // Opens the region that starts at this op, if there is one. The region now counts as a holder of
  // its inputs, and of the kept storages that its ops will make.
  void open_region(OpId op);
  void close_region(OpId op);
  // Releases the saved tensors that autograd drops before backward.
  void drop_packs(OpId op);
  void drop_idle(OpId op);
  // Releases everything that a region holds. Called after autograd has dropped all saved tensors of
  // the region.
  void drop(Region& region);
  void hold_packs_before(OpId op);
  // Makes the copies that are due at this op: first the late copies of closed regions, then the
  // copies of the open region.
  void make_copies(OpId op);
  void note_forward(OpId op);

  // Backward and the optimizer
  void backward();
  // Simulates the region's next event, up to the end of its timeline steps.
  void advance(Region& region, const BackwardPart& asked);
  void note_release(PackId pack);
  void note_ops(const BackwardPart& ops);
  void note_backward(const Moment& moment);
  void optimizer();

  // Values in stores
  void put_results(OpId op);
  void leave_device(Region& region);
  void bring_back(Region& region);
  static bool is_moved_input(const Region& region, StorageId input);
  bool counts_copies() const { return facts_.link.has_value() && result_.time.has_value(); }

  // Storages
  void allocate(StorageId storage);
  void release(StorageId storage);
  // Releases a storage that the region has kept since forward, on the device or in a store.
  void release_kept(const Region& region, int storage);
  void release_inputs(const Region& region);
  void drop_copies(Region& region) { alive_ -= std::exchange(region.copied, Bytes{}); }
  // Returns the live bytes that forward allocated, plus the device memory that stores use, plus
  // recomputed inputs of matmuls that wait.
  Bytes alive() const { return alive_ + stores_.device_bytes() + recomputed_inputs_; }

  // Holders at a boundary
  StepBoundary forward_peak(OpId op) const;
  // Counts a storage as a saved activation if it was made at or before `op` and is held after
  // forward.
  HolderBytes forward_holders(OpId op, Bytes alive) const;
  HolderBytes standing_holders() const;
  std::vector<std::pair<OpId, Bytes>> held_copies() const;
  Bytes others_in_forward() const;
  // Returns what the other stages of the rank hold before the step.
  Bytes others_before() const;

  // Results
  bool raises_peak(Phase phase, Bytes total);
  void set_peak(const StepBoundary& boundary);
  // The simulation runs one micro-batch. Times need no change: see Profile::forward.
  void count_micro_batches();
  void add_times();

  Facts& facts_;
  const Trace& trace_;
  MicroBatch micro_batch_;
  const std::vector<BackwardEvent>& events_;  // backward of the simulated micro-batch
  Bytes baseline_;
  Schedule schedule_;
  std::vector<OpId>* recomputed_ops_;
  std::vector<StepBoundary>* boundaries_;
  std::vector<OpId> boundary_ops_;  // for each boundary of forward, its op

  std::map<std::pair<const RegionGraph*, const RegionType*>, SimulatedType> simulations_;
  std::vector<Region> regions_;
  // copies that regions make after they have closed, keyed by the op that overwrites the tensor
  std::multimap<OpId, std::pair<Region*, Bytes>> late_copies_;
  IdTable<StorageId, std::int32_t> holders_;  // number of holders of each storage that forward made
  IdTable<StorageId, std::int32_t> held_after_forward_;
  // the op and the bytes of each copy
  std::vector<std::pair<OpId, Bytes>> copied_after_forward_;
  IdTable<PackId, OptionalIndex> region_of_pack_;
  std::size_t next_region_ = 0;
  PackId next_pack_;
  std::size_t num_closed_ = 0;  // number of regions that have closed
  std::size_t next_drop_ = 0;   // index into facts_.dropped
  std::vector<Region*> idle_;   // closed regions that backward does not need
  // the last region that closed; null if backward does not need that region
  Region* closed_last_ = nullptr;
  Bytes alive_;  // live bytes that forward allocated
  StoreLedger stores_;
  Bytes recomputed_;  // recomputed bytes held, over all regions
  // With a split backward: the storages whose recomputed tensors wait for the weight pass, and the
  // bytes that wait.
  IdTable<StorageId, bool> is_kept_when_released_;
  Bytes recomputed_inputs_;
  Bytes peak_;
  std::optional<OpId> peak_op_;  // op at the peak, as long as the peak is in forward
  Bytes peak_alive_;
  StepPrediction result_;
};

}  // namespace rematch
