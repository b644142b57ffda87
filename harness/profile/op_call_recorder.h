// Lists the ops of a step as they are called, on whatever thread, and marks what each of them
// launches. With the device's activity, the list says which kernels belong to which op, phase and
// block.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/op_counter.h"
#include "harness/measure/step_place.h"
#include "harness/profile/attribution.h"
#include "harness/profile/launch_marker.h"

namespace rematch {

// Thread-safe: forward and backward may launch from different threads, one after the other or at
// once.
class OpCallRecorder final : public OpObserver {
 public:
  // Every marker outlives the recorder.
  explicit OpCallRecorder(std::vector<LaunchMarker*> markers) : markers_(std::move(markers)) {}

  void begin_step(int step);
  // Around making the step's input, on the calling thread: its kernels belong to no op.
  void begin_batch();
  void end_batch();
  void forward_done() { place_.forward_done(); }
  // A phase of the step begins, and the one before has ended. On the thread of the step.
  void begin_phase(Phase phase);
  void end_phase();
  StepPlace& place() { return place_; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;
  void region_entered(const std::string& region, Phase phase) override;
  void region_left() noexcept override;

  // In the order of the calls. Not while a step runs.
  const std::vector<OpCall>& calls() const { return calls_; }
  // Calls that ended without an exception; the expected calls are compared with these.
  CountsRecord counts(int counted_steps) const { return counter_.record(counted_steps); }

 private:
  std::vector<LaunchMarker*> markers_;
  std::mutex mutex_;
  StepPlace place_;
  std::vector<OpCall> calls_;
  OpCounter counter_;
  int step_ = 0;
};

}  // namespace rematch
