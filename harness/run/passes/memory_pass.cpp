#include <functional>
#include <optional>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/measure/memory_probe.h"
#include "harness/run/passes/passes.h"

namespace rematch {
namespace {

class MemoryListener final : public Watching {
 public:
  MemoryListener(PassPosition& position, MemoryProbe& probe) : Watching(position), probe_(probe) {}

  void before_step() override {
    Watching::before_step();
    probe_.begin_step();
  }
  void before_next_micro_batch() override {
    Watching::before_next_micro_batch();
    probe_.begin_next_forward();
  }
  at::Tensor forward(const std::function<at::Tensor()>& loss) override {
    const MemoryProbe::Listening scopes(probe_);
    return loss();
  }
  void after_forward(const at::Tensor& loss) override {
    Watching::after_forward(loss);
    probe_.forward_done();
  }

 private:
  MemoryProbe& probe_;
};

// Returns the host memory that the step used. Absent if the plan offloads nothing.
std::optional<HostRecord> host_record(const Training& training) {
  const std::optional<HostMemory> host = training.host_memory();
  if (!host) return std::nullopt;
  return HostRecord{*host};
}

}  // namespace

MemoryRecord memory_pass(Training& training, at::Device device, std::int64_t step,
                         PassPosition& position, std::vector<OpObserver*> beside) {
  position = {"memory", -1, {}};
  MemoryProbe probe(device, training.parameter_tensors());
  probe.assign(training.optimizer().state(), MemoryTag::kOptimizer);
  probe.assign(training.frozen_tensors(), MemoryTag::kFrozen);
  beside.push_back(&probe);
  OpObservers observers(std::move(beside));
  {
    const OpObserverGuard observe(&observers);
    MemoryListener listener(position, probe);
    training.restart_host_counts();
    training.step(step, listener);
  }
  MemoryRecord memory = probe.finish_step();
  memory.host = host_record(training);
  // No kernels run on meta, so the temporaries inside them are unknown.
  if (device.is_meta()) memory.peak_transient.reset();
  return memory;
}

}  // namespace rematch
