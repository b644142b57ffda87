#include "harness/python/c_surface.h"

#include <ATen/Functions.h>
#include <c10/core/Device.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/recording.h"
#include "harness/measure/memory.h"
#include "harness/measure/op_counter.h"
#include "harness/progress/elapsed_progress.h"
#include "harness/python/op_measurement.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/device_sheet.h"
#include "policies/predict/roofline.h"
#include "policies/predict/step.h"
#include "policies/search/front.h"
#include "policies/search/front_json.h"
#include "policies/trace/file.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/render/pages/page.h"

struct RematchCheckpoint {
  rematch::Checkpoint checkpoint;
};
struct RematchRecording {
  rematch::Recording recording;
};
struct RematchTrace {
  rematch::TraceSession session;
};
struct RematchOpTimes {
  rematch::OpMeasurement measurement;
};

namespace rematch {
namespace {

thread_local std::string error;
thread_local std::string text;                       // returned last
thread_local std::vector<ScopeListener*> listeners;  // of the open scopes; null: nobody listened

// LibTorch's messages carry a stack trace behind the first line.
void note_error(const std::exception& thrown) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&thrown);
  error = of_torch != nullptr ? of_torch->what_without_backtrace() : thrown.what();
}

template <typename Result, typename Call>
Result call_or(Result failed, const Call& call) {
  try {
    error.clear();
    return call();
  } catch (const std::exception& thrown) {
    note_error(thrown);
  } catch (...) {
    error = "an exception of an unknown kind";
  }
  return failed;
}

const char* as_text(const Json& json) {
  text = json.dump();
  return text.c_str();
}

template <typename Value>
Value accepted(std::variant<Value, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) {
    throw std::invalid_argument(rejected->message);
  }
  return std::get<Value>(std::move(result));
}

Trace trace_of_text(const char* trace_json) {
  return trace_from_json(parse_json(trace_json, "trace"));
}
Plan plan_of_text(const char* plan_json) { return plan_from_json(parse_json(plan_json, "plan")); }

Schedule schedule_named(const char* name) {
  const std::optional<Schedule> schedule = schedule_from_string(name);
  if (!schedule) {
    throw std::invalid_argument(std::string("schedule is '") + name +
                                "'; it must be whole_region or on_demand");
  }
  return *schedule;
}

OptimizerModel optimizer_named(const char* name) {
  const std::optional<OptimizerModel> optimizer = optimizer_model_from_string(name);
  if (!optimizer) throw std::invalid_argument(std::string("there is no optimizer '") + name + "'");
  return *optimizer;
}

std::int64_t allocated_bytes(const c10::Device& device) {
  if (device.is_meta()) return current_meta_memory().total.count;
  if (device.is_cpu()) return current_cpu_memory().total.count;
  throw std::invalid_argument("memory of " + device.str() + " is not counted; ask torch");
}

void put_head(const Json& head, Trace& trace) {
  trace.model = head.at("model").get<std::string>();
  for (const auto& [name, size] : head.at("dimensions").items()) {
    trace.dimensions[name] = size.get<std::int64_t>();
  }
  trace.dtype = head.at("dtype").get<std::string>();
  trace.parameter_bytes = {head.at("parameter_bytes").get<std::int64_t>()};
  trace.constant_bytes = {head.at("constant_bytes").get<std::int64_t>()};
  for (const Json& kind : head.at("parameters")) {
    trace.parameters.push_back({.elements = kind.at("elements").get<std::int64_t>(),
                                .dtype = kind.at("dtype").get<std::string>(),
                                .count = kind.at("count").get<std::int64_t>()});
  }
}

// Executed ops by phase, and the most bytes that tensors held after one.
class Watch final : public OpObserver {
 public:
  explicit Watch(c10::Device device) : device_(device) {
    if (counting_allocators_installed() && !device.is_cuda()) before_ = allocated_bytes(device_);
  }

  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override {
    counter_.executed(op, phase, stack);
    if (!before_) return;
    const std::int64_t bytes = allocated_bytes(device_);
    const std::lock_guard lock(mutex_);
    std::int64_t& peak = peaks_[static_cast<std::size_t>(phase)];
    peak = std::max(peak, bytes);
  }

  Json to_json() const {
    const CountsRecord counts = counter_.record(/*counted_steps=*/1);
    Json json = {{"ops", Json::object()}, {"peak_bytes", Json::object()}};
    for (std::size_t phase = 0; phase < peaks_.size(); ++phase) {
      const std::string name(to_string(static_cast<Phase>(phase)));
      json["ops"][name] = Json::object();
      for (const auto& [op, count] : counts.by_op[phase]) json["ops"][name][op] = count;
      json["peak_bytes"][name] = before_ ? Json(peaks_[phase]) : Json();
    }
    json["before_bytes"] = before_ ? Json(*before_) : Json();
    return json;
  }

 private:
  c10::Device device_;
  std::optional<std::int64_t> before_;
  OpCounter counter_;
  std::mutex mutex_;
  std::array<std::int64_t, kNumPhases> peaks_{};
};

Json prediction_json(const StepPrediction& step, const Trace& trace) {
  Json json = {{"before_bytes", step.before.count},
               {"after_forward_bytes", step.after_forward.count},
               {"peak_bytes", step.peak_bytes().count},
               {"recomputed_ops", step.recomputed_ops},
               {"peak_phase", to_string(step.peak.phase)},
               {"peak_scope", step.peak.scope == kNone
                                  ? ""
                                  : trace.scopes[static_cast<std::size_t>(step.peak.scope)].path}};
  for (std::size_t phase = 0; phase < step.peak_by_phase.size(); ++phase) {
    json["peak_bytes_by_phase"][std::string(to_string(static_cast<Phase>(phase)))] =
        step.peak_by_phase[phase].count;
  }
  const StepHolders& held = step.peak.holders;
  json["holders_at_peak_bytes"] = {{"parameters", held.parameters.count},
                                   {"gradients", held.gradients.count},
                                   {"optimizer", held.optimizer.count},
                                   {"saved_activations", held.saved_activations.count},
                                   {"recompute_transient", held.recompute_transient.count},
                                   {"other", held.other.count}};
  return json;
}

Profile profile_asked(const Trace& trace, const Json& request) {
  if (request.contains("profile")) return profile_from_json(request.at("profile"));
  const std::string name = request.at("device").get<std::string>();
  const DeviceSheet* const sheet = find_device_sheet(name);
  if (sheet == nullptr) throw std::invalid_argument(unknown_device(name).message);
  return roofline_profile(trace, *sheet);
}

std::vector<Plan> baselines_asked(const Trace& trace, const Json& request) {
  std::vector<Plan> plans;
  for (const Json& policy : request.at("baselines")) {
    auto plan = resolve(accepted(parse_policy(policy.get<std::string>())), trace, NoEffect::kAllow);
    if (auto* const applies = std::get_if<Plan>(&plan)) plans.push_back(std::move(*applies));
  }
  return plans;
}

FrontRecord searched(const Trace& trace, const Json& request) {
  const Profile profile = profile_asked(trace, request);
  ElapsedProgress progress("searching", "fewer layers or points take less");
  SearchSpace space{
      .schedule = schedule_named(request.at("schedule").get<std::string>().c_str()),
      .optimizer = optimizer_named(request.at("optimizer").get<std::string>().c_str())};
  space.stop = [&progress] {
    progress.poll();
    return false;
  };
  FrontRecord record = make_front_record(trace, profile, space.optimizer);
  if (request.contains("budget_bytes")) {
    record.budget = Bytes{request.at("budget_bytes").get<std::int64_t>()};
  }
  FrontSearch search(trace, profile, space);
  if (record.budget) record.answer = search.fastest_within(*record.budget);
  std::vector<FrontPoint> shown;
  if (record.answer) shown.push_back(*record.answer);
  record.front =
      search.front(request.at("points").get<std::size_t>(), baselines_asked(trace, request), shown);
  return record;
}

}  // namespace
}  // namespace rematch

struct RematchWatch {
  explicit RematchWatch(c10::Device device) : watch(device), observes(&watch) {}
  rematch::Watch watch;
  rematch::OpObserverGuard observes;
};

using namespace rematch;  // C functions are in no namespace

extern "C" {

const char* rematch_error() { return error.c_str(); }

int rematch_install(int counts_memory) {
  return call_or(-1, [&] {
    if (counts_memory != 0) install_counting_allocators();
    install_interception();
    return 0;
  });
}

std::int64_t rematch_allocated_bytes(const char* device) {
  return call_or(std::int64_t{-1}, [&] { return allocated_bytes(c10::Device(device)); });
}

int rematch_enter_scope(const char* name, int index) {
  return call_or(-1, [&] {
    ScopeListener* const listener = scope_listener();
    if (listener != nullptr) listener->enter(name, index);
    listeners.push_back(listener);
    return 0;
  });
}

void rematch_leave_scope() {
  if (listeners.empty()) return;
  ScopeListener* const listener = listeners.back();
  listeners.pop_back();
  if (listener != nullptr) listener->leave();
}

int rematch_is_in_scope() { return !listeners.empty() && listeners.back() != nullptr ? 1 : 0; }

RematchCheckpoint* rematch_make_checkpoint(const char* plan_json, const char* schedule) {
  return call_or<RematchCheckpoint*>(nullptr, [&] {
    return new RematchCheckpoint{Checkpoint(plan_of_text(plan_json), schedule_named(schedule))};
  });
}

void rematch_free_checkpoint(RematchCheckpoint* checkpoint) { delete checkpoint; }

RematchRecording* rematch_begin_recording(RematchCheckpoint* checkpoint) {
  return call_or<RematchRecording*>(
      nullptr, [&] { return new RematchRecording{Recording(checkpoint->checkpoint)}; });
}

int rematch_end_recording(RematchRecording* recording, int is_whole) {
  const std::unique_ptr<RematchRecording> owned(recording);
  return call_or(-1, [&] {
    if (is_whole != 0) owned->recording.finish();
    return 0;
  });
}

RematchTrace* rematch_begin_trace() {
  return call_or<RematchTrace*>(nullptr, [] { return new RematchTrace; });
}

int rematch_end_forward(RematchTrace* trace, const char* device) {
  return call_or(-1, [&] {
    trace->session.end_forward(c10::Device(device));
    return 0;
  });
}

const char* rematch_finish_trace(RematchTrace* trace, const char* head_json) {
  return call_or<const char*>(nullptr, [&] {
    Trace traced = trace->session.finish();
    put_head(parse_json(head_json, "head"), traced);
    return as_text(trace_to_json(traced));
  });
}

void rematch_free_trace(RematchTrace* trace) { delete trace; }

RematchWatch* rematch_begin_watch(const char* device) {
  return call_or<RematchWatch*>(nullptr, [&] { return new RematchWatch(c10::Device(device)); });
}

const char* rematch_end_watch(RematchWatch* watch) {
  const std::unique_ptr<RematchWatch> owned(watch);
  return call_or<const char*>(nullptr, [&] { return as_text(owned->watch.to_json()); });
}

const char* rematch_resolve(const char* trace_json, const char* policy) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    const Policy parsed = accepted(parse_policy(policy));
    return as_text(plan_to_json(accepted(resolve(parsed, trace, NoEffect::kAllow))));
  });
}

const char* rematch_predict(const char* trace_json, const char* plan_json, const char* schedule,
                            const char* optimizer) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    StepSimulator simulator(trace, optimizer_named(optimizer));
    return as_text(prediction_json(
        simulator.simulate(plan_of_text(plan_json), schedule_named(schedule)), trace));
  });
}

const char* rematch_search(const char* trace_json, const char* request_json) {
  return call_or<const char*>(nullptr, [&] {
    const Trace trace = trace_of_text(trace_json);
    return as_text(front_to_json(searched(trace, parse_json(request_json, "request"))));
  });
}

const char* rematch_render_front(const char* name, const char* front_json) {
  return call_or<const char*>(nullptr, [&] {
    text = render_page({}, {}, {{name, front_from_json(parse_json(front_json, "front"))}});
    return text.c_str();
  });
}

RematchOpTimes* rematch_begin_op_times(const char* trace_json, int num_steps) {
  return call_or<RematchOpTimes*>(nullptr, [&] {
    return new RematchOpTimes{OpMeasurement(trace_of_text(trace_json), num_steps)};
  });
}

int rematch_watch_part(RematchOpTimes* times, int part) {
  return call_or(-1, [&] {
    if (part == 0) times->measurement.begin_forward();
    if (part == 1) times->measurement.begin_backward();
    if (part == 2) times->measurement.end_step();
    return 0;
  });
}

int rematch_note_step(RematchOpTimes* times, std::int64_t forward_ns, std::int64_t backward_ns) {
  return call_or(-1, [&] {
    times->measurement.note_step(std::chrono::nanoseconds(forward_ns),
                                 std::chrono::nanoseconds(backward_ns));
    return 0;
  });
}

const char* rematch_finish_op_times(RematchOpTimes* times) {
  return call_or<const char*>(nullptr, [&] {
    return as_text(profile_to_json(times->measurement.profile(), times->measurement.trace()));
  });
}

void rematch_free_op_times(RematchOpTimes* times) { delete times; }

}  // extern "C"
