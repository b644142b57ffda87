#include "harness/profile/op_call_recorder.h"

#include <algorithm>

#include "harness/engine/record/op_facts.h"
#include "harness/measure/step_place.h"

namespace rematch {
namespace {

std::string mark_of(const OpCall& call) {
  std::string mark(to_string(call.phase));
  mark.append(" ");
  if (!call.place.empty()) mark.append(call.place).append(" ");
  return mark.append(call.op);
}

}  // namespace

void OpCallRecorder::begin_step() {
  place_.begin_step();
  ++step_;
}

void OpCallRecorder::begin_batch() {
  for (LaunchMarker* marker : markers_) marker->begin(kBatchOfStep, "batch");
}

void OpCallRecorder::end_batch() {
  for (auto marker = markers_.rbegin(); marker != markers_.rend(); ++marker) (*marker)->end();
}

void OpCallRecorder::begin_phase(Phase phase) {
  for (LaunchMarker* marker : markers_) marker->begin_phase(std::string(to_string(phase)));
}

void OpCallRecorder::end_phase() {
  for (LaunchMarker* marker : markers_) marker->end_phase();
}

void OpCallRecorder::about_to_run(const c10::OperatorHandle& op, Phase observed,
                                  const torch::jit::Stack&) {
  OpCall call;
  call.op = facts_of(op).name;
  call.op_class = op_class_of(op.operator_name().name);
  call.phase = PhaseGuard::effective(observed);
  call.step = step_;
  std::uint64_t id = 0;
  std::string mark;
  {
    const std::lock_guard lock(mutex_);
    call.place = place_.names()[static_cast<std::size_t>(place_.of(call.phase))];
    mark = mark_of(call);
    calls_.push_back(std::move(call));
    id = calls_.size();
  }
  for (LaunchMarker* marker : markers_) marker->begin(id, mark);
}

void OpCallRecorder::executed(const c10::OperatorHandle& op, Phase phase,
                              const torch::jit::Stack& stack) {
  for (auto marker = markers_.rbegin(); marker != markers_.rend(); ++marker) (*marker)->end();
  counter_.executed(op, phase, stack);
}

void OpCallRecorder::region_entered(const std::string& region, Phase phase) {
  const std::string name = std::string(to_string(phase)) + " region " + region;
  for (LaunchMarker* marker : markers_) marker->begin_region(name);
}

void OpCallRecorder::region_left() noexcept {
  for (auto marker = markers_.rbegin(); marker != markers_.rend(); ++marker) {
    (*marker)->end_region();
  }
}

void OpCallRecorder::around(Move move, c10::Stream, const std::function<void()>& start) {
  if (move != Move::kCopy) return start();  // joining a stream launches no kernel or copy
  for (LaunchMarker* marker : markers_) marker->begin(kOffloadOfPlan, "offload copy");
  start();
  for (auto marker = markers_.rbegin(); marker != markers_.rend(); ++marker) (*marker)->end();
}

void TemporaryRecorder::about_to_run(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) {
  if (list_ == nullptr) return;
  memory_.reset_peak();
  before_ = memory_.sample().total;
}

void TemporaryRecorder::executed(const c10::OperatorHandle& op, Phase, const torch::jit::Stack&) {
  if (list_ == nullptr) return;
  const Bytes standing = std::max(before_, memory_.sample().total);
  list_->push_back({&facts_of(op).name, std::max(Bytes{}, memory_.peak() - standing)});
}

}  // namespace rematch
