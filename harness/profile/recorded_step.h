// A step whose op calls are listed by a recorder. The recorder also marks the phases of the step,
// the scopes in forward, and the time when the step's input is made.
#pragma once

#include <functional>

#include "harness/profile/op_call_recorder.h"
#include "harness/training/training.h"

namespace rematch {

// While this object lives, a recorder observes the offload copies of the plan in use.
class ObservedMoves {
 public:
  ObservedMoves(const Training& training, MoveObserver& observer) : training_(training) {
    training_.observe_moves(&observer);
  }
  ~ObservedMoves() { training_.observe_moves(nullptr); }
  ObservedMoves(const ObservedMoves&) = delete;
  ObservedMoves& operator=(const ObservedMoves&) = delete;

 private:
  const Training& training_;
};

class RecordedStep final : public StepListener {
 public:
  explicit RecordedStep(OpCallRecorder& recorder) : recorder_(recorder) {}
  Batch batch(const std::function<Batch()>& make) override {
    if (!is_in_step_) recorder_.begin_step();
    recorder_.begin_batch();
    Batch batch = make();
    recorder_.end_batch();
    return batch;
  }
  void before_step() override { is_in_step_ = true; }
  at::Tensor forward(const std::function<at::Tensor()>& loss) override {
    recorder_.begin_phase(Phase::kForward);
    const StepPlace::Listening scopes(recorder_.place());
    return loss();
  }
  void after_forward(const at::Tensor&) override {
    recorder_.forward_done();
    recorder_.begin_phase(Phase::kBackward);
  }
  void after_backward() override { recorder_.begin_phase(Phase::kOptimizer); }
  void after_optimizer() override {
    recorder_.end_phase();
    is_in_step_ = false;
  }

 private:
  OpCallRecorder& recorder_;
  bool is_in_step_ = false;
};

}  // namespace rematch
