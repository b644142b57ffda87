// Lists the ops of a step as they are called, on any thread, and marks the kernels that each op
// launches. The list shows to which op, phase and block each recorded kernel belongs.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/stores/mover.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/op_counter.h"
#include "harness/measure/step_place.h"
#include "harness/profile/activity.h"
#include "harness/profile/attribution.h"
#include "harness/profile/step_ops.h"

namespace rematch {

// Thread-safe: forward and backward may launch from different threads, one after the other or at
// once.
class OpCallRecorder final : public OpObserver, public MoveObserver {
 public:
  // The markers must outlive the recorder.
  explicit OpCallRecorder(std::vector<LaunchMarker*> markers) : markers_(std::move(markers)) {}

  void begin_step();  // the first step has number 0
  // Call begin_batch() before the step's input is made and end_batch() afterwards, on the same
  // thread. Kernels launched in between belong to no op.
  void begin_batch();
  void end_batch();
  void forward_done() { place_.forward_done(); }
  // Begins a phase of the step and ends the previous phase. Call this on the step's thread.
  void begin_phase(Phase phase);
  void end_phase();
  StepPlace& place() { return place_; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;
  void region_entered(const std::string& region, Phase phase) override;
  void region_left() noexcept override;
  // Marks copies of a plan's offload, which are launched outside of ops.
  void around(Move move, c10::Stream stream, const std::function<void()>& start) override;

  // The calls in order. Do not read this while a step runs.
  const std::vector<OpCall>& calls() const { return calls_; }
  // Returns the counts of the calls that ended without an exception. Kernels are checked against
  // these counts.
  CountsRecord counts(int counted_steps) const { return counter_.record(counted_steps); }

 private:
  std::vector<LaunchMarker*> markers_;
  std::mutex mutex_;
  StepPlace place_;
  std::vector<OpCall> calls_;
  OpCounter counter_;
  int step_ = -1;
};

// Records the temporary bytes of each op, which the op allocates and frees before it returns. They
// are the allocator's peak while the op runs, minus the bytes at the op's boundaries.
//
// Appends the bytes of each op to the list given to set_list(), while an OpObserverGuard installs
// this observer. Without a list, ops are ignored. Only one op may run at a time, because the
// allocator tracks one peak per device, not one per thread. On the CPU the class requires
// install_counting_allocators().
class TemporaryRecorder final : public OpObserver {
 public:
  explicit TemporaryRecorder(at::Device device) : memory_(device) {}
  void set_list(std::vector<OpFigure<Bytes>>* list) { list_ = list; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

 private:
  DeviceMemory memory_;
  std::vector<OpFigure<Bytes>>* list_ = nullptr;
  Bytes before_;
};

}  // namespace rematch
