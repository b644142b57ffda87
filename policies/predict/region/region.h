// A region of a trace as a schedule sees it: ops, values and storages by small local index, the
// tensors saved for backward while it was open, and what backward does with them. Knows no
// treatment.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// Ops [first, end) of a trace.
struct OpRange {
  OpId first;
  OpId end;
  IdRange<OpId> ids() const { return {first, end}; }
  bool operator==(const OpRange&) const = default;
};

struct RegionValue {
  OptionalIndex producer;  // local op; absent: comes from outside the region
  int storage = 0;         // local
  // Held until the region's last slot goes, because nothing can make it again: the result of a side
  // effect, or of an `empty` that a kernel filled through a pointer.
  bool constant = false;
  bool operator==(const RegionValue&) const = default;
};

struct RegionStorage {
  Bytes bytes;
  bool outside = false;  // lives outside the region: recompute never allocates it
  // Outside, and made by an earlier op: alive in backward only because the region holds it. Not so
  // parameters, constants and the batch.
  bool is_input = false;
  std::vector<int> writes;  // local ops that write it in place, in order; none if outside
  struct Reader {
    int op = 0;  // local
    std::int32_t version = 0;
    bool operator==(const Reader&) const = default;
  };
  std::vector<Reader> readers;  // if it has writes
  bool operator==(const RegionStorage&) const = default;
};

struct RegionUse {
  int value = 0;  // local
  std::int32_t version = 0;
  bool operator==(const RegionUse&) const = default;
};

struct RegionOp {
  std::vector<RegionUse> reads;
  std::vector<int> outputs;  // local values
  std::vector<int> writes;   // local storages
  std::vector<int> waits;    // local ops that complete the collective it starts
  bool is_view = false;
  bool side_effect = false;    // writes what lives outside the region: never executed again
  bool returns_input = false;  // a wait: what it read is there as long as its result
  bool operator==(const RegionOp&) const = default;
};

// A tensor saved for backward, and the number of region ops that had run when it was.
struct RegionSlot {
  PackId pack;
  RegionUse use;
  int at_op = 0;
  bool is_dropped = false;  // in forward: backward never comes to it
};

// Backward from the first event that touches the region to the last. Other regions' slots are left
// out.
struct RegionEvent {
  BackwardEvent::Kind kind = BackwardEvent::Kind::kOp;
  OptionalIndex slot;  // all but kOp
  // kDemand, kOp: above RegionGraph::other_bytes_before. A demand may find other bytes than the op
  // before it left: a rank of several shares out and gathers in between.
  Bytes other_bytes;
  bool operator==(const RegionEvent&) const = default;
};

struct RegionGraph {
  OpRange range;
  std::vector<RegionOp> ops;
  std::vector<RegionValue> values;
  std::vector<RegionStorage> storages;
  std::vector<StorageId> storage_ids;  // in the trace
  std::vector<RegionSlot> slots;
  std::vector<RegionEvent> events;
  Bytes other_bytes_before;  // when the first event happens
  int stop = 0;  // an early-stopped recompute runs the ops below: those before the last pack
};

// The storages that are inputs, in the trace, ascending: what the region holds by reading it.
std::vector<StorageId> input_storages(const RegionGraph& graph);

// Does backward come to the region. Nothing holds the others once autograd dropped their slots.
bool has_live_slot(const RegionGraph& graph);

// Do two regions behave alike under every schedule, but for a constant amount of other bytes.
bool same_behaviour(const RegionGraph& a, const RegionGraph& b);

// Per local value: is it held from forward to backward. Constants, and the fresh outputs of saved
// and offloaded ops; never a view's, a mutating op's, or one whose storage the region writes later,
// because what is held must not change.
std::vector<bool> kept_values(const RegionGraph& graph, const std::vector<PlannedOp>& ops);

// The same where no op is saved: constants.
std::vector<bool> kept_if_all_is_recomputed(const RegionGraph& graph);

// The storages of those values, in the trace, ascending, each once.
std::vector<StorageId> kept_storages(const RegionGraph& graph, const std::vector<PlannedOp>& ops);

// Whether a saved tensor is made anew when backward asks for it: what comes from outside is there,
// and what was overwritten after it was packed cannot be asked for, for the engine refuses.
bool can_be_recomputed(const RegionGraph& graph, const RegionUse& slot);

// Per local op: would a recompute of exactly `roots` run it. Kept values end the closure, a read at
// a version needs the in-place writes before it, and a collective needs its wait.
std::vector<bool> closure_of(const RegionGraph& graph, const std::vector<bool>& kept,
                             const std::vector<RegionUse>& roots);

// A traced region as the replay planner reads it.

// The graph must outlive it.
class RegionIntegers {
 public:
  explicit RegionIntegers(const RegionGraph& graph) : graph_(&graph) {}

  std::size_t num_ops() const { return graph_->ops.size(); }
  std::size_t num_values() const { return graph_->values.size(); }
  bool has_producer(int value) const { return graph_->values[value].producer.has_value(); }
  int producer(int value) const { return *graph_->values[value].producer; }
  int storage(int value) const { return graph_->values[value].storage; }
  const std::vector<RegionUse>& uses(int op) const { return graph_->ops[op].reads; }
  const std::vector<int>& outputs(int op) const { return graph_->ops[op].outputs; }
  bool is_repeatable(int op) const { return !graph_->ops[op].side_effect; }
  bool makes_its_own(int op) const {
    return !graph_->ops[op].is_view && graph_->ops[op].writes.empty();
  }

  template <typename Visit>
  void each_write(int storage, std::int32_t version, Visit&& visit) const {
    const std::vector<int>& writes = graph_->storages[storage].writes;
    const auto num_writes = std::min<std::size_t>(version, writes.size());
    for (std::size_t i = 0; i < num_writes; ++i) visit(writes[i]);
  }

  template <typename Visit>
  void each_written(int op, Visit&& visit) const {
    for (const int storage : graph_->ops[op].writes) {
      const std::vector<int>& writes = graph_->storages[storage].writes;
      const auto place = std::lower_bound(writes.begin(), writes.end(), op);
      if (place == writes.end()) continue;  // from outside
      visit(storage, static_cast<std::int32_t>(place - writes.begin()) + 1);
    }
  }

  template <typename Visit>
  void each_reader(int op, int storage, std::int32_t version, Visit&& visit) const {
    for (const RegionStorage::Reader& reader : graph_->storages[storage].readers) {
      if (reader.op >= op) break;
      if (reader.version < version) visit(reader.op);
    }
  }

  template <typename Visit>
  void each_wait(int op, Visit&& visit) const {
    for (const int wait : graph_->ops[op].waits) visit(wait);
  }

 private:
  const RegionGraph* graph_;
};

}  // namespace rematch
