// Times every op that the thread runs below autograd, where it runs: on the CPU an op is over when
// its call returns. Knows nothing of steps or traces.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "harness/engine/interception.h"

namespace rematch {

struct TimedOp {
  const std::string* name = nullptr;  // lives as long as the process
  std::chrono::nanoseconds time{};
};

// The times of ops that must be those of a trace; step_ops.h has the names and what is thrown.
std::vector<std::chrono::nanoseconds> times_of(const std::vector<TimedOp>& timed,
                                               const std::vector<const std::string*>& traced,
                                               const std::string& phase, const std::string& device);

// While an OpModeGuard of it lives, ops are appended to the list that is set; none: they pass.
class OpTimer final : public OpMode {
 public:
  void set_list(std::vector<TimedOp>* list) { list_ = list; }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override;

 private:
  std::vector<TimedOp>* list_ = nullptr;
};

}  // namespace rematch
