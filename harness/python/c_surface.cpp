#include "harness/python/c_surface.h"

#include <ATen/Functions.h>
#include <c10/core/Device.h>
#include <torch/headeronly/version.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/opaque_section.h"
#include "harness/engine/open_region.h"
#include "harness/engine/program_hooks.h"
#include "harness/engine/record/gathered.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/opaque_call.h"
#include "harness/engine/record/outside.h"
#include "harness/engine/record/pointer_taken.h"
#include "harness/engine/record/wrapped_tensor.h"
#include "harness/engine/recording.h"
#include "harness/measure/memory.h"
#include "harness/python/c_call.h"
#include "harness/trace/tracer.h"
#include "models/scope/scope.h"
#include "policies/base/file.h"
#include "policies/trace/trace_json.h"

struct RematchCheckpoint {
  rematch::Checkpoint checkpoint;
};
struct RematchRecording {
  rematch::Recording recording;
  // The listener of this recording's scopes. Scopes that close after the recording has ended must
  // not call it.
  rematch::ScopeListener* listener = rematch::scope_listener();
};
struct RematchOpaqueCall {
  std::unique_ptr<rematch::OpaqueCall> call;
};
struct RematchHidden {
  rematch::OpaqueSection section;
};
struct RematchTrace {
  rematch::CountingGuard counts;  // makes the allocators count what backward allocates
  rematch::TraceSession session;
};

namespace rematch::c_call {
namespace {

// The listener of each open scope. Null if nothing was recorded, or if the recording ended before
// the scope.
thread_local std::vector<ScopeListener*> listeners;

std::int64_t allocated_bytes(const c10::Device& device) {
  if (device.is_meta()) return current_meta_memory().total.count;
  if (device.is_cpu()) return current_cpu_memory().total.count;
  throw std::invalid_argument("rematch does not count the memory of " + device.str() +
                              "; use torch's own memory statistics");
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
  trace.hidden = united(trace.hidden, hidden_effects_from_json(head));
}

}  // namespace
}  // namespace rematch::c_call

using namespace rematch;
using namespace rematch::c_call;

extern "C" {

const char* rematch_error() { return error().c_str(); }

const char* rematch_torch_version() { return TORCH_VERSION; }

int rematch_install(int counts_memory) {
  return call_or(-1, [&] {
    if (counts_memory != 0) install_counting_allocators();
    install_interception();
    install_python_interception();
    return 0;
  });
}

void rematch_set_look_inside(void* (*look_inside)(void*)) { set_look_inside(look_inside); }

void rematch_set_program_hooks(std::int64_t (*identify)(void*, void*), void* (*tensor_of)(void*)) {
  set_program_hooks(identify, tensor_of);
}

std::int64_t rematch_allocated_bytes(const char* device) {
  return call_or(std::int64_t{-1}, [&] { return allocated_bytes(c10::Device(device)); });
}

int rematch_enter_scope(const char* name, int index) {
  return call_or(-1, [&] {
    ScopeListener* const listener = scope_listener();
    const std::optional<int> layer = index < 0 ? std::nullopt : std::optional(index);
    if (listener != nullptr) listener->enter(name, layer);
    listeners.push_back(listener);
    return listener != nullptr ? 0 : 1;
  });
}

void rematch_leave_scope() {
  if (listeners.empty()) return;
  ScopeListener* const listener = listeners.back();
  listeners.pop_back();
  if (listener != nullptr) listener->leave();
}

int rematch_is_in_scope() { return !listeners.empty() && listeners.back() != nullptr ? 1 : 0; }

int rematch_is_in_region() { return is_region_open() ? 1 : 0; }

int rematch_note_pointer_taken(void* tensor, int is_lasting) {
  return call_or(-1, [&] {
    if (tensor == nullptr || !is_region_open()) return 0;
    const auto taken = c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim_copy(
        static_cast<at::TensorImpl*>(tensor));
    note_pointer_taken(at::Tensor(taken),
                       is_lasting != 0 ? PointerUse::kLasting : PointerUse::kOnce);
    return 0;
  });
}

std::uint64_t rematch_hash(void* tensor) {
  return call_or(std::uint64_t{0}, [&] { return hash_of(tensors_at(&tensor, 1).front()); });
}

std::int64_t rematch_num_silent_writers() { return num_silent_writers(); }

RematchOpaqueCall* rematch_begin_opaque(void* const* overwritten, int num_overwritten) {
  return call_or<RematchOpaqueCall*>(nullptr, [&]() -> RematchOpaqueCall* {
    auto begun = OpaqueCall::begin(tensors_at(overwritten, num_overwritten));
    return begun == nullptr ? nullptr : new RematchOpaqueCall{std::move(begun)};
  });
}

int rematch_end_opaque(RematchOpaqueCall* call, const char* name, void* const* arguments,
                       int num_arguments, void* const* results, int num_results) {
  const std::unique_ptr<RematchOpaqueCall> owned(call);
  return call_or(-1, [&] {
    owned->call->end(name, tensors_at(arguments, num_arguments), tensors_at(results, num_results));
    return 0;
  });
}

void rematch_abort_opaque(RematchOpaqueCall* call) { delete call; }

int rematch_mark_unrepeatable(const char* op) {
  return call_or(-1, [&] { return mark_unrepeatable(op) ? 1 : 0; });
}

RematchHidden* rematch_begin_hidden() {
  return call_or<RematchHidden*>(nullptr, [] { return new RematchHidden; });
}

void rematch_end_hidden(RematchHidden* section) { delete section; }

RematchCheckpoint* rematch_make_checkpoint(const char* plan_json, const char* schedule,
                                           int refuses_mismatch) {
  return call_or<RematchCheckpoint*>(nullptr, [&] {
    const Checkpoint::Options options{
        .on_mismatch = refuses_mismatch != 0 ? OnMismatch::kRefuse : OnMismatch::kFollowQuietly};
    return new RematchCheckpoint{
        Checkpoint(plan_of_text(plan_json), schedule_named(schedule), options)};
  });
}

std::int64_t rematch_num_left(const RematchCheckpoint* checkpoint) {
  return checkpoint->checkpoint.num_left();
}

const char* rematch_departures(const RematchCheckpoint* checkpoint) {
  return call_or<const char*>(nullptr, [&] {
    Json list = Json::array();
    for (const Departures& each : checkpoint->checkpoint.departures()) {
      list.push_back({{"shape", each.shape},
                      {"type", each.type},
                      {"passes", each.passes},
                      {"left", each.left},
                      {"region", each.region},
                      {"first_difference", each.first_difference},
                      {"extra_ops", each.extra_ops},
                      {"missing_ops", each.missing_ops},
                      {"kept_beyond_plan_bytes", each.kept_beyond_plan.count}});
    }
    return as_text(list);
  });
}

const char* rematch_recompute_differences(const RematchCheckpoint* checkpoint) {
  return call_or<const char*>(nullptr, [&] {
    Json list = Json::array();
    for (const RecomputeDifference& each : checkpoint->checkpoint.recompute_differences()) {
      list.push_back({{"region", each.region}, {"op", each.op}, {"index", each.index}});
    }
    return as_text(list);
  });
}

int rematch_add_gathered(RematchCheckpoint* checkpoint, void* const* tensors, int num_tensors,
                         int (*is_back)(void* tensor)) {
  return call_or(-1, [&] {
    checkpoint->checkpoint.gathered().add(
        tensors_at(tensors, num_tensors),
        [is_back](const at::Tensor& tensor) { return is_back(tensor.unsafeGetTensorImpl()) != 0; });
    return 0;
  });
}

void rematch_free_checkpoint(RematchCheckpoint* checkpoint) { delete checkpoint; }

RematchRecording* rematch_begin_recording(RematchCheckpoint* checkpoint, int verifies) {
  return call_or<RematchRecording*>(nullptr, [&] {
    return new RematchRecording{Recording(
        checkpoint->checkpoint, verifies != 0 ? Verify::kRecomputedOps : Verify::kNothing)};
  });
}

int rematch_end_recording(RematchRecording* recording, int is_whole) {
  const std::unique_ptr<RematchRecording> owned(recording);
  std::replace(listeners.begin(), listeners.end(), owned->listener,
               static_cast<ScopeListener*>(nullptr));
  return call_or(-1, [&] {
    if (is_whole == 0) return 0;
    return static_cast<int>(owned->recording.finish());
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

}  // extern "C"
