// C functions that measure the op times of a traced step. In watched steps, every op is timed.
// Other steps are timed as a whole.
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/opaque_call.h"
#include "harness/profile/device_op_timer.h"
#include "harness/profile/op_timer.h"
#include "harness/profile/step_ops.h"
#include "harness/progress/progress.h"
#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/profile_json.h"

using namespace rematch;
using namespace rematch::c_call;

// Measures op times. Shows its progress after two seconds.
struct RematchOpTimes {
  // `num_steps` counts steps of both kinds; only the progress display uses it. `card` is the name
  // of the GPU; empty on the CPU.
  RematchOpTimes(Trace traced, int num_steps, c10::Device on, std::string card_name)
      : trace(std::move(traced)),
        card(std::move(card_name)),
        device(on),
        device_timer(on),
        progress("measuring op times", num_steps) {}

  // For a watched step, call begin_forward(), run forward, call begin_backward(), run backward, and
  // call end_step(). Any other order throws std::logic_error. Throws std::runtime_error if the ops
  // of the step differ from the traced ops. On the CPU, only ops on the calling thread are timed.
  void begin_forward() {
    if (watch) throw std::logic_error("a watched step has not ended");
    timed = {};
    set_list(&timed.forward);
    watch.emplace(mode());
    time_opaque_calls.emplace(opaque_timer());
    if (!device.is_cpu()) watch_backward.emplace(mode());
  }
  void begin_backward() {
    if (!watch) throw std::logic_error("no watched step has begun");
    set_list(&timed.backward);
  }
  void end_step() {
    if (!watch) throw std::logic_error("no watched step has begun");
    watch_backward.reset();
    time_opaque_calls.reset();
    watch.reset();
    if (!device.is_cpu()) device_timer.finish();
    steps.watched.push_back(of_trace<TimedSteps::Ops>(timed, trace, "this step"));
    progress.step_done();
  }
  Profile profile() const {
    Profile profile = measured_profile(trace, device.is_cpu() ? "cpu" : "cuda", steps);
    if (!card.empty()) profile.card = card;
    return profile;
  }

  Trace trace;
  std::string card;
  c10::Device device;
  TimedSteps steps;
  OpTimer cpu_timer;
  DeviceOpTimer device_timer;
  StepProgress progress;
  StepFigures<Profile::Duration> timed;
  std::optional<OpModeGuard> watch;
  std::optional<BackwardThreadsGuard> watch_backward;
  std::optional<OpaqueCall::TimerGuard> time_opaque_calls;

 private:
  OpaqueCall::Timer* opaque_timer() {
    return device.is_cpu() ? static_cast<OpaqueCall::Timer*>(&cpu_timer) : &device_timer;
  }
  OpMode* mode() { return device.is_cpu() ? static_cast<OpMode*>(&cpu_timer) : &device_timer; }
  void set_list(std::vector<OpFigure<Profile::Duration>>* list) {
    cpu_timer.set_list(list);
    device_timer.set_list(list);
  }
};

extern "C" {

RematchOpTimes* rematch_begin_op_times(const char* trace_json, int num_steps, const char* device,
                                       const char* card) {
  return call_or<RematchOpTimes*>(nullptr, [&] {
    return new RematchOpTimes(trace_of_text(trace_json), num_steps, c10::Device(device), card);
  });
}

int rematch_watch_part(RematchOpTimes* times, int part) {
  return call_or(-1, [&] {
    if (part == 0) times->begin_forward();
    if (part == 1) times->begin_backward();
    if (part == 2) times->end_step();
    return 0;
  });
}

// Stores 0 for the optimizer, because its time is the same under every plan.
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
  return call_or<const char*>(
      nullptr, [&] { return as_text(profile_to_json(times->profile(), times->trace)); });
}

void rematch_free_op_times(RematchOpTimes* times) { delete times; }

}  // extern "C"
