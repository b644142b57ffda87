// Bytes that each op's kernels allocate and free before the op returns: the allocator's peak
// while the op runs, above what stands at its boundaries. Knows nothing of steps or traces.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/measure/device_memory.h"

namespace rematch {

struct OpTemporary {
  const std::string* name = nullptr;  // lives as long as the process
  Bytes bytes;
};

// While an OpObserverGuard of it lives, ops are appended to the list that is set; none: they pass.
// One op at a time may run: the allocator's peak is the device's, not a thread's. On the CPU it
// needs install_counting_allocators().
class TemporaryRecorder final : public OpObserver {
 public:
  explicit TemporaryRecorder(at::Device device) : memory_(device) {}
  void set_list(std::vector<OpTemporary>* list) { list_ = list; }

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

 private:
  DeviceMemory memory_;
  std::vector<OpTemporary>* list_ = nullptr;
  Bytes before_;
};

// The bytes of a step's ops in their order. Throws std::runtime_error, with the op named, unless
// they are the trace's; see require_same_ops().
std::vector<Bytes> bytes_of(const std::vector<OpTemporary>& weighed,
                            const std::vector<const std::string*>& traced, const std::string& phase,
                            const std::string& device);

}  // namespace rematch
