// C functions that watch what a program executes and holds.
#include <c10/core/Device.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/memory.h"
#include "harness/measure/memory_probe.h"
#include "harness/measure/op_counter.h"
#include "harness/measure/step_place.h"
#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "reports/record/memory.h"

namespace rematch {
namespace {

bool is_counted(c10::Device device) {
  return counting_allocators_installed() || !(device.is_cpu() || device.is_meta());
}

std::vector<at::Tensor> gradients_of(const std::vector<at::Tensor>& parameters) {
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

}  // namespace

// Counts the ops that all threads of a program execute, and the bytes that its tensors hold.
// Detects the end of forward itself, because the program does not mark it.
class ProgramWatch final : public OpObserver {
 public:
  // Starts to watch the memory of `device`. On devices cpu and meta, does nothing unless
  // install_counting_allocators() was called. Resets memory tags, so no other watch may be active.
  // `frozen` are the model's frozen weights.
  void watch_memory(c10::Device device, const std::vector<at::Tensor>& parameters,
                    const std::vector<at::Tensor>& frozen) {
    if (!is_counted(device)) return;
    forget_memory_tags();
    probe_.emplace(device, parameters);
    probe_->assign(gradients_of(parameters), MemoryTag::kGradient);
    probe_->assign(frozen, MemoryTag::kFrozen);
    probe_->begin_step();
    probes_ = true;
  }

  // Detects the end of forward: the first op of another phase.
  void about_to_run(const c10::OperatorHandle& /*op*/, Phase phase,
                    const torch::jit::Stack& /*stack*/) override {
    if (!probes_) return;
    const bool in_forward = PhaseGuard::effective(phase) == Phase::kForward;
    const std::lock_guard lock(mutex_);
    if (in_forward_ && !in_forward) probe_->forward_done();
    if (!in_forward_ && in_forward) probe_->begin_next_forward();
    in_forward_ = in_forward;
  }
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override {
    counter_.executed(op, phase, stack);
    if (!probes_) return;
    const std::lock_guard lock(mutex_);
    probe_->executed(op, phase, stack);
  }
  void brought_back(const at::Tensor& value) override {
    if (!probes_) return;
    const std::lock_guard lock(mutex_);
    probe_->brought_back(value);
  }

  CountsRecord counts() const { return counter_.record(/*counted_steps=*/1); }
  std::optional<MemoryRecord> memory() {
    if (!probes_) return std::nullopt;
    if (in_forward_) probe_->forward_done();
    return probe_->finish_step();
  }

 private:
  std::mutex mutex_;
  OpCounter counter_;
  std::optional<MemoryProbe> probe_;
  std::atomic<bool> probes_ = false;  // set only after probe_ is complete, because other threads
                                      // read probe_
  bool in_forward_ = true;
};

}  // namespace rematch

struct RematchWatch {
  rematch::ProgramWatch watch;
  rematch::OpObserverGuard observes{&watch};
};

namespace rematch::c_call {
namespace {

thread_local std::optional<PhaseGuard> optimizer_phase;

Json bytes_by_holder(const HeldBytes& held) {
  Json json = Json::object();
  for (const auto& [holder, bytes] : held) json[std::string(to_string(holder))] = bytes.count;
  return json;
}

Json json_of(const CountsRecord& counts, const std::optional<MemoryRecord>& memory) {
  Json json = {{"ops", Json::object()}, {"peak_bytes", Json::object()}};
  for (int index = 0; index < kNumPhases; ++index) {
    const std::string phase(to_string(static_cast<Phase>(index)));
    json["ops"][phase] = Json::object();
    for (const auto& [op, count] : counts.by_op[static_cast<std::size_t>(index)]) {
      json["ops"][phase][op] = count;
    }
    json["peak_bytes"][phase] = Json();
    if (!memory) continue;
    const auto peak = memory->peak_by_phase.find(phase);
    json["peak_bytes"][phase] = peak == memory->peak_by_phase.end() ? 0 : peak->second.count;
    const auto held = memory->holders_by_phase.find(phase);
    if (held == memory->holders_by_phase.end()) continue;
    json["holders_bytes"][phase] = bytes_by_holder(held->second);
  }
  json["before_bytes"] = memory ? Json(memory->baseline->count) : Json();
  json["holders_at_peak_bytes"] = memory ? bytes_by_holder(memory->holders_at_peak) : Json();
  if (!json.contains("holders_bytes")) json["holders_bytes"] = memory ? Json::object() : Json();
  return json;
}

}  // namespace
}  // namespace rematch::c_call

using namespace rematch;
using namespace rematch::c_call;

extern "C" {

RematchWatch* rematch_begin_watch(const char* device, void* const* parameters, int num_parameters,
                                  void* const* frozen, int num_frozen) {
  return call_or<RematchWatch*>(nullptr, [&] {
    auto begun = std::make_unique<RematchWatch>();
    begun->watch.watch_memory(c10::Device(device), tensors_at(parameters, num_parameters),
                              tensors_at(frozen, num_frozen));
    return begun.release();
  });
}

void rematch_set_in_optimizer(int is_in_optimizer) {
  optimizer_phase.reset();
  if (is_in_optimizer != 0) optimizer_phase.emplace(Phase::kOptimizer);
}

const char* rematch_end_watch(RematchWatch* watch) {
  const std::unique_ptr<RematchWatch> owned(watch);
  return call_or<const char*>(
      nullptr, [&] { return as_text(json_of(owned->watch.counts(), owned->watch.memory())); });
}

}  // extern "C"
