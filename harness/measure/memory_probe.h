// The memory pass of one step: samples the device's allocator after every executed op, and knows
// where in the step that op was. On CPU and meta it needs install_counting_allocators(). Not a
// clock: it slows the step down.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/fresh_results.h"
#include "harness/measure/gradient_hooks.h"
#include "harness/measure/memory_timeline.h"
#include "harness/measure/step_place.h"

namespace rematch {

// One probe serves one step after the other, on the thread that runs forward:
//
//   probe.begin_step();
//   { OpObserverGuard observe(&probe);
//     { Recording recording(...); MemoryProbe::Listening scopes(probe); loss = ...; }
//     probe.forward_done(); loss.backward(); ... }
//   MemoryRecord record = probe.finish_step();
class MemoryProbe final : public OpObserver {
 public:
  // Watches the gradients of `parameters`, and tags what those hold already.
  MemoryProbe(at::Device device, const std::vector<at::Tensor>& parameters);
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  // Books what tensors made before the probe hold: the optimizer's state.
  void assign(const std::vector<at::Tensor>& tensors, MemoryTag tag);

  void begin_step();
  void forward_done();
  // Behind a backward: another forward of the same step, whose end forward_done() tells again.
  void begin_next_forward();
  MemoryRecord finish_step();

  void brought_back(const at::Tensor& value) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Hears scopes while it lives; see StepPlace::Listening.
  struct Listening : StepPlace::Listening {
    explicit Listening(MemoryProbe& probe) : StepPlace::Listening(probe.place_) {}
  };

 private:
  // A storage born in forward: those alive when forward ends are what was saved.
  struct Born {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;
    std::size_t boundary = 0;
    Bytes bytes;
  };

  void tag_results(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack& stack);
  void tag_result(const at::Tensor& result, MemoryTag tag);

  DeviceMemory memory_;
  GradientHooks gradient_hooks_;
  StepPlace place_;
  std::vector<Born> born_;
  std::size_t first_of_forward_ = 0;  // the boundary that the last forward began at
  Bytes saved_before_;                // by earlier ones
  StepSamples samples_;
  Bytes previous_total_;
  FreshResults fresh_results_;
};

}  // namespace rematch
