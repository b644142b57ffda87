// The place of an op in the model: in forward, the open top-level scope; in backward, the scope
// whose autograd node runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/scope/scope.h"
#include "policies/trace/phase.h"

namespace rematch {

// One thread at a time may use this object: first the thread of forward, then the threads of
// autograd's engine.
class StepPlace final : private ScopeListener {
 public:
  void begin_step();
  // After this call the place is outside all scopes, until backward runs a node.
  void forward_done() { current_ = 0; }

  // Returns the index into names() for an op that runs at this moment. 0 outside all scopes.
  int of(Phase phase);
  // "" followed by each top-level scope of the step, such as "blocks.3" and "head", in the order of
  // forward.
  const std::vector<std::string>& names() const { return names_; }

  // Observes scopes while this object lives, and forwards them to the previous listener. Construct
  // it after the Recording, so that it is destroyed first.
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
  // The autograd nodes that were created while a top-level scope was open. Their numbers begin at
  // `first_sequence`.
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

// Marks the optimizer's phase, which LibTorch does not report. Hold this guard while the optimizer
// runs. Observers call effective().
class PhaseGuard {
 public:
  explicit PhaseGuard(Phase phase) : previous_(override_of_thread()) {
    override_of_thread() = phase;
  }
  ~PhaseGuard() { override_of_thread() = previous_; }
  PhaseGuard(const PhaseGuard&) = delete;
  PhaseGuard& operator=(const PhaseGuard&) = delete;

  // Returns the phase of this thread's guard if `observed` is forward and there is a guard.
  // Otherwise returns `observed`.
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
