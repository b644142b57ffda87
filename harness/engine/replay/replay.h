// Recomputes values of a record: runs the ops that the replay planner names below autograd, and
// puts tensors in the place of its values.
//
// Note [One replay per graph task]
// Everything here is state of one backward pass over one region. A second pass (retain_graph,
// double backward) starts a new Replay over the same record; kept values that the first one used
// up are recomputed then.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/engine/record/buffers.h"
#include "harness/engine/record/record.h"
#include "harness/engine/record/record_integers.h"
#include "policies/replay/replay_planner.h"

namespace rematch {

class Replay {
 public:
  // Plans for `wanted`, the saved tensors that are still alive (one entry each, duplicates count).
  // kClosure: the ops they depend on. kPrefix: all of the first `num_ops` ops, as a re-run of the
  // region's forward would execute, but what is kept.
  enum class Extent : std::uint8_t { kClosure, kPrefix };
  // Takes kept values out of the record at their last use, unless the record is still being
  // written.
  enum class KeptValues : std::uint8_t { kTake, kBorrow };

  // `region` names the region in errors. Record, region, `wanted` and buffers must outlive the
  // replay; what the buffers hold from an earlier replay is let go.
  Replay(Record& record, const std::string& region, const std::vector<WantedValue>& wanted,
         Extent extent, std::int32_t num_ops, KeptValues kept_values, ReplayBuffers& buffers);

  // Runs every planned op, in recorded order.
  void run_all();

  // Runs what `wanted` still lacks. It must be among those planned for.
  void materialize(const WantedValue& wanted);

  // Hands a materialized value to backward; its last taker gets the only reference.
  at::Tensor take(std::int32_t value);
  // A planned-for saved tensor was dropped without being asked for.
  void release(std::int32_t value) {
    if (planner_.read(value)) tensors_[value].reset();
  }

 private:
  void hold_kept_values();
  void adopt_kept_values();
  void check_constant(std::int32_t value) const;
  void run(const std::vector<std::int32_t>& ops);
  void execute(std::int32_t op, KernelContextGuard& context);
  void compare_results(std::int32_t op) const;
  void fill_arguments(const RecordedOp& op, torch::jit::Stack& stack);
  at::Tensor argument(const RecordedOp& op, const RecordedUse& use);
  bool gets_scratch(const RecordedOp& op, const RecordedUse& use) const;
  bool may_run(std::int32_t op);
  void check_stream(const RecordedOp& op) const;
  const char* change_since_read(const RecordedOp& op, const RecordedUse& use) const;
  bool reads_content(const RecordedOp& op, const RecordedUse& use) const;
  void store_outputs(const RecordedOp& op, torch::jit::Stack& stack);
  void store_output(OptionalIndex value, at::Tensor tensor);

  Record& record_;
  const std::string& region_;
  KeptValues kept_values_;
  Extent extent_;
  const std::vector<WantedValue>& wanted_;
  // See ReplayBuffers.
  std::vector<at::Tensor>& tensors_;
  ReplayPlanner<RecordIntegers> planner_;
  torch::jit::Stack& stack_;
};

}  // namespace rematch
