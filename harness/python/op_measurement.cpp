#include "harness/python/op_measurement.h"

#include <stdexcept>
#include <utility>

namespace rematch {
OpMeasurement::OpMeasurement(Trace trace, int num_steps)
    : trace_(std::move(trace)), progress_("measuring op times", num_steps) {}

void OpMeasurement::begin_forward() {
  if (watch_) throw std::logic_error("a watched step has not ended");
  timed_ = {};
  timer_.set_list(&timed_.forward);
  watch_.emplace(&timer_);
}

void OpMeasurement::begin_backward() {
  if (!watch_) throw std::logic_error("no watched step has begun");
  timer_.set_list(&timed_.backward);
}

void OpMeasurement::end_step() {
  if (!watch_) throw std::logic_error("no watched step has begun");
  watch_.reset();
  steps_.watched.push_back(of_trace<TimedSteps::Ops>(timed_, trace_, "this step"));
  progress_.step_done();
}

// The optimizer's time is the same under every plan, and nobody's who measures a plan.
void OpMeasurement::note_step(std::chrono::nanoseconds forward, std::chrono::nanoseconds backward) {
  steps_.forward.push_back(forward);
  steps_.backward.push_back(backward);
  steps_.optimizer.emplace_back(0);
  progress_.step_done();
}

}  // namespace rematch
