// A step seen by a memory probe: scopes while forward runs, and where backward begins.
#pragma once

#include <functional>

#include "harness/measure/memory_probe.h"
#include "harness/training/training.h"

namespace rematch {

class ProbeListener final : public StepListener {
 public:
  explicit ProbeListener(MemoryProbe& probe) : probe_(probe) {}
  void before_step() override { probe_.begin_step(); }
  at::Tensor forward(const std::function<at::Tensor()>& loss) override {
    const MemoryProbe::Listening scopes(probe_);
    return loss();
  }
  void after_forward(const at::Tensor&) override { probe_.forward_done(); }

 private:
  MemoryProbe& probe_;
};

}  // namespace rematch
