// The place of a step in the model: the top-level scope that is open in forward, and the one whose
// autograd node runs in backward. For observers of ops.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/scope/scope.h"
#include "policies/trace/phase.h"

namespace rematch {

// Used by one thread at a time: forward's, then those of backward's engine.
class StepPlace final : private ScopeListener {
 public:
  void begin_step();
  // Outside all scopes from here on, until backward runs a node.
  void forward_done() { current_ = 0; }

  // An index into names(), for an op that runs at this moment; 0: in no scope.
  int of(Phase phase);
  // "", then each top-level scope of the step in the order of forward: "blocks.3", "head".
  const std::vector<std::string>& names() const { return names_; }

  // Hears scopes while it lives and passes them on to the listener there was. Make it after the
  // Recording, so that it is the first to go.
  class Listening {
   public:
    explicit Listening(StepPlace& place);
    ~Listening();
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    StepPlace& place_;
  };

 private:
  // The autograd nodes made while a top-level scope was open: from `first_sequence` on.
  struct Interval {
    std::uint64_t first_sequence = 0;
    int place = 0;
  };

  void enter(std::string_view name, std::optional<int> index) override;
  void leave() noexcept override;
  int of_running_node();

  std::vector<std::string> names_ = {""};
  std::vector<Interval> intervals_;
  ScopeListener* next_ = nullptr;
  int scope_depth_ = 0;
  int current_ = 0;
};

// Marks the optimizer's phase, which LibTorch cannot tell by itself. Observers ask
// effective_phase(); whoever runs the optimizer holds the guard.

class PhaseGuard {
 public:
  explicit PhaseGuard(Phase phase) : previous_(override_of_thread()) {
    override_of_thread() = phase;
  }
  ~PhaseGuard() { override_of_thread() = previous_; }
  PhaseGuard(const PhaseGuard&) = delete;
  PhaseGuard& operator=(const PhaseGuard&) = delete;

  // The phase to book an op under that was observed in `observed`.
  static Phase effective(Phase observed) {
    return observed == Phase::kForward ? override_of_thread().value_or(observed) : observed;
  }

 private:
  static std::optional<Phase>& override_of_thread() {
    thread_local std::optional<Phase> phase;
    return phase;
  }

  std::optional<Phase> previous_;
};

}  // namespace rematch
