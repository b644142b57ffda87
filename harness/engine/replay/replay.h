// Recomputes values of a record. Runs the ops that the replay planner chooses, below autograd, and
// stores their results.
//
// Note [One replay per graph task]
// A Replay is the state of one backward pass over one region. A second pass (retain_graph, double
// backward) starts another Replay of the same record, and recomputes the kept values that the first
// pass consumed.
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
  // Which ops to recompute. kClosure: the ops on which the saved tensors depend. kPrefix: the first
  // `num_ops` ops, as in torch.utils.checkpoint, except ops whose results are kept.
  enum class Extent : std::uint8_t { kClosure, kPrefix };
  // kTake moves kept values out of the record, so that they are freed at their last use. kBorrow
  // leaves them in the record, which may still grow.
  enum class KeptValues : std::uint8_t { kTake, kBorrow };

  // `skipped` holds indices of the program's ops; kPrefix omits such an op if nothing depends on
  // it. `region` names the region in errors. `wanted` contains one entry for each saved tensor that
  // is still alive; a value that was saved twice has two entries. Record, region, `wanted` and
  // buffers must outlive the replay. Earlier content of the buffers is released.
  Replay(Record& record, const std::string& region, const std::vector<WantedValue>& wanted,
         Extent extent, std::int32_t num_ops, const std::vector<int>& skipped,
         KeptValues kept_values, ReplayBuffers& buffers);

  // Runs every planned op, in recorded order.
  void run_all();
  // Like run_all(), but for use in forward: the op observer does not see the ops.
  void run_unobserved();

  // Runs the ops that `wanted` still needs. `wanted` must be one of the values that were passed to
  // the constructor.
  void materialize(const WantedValue& wanted);

  // Returns the tensor of a value that was recomputed or kept. The last reader gets the only
  // reference.
  at::Tensor take(std::int32_t value);
  // Call this when autograd frees a saved tensor of the replay without having unpacked it.
  void release(std::int32_t value) {
    if (planner_.read(value)) tensors_[value].reset();
  }

 private:
  void hold_kept_values();
  void adopt_kept_values();
  void check_constant(std::int32_t value) const;
  void run(const std::vector<std::int32_t>& ops);
  void run_planned(const std::vector<std::int32_t>& ops);
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
  bool is_observed_ = true;
  const std::vector<WantedValue>& wanted_;
  // See ReplayBuffers.
  std::vector<at::Tensor>& tensors_;
  ReplayPlanner<RecordIntegers> planner_;
  torch::jit::Stack& stack_;
};

}  // namespace rematch
