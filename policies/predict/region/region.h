// A region of a trace: its ops, values and storages, with small local indices. It also lists the
// tensors saved for backward inside the region, and the events of backward that concern them. It
// does not say what a plan does with the ops.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "policies/plan/plan.h"
#include "policies/trace/trace.h"

namespace rematch {

// The ops [first, end) of a trace.
struct OpRange {
  OpId first;
  OpId end;
  IdRange<OpId> ids() const { return {first, end}; }
  bool operator==(const OpRange&) const = default;
};

struct RegionValue {
  OptionalIndex producer;  // local index of the op that makes it; absent: from outside
  int storage = 0;         // local
  // The value cannot be recomputed, so it is held until the region's last slot is released.
  // Examples are the result of a side effect, an `empty` that a kernel filled through a pointer,
  // and a tensor that appeared without an op.
  bool constant = false;
  // The value is an `empty` that a kernel filled, and an op overwrites it. The region saves a copy
  // before the overwrite (RegionCopy). Replay works on a duplicate of that copy.
  bool copied = false;
  bool operator==(const RegionValue&) const = default;
};

struct RegionStorage {
  Bytes bytes;
  // the storage was allocated outside the region, so recompute never allocates it
  bool outside = false;
  // True if an earlier op outside the region allocated the storage. In backward, only the region
  // holds such a storage. False for parameters, constants and the batch.
  bool is_input = false;
  // ops of the region that write the storage in place, in order; empty if `outside`
  std::vector<int> writes;
  struct Reader {
    int op = 0;  // local
    std::int32_t version = 0;
    bool operator==(const Reader&) const = default;
  };
  std::vector<Reader> readers;  // filled only if there are writes
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
  std::vector<int> waits;    // ops of the region that wait for this op's collective
  bool is_view = false;
  // true: the op writes to a storage outside the region, so it never runs again
  bool side_effect = false;
  // true: the op is a wait, so its input stays alive as long as its result
  bool returns_input = false;
  bool operator==(const RegionOp&) const = default;
};

// A copy that the region makes when an op runs. The region holds the copy until its last slot is
// released. It is a copy of a tensor that the op overwrites (a constant, or a tensor from outside),
// or of content that a kernel wrote without an op.
struct RegionCopy {
  int op = 0;  // local
  Bytes bytes;
  bool operator==(const RegionCopy&) const = default;
};

// A tensor saved for backward. `at_op` is the number of region ops that had run when autograd
// packed it.
struct RegionSlot {
  PackId pack;
  RegionUse use;
  int at_op = 0;
  bool is_dropped = false;  // autograd dropped the slot in forward, so backward never demands it
};

// An event of backward. RegionGraph::events begins with the region's first event and ends with its
// last. Events of other regions' slots are left out.
struct RegionEvent {
  BackwardEvent::Kind kind = BackwardEvent::Kind::kOp;
  OptionalIndex slot;  // absent only for kOp
  // For kDemand and kOp: backward's bytes minus RegionGraph::other_bytes_before. On a sharded rank
  // these bytes can change between an op and the next demand.
  Bytes other_bytes;
  bool operator==(const RegionEvent&) const = default;
};

struct RegionGraph {
  OpRange range;
  std::vector<RegionOp> ops;
  std::vector<RegionValue> values;
  std::vector<RegionStorage> storages;
  std::vector<StorageId> storage_ids;  // ids in the trace
  std::vector<RegionCopy> copies;
  std::vector<RegionSlot> slots;
  std::vector<RegionEvent> events;
  Bytes other_bytes_before;  // backward's bytes at the first event
  // With early stop, recompute runs only ops below this index: the number of ops before the last
  // pack.
  int stop = 0;
};

// Returns the storages from outside that the region holds because its ops read them, as ascending
// trace ids.
std::vector<StorageId> input_storages(const RegionGraph& graph);

// Returns the total bytes of the copies that the region makes.
Bytes copied_bytes(const RegionGraph& graph);

// Returns whether backward needs the region, because autograd has not dropped all of its slots in
// forward.
bool has_live_slot(const RegionGraph& graph);

// Returns whether two regions behave alike under every schedule. Ignores ids and
// other_bytes_before.
bool same_behaviour(const RegionGraph& a, const RegionGraph& b);

// Returns for each local value whether it is held from forward to backward. Constants and the fresh
// outputs of saved and offloaded ops are held. Outputs of views and in-place ops are not held, and
// neither are values whose storage the region writes later.
std::vector<bool> kept_values(const RegionGraph& graph, const std::vector<PlannedOp>& ops);

// Returns kept_values() of a region without saved ops.
std::vector<bool> kept_if_all_is_recomputed(const RegionGraph& graph);

// Returns the storages of kept_values(), as ascending trace ids without duplicates.
std::vector<StorageId> kept_storages(const RegionGraph& graph, const std::vector<PlannedOp>& ops);

// Returns whether a demand for the saved tensor recomputes it. False for a value from outside,
// which still exists. Also false for a value that was overwritten after autograd packed it, because
// the engine rejects that demand.
bool can_be_recomputed(const RegionGraph& graph, const RegionUse& slot);

// Returns for each op of the region whether it must run to recompute `roots`. Kept values are not
// recomputed. A read also needs the earlier in-place writes to its storage, and a collective needs
// its wait.
std::vector<bool> closure_of(const RegionGraph& graph, const std::vector<bool>& kept,
                             const std::vector<RegionUse>& roots);

// Adapts a region to the interface of the replay planner (ReplayGraph). The graph must outlive this
// object.
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
      if (place == writes.end()) continue;  // value from outside the region
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
