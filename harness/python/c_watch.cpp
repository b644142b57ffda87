// The C functions that watch what a program executes and holds.
#include <c10/core/Device.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/step_place.h"
#include "harness/python/c_call.h"
#include "harness/python/c_surface.h"
#include "harness/python/program_watch.h"
#include "reports/record/memory.h"

struct RematchWatch {
  rematch::ProgramWatch watch;
  rematch::OpObserverGuard observes{&watch};
};

namespace rematch::c_call {
namespace {

thread_local std::optional<PhaseGuard> optimizer_phase;

std::vector<at::Tensor> tensors_at(void* const* tensors, int count) {
  std::vector<at::Tensor> found;
  for (int index = 0; index < count; ++index) {
    found.emplace_back(c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim_copy(
        static_cast<at::TensorImpl*>(tensors[index])));
  }
  return found;
}

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

using namespace rematch;  // C functions are in no namespace
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
