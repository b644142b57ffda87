// The C functions that measure the times of a traced step's ops on the CPU, while Python runs the
// steps: every op in its place, and whole steps that nobody watches.
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/profile/op_timer.h"
#include "harness/profile/step_ops.h"
#include "harness/progress/progress.h"
#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/profile_json.h"

using namespace rematch;  // C functions are in no namespace
using namespace rematch::c_call;

// Shows its progress once it takes longer than two seconds.
struct RematchOpTimes {
  // `num_steps` of both kinds together, for the progress.
  RematchOpTimes(Trace traced, int num_steps)
      : trace(std::move(traced)), progress("measuring op times", num_steps) {}

  // A watched step, on the thread that calls, which is the one that runs its ops: forward from
  // here, backward from the second call, to the third. Throws std::runtime_error, with the op
  // named, unless the step ran the trace's ops, and std::logic_error out of order.
  void begin_forward() {
    if (watch) throw std::logic_error("a watched step has not ended");
    timed = {};
    timer.set_list(&timed.forward);
    watch.emplace(&timer);
  }
  void begin_backward() {
    if (!watch) throw std::logic_error("no watched step has begun");
    timer.set_list(&timed.backward);
  }
  void end_step() {
    if (!watch) throw std::logic_error("no watched step has begun");
    watch.reset();
    steps.watched.push_back(of_trace<TimedSteps::Ops>(timed, trace, "this step"));
    progress.step_done();
  }

  Trace trace;
  TimedSteps steps;
  StepProgress progress;
  OpTimer timer;
  StepFigures<Profile::Duration> timed;
  std::optional<OpModeGuard> watch;
};

extern "C" {

RematchOpTimes* rematch_begin_op_times(const char* trace_json, int num_steps) {
  return call_or<RematchOpTimes*>(
      nullptr, [&] { return new RematchOpTimes(trace_of_text(trace_json), num_steps); });
}

int rematch_watch_part(RematchOpTimes* times, int part) {
  return call_or(-1, [&] {
    if (part == 0) times->begin_forward();
    if (part == 1) times->begin_backward();
    if (part == 2) times->end_step();
    return 0;
  });
}

// The optimizer's time is the same under every plan, and nobody's who measures a plan.
int rematch_note_step(RematchOpTimes* times, std::int64_t forward_ns, std::int64_t backward_ns) {
  return call_or(-1, [&] {
    times->steps.forward.emplace_back(forward_ns);
    times->steps.backward.emplace_back(backward_ns);
    times->steps.optimizer.emplace_back(0);
    times->progress.step_done();
    return 0;
  });
}

const char* rematch_finish_op_times(RematchOpTimes* times) {
  return call_or<const char*>(nullptr, [&] {
    return as_text(
        profile_to_json(measured_profile(times->trace, "cpu", times->steps), times->trace));
  });
}

void rematch_free_op_times(RematchOpTimes* times) { delete times; }

}  // extern "C"
