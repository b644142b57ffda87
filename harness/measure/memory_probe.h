// Measures the memory of a step. Samples the device's allocator after every executed op, and notes
// the op's place in the step. On the CPU and on meta, requires install_counting_allocators(). The
// probe makes steps slower.
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

// Measures any number of steps in turn. All calls must come from the thread that runs forward.
// Example:
//
//   probe.begin_step();
//   { OpObserverGuard observe(&probe);
//     { Recording recording(...); MemoryProbe::Listening scopes(probe); loss = ...; }
//     probe.forward_done(); loss.backward(); ... }
//   MemoryRecord record = probe.finish_step();
class MemoryProbe final : public OpObserver {
 public:
  // Observes the gradients of `parameters`, and tags the bytes that the parameters already hold.
  MemoryProbe(at::Device device, const std::vector<at::Tensor>& parameters);
  MemoryProbe(const MemoryProbe&) = delete;
  MemoryProbe& operator=(const MemoryProbe&) = delete;

  // Tags the bytes of tensors that existed before the probe, such as the optimizer's state.
  void assign(const std::vector<at::Tensor>& tensors, MemoryTag tag);

  void begin_step();
  void forward_done();
  // Starts another forward in the same step, after a backward. Call forward_done() at its end, as
  // for the first forward.
  void begin_next_forward();
  MemoryRecord finish_step();

  void brought_back(const at::Tensor& value) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Observes scopes while it lives; see StepPlace::Listening.
  struct Listening : StepPlace::Listening {
    explicit Listening(MemoryProbe& probe) : StepPlace::Listening(probe.place_) {}
  };

 private:
  // A storage allocated in forward. Storages that are still alive when forward ends were saved.
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
  std::size_t first_of_forward_ = 0;  // index of the first boundary of the last forward
  Bytes saved_before_;                // bytes saved by earlier forwards
  StepSamples samples_;
  Bytes previous_total_;
  FreshResults fresh_results_;
};

}  // namespace rematch
