// Clocks of a step: on the device or the host, of the whole step, of its classes of ops, and of
// its copies to the host.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/offload/mover.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

// Time on a device: what was launched counts when it has run, not when it was launched.

// Waits until all that was launched on the device has run; on the CPU and on meta a call is over
// when it returns.
void synchronize(c10::Device device);

// Synchronizes first.
std::chrono::steady_clock::time_point now_on(c10::Device device);

// Times a step as a whole and in parts. The device is waited for before the step and after it, and
// never inside: a GPU's launches run ahead of it, as they do where nobody measures. So the parts of
// a step on a GPU are from events in its stream.

class StepClock {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit StepClock(c10::Device device) : device_(device) {}

  void begin();      // waits, and forgets the step before
  void part_done();  // launched, not run
  void end();        // the last part is done; waits

  // From begin() to end().
  Nanoseconds whole() const { return whole_; }
  // As many as part_done() and end() were called. Their sum is the whole but for what begin() and
  // end() take.
  std::vector<Nanoseconds> parts() const;

 private:
  using Clock = std::chrono::steady_clock;
  void mark();

  c10::Device device_;
  Clock::time_point start_;
  Nanoseconds whole_{};
  std::vector<Clock::time_point> marks_;  // where calls are over when they return
  std::vector<c10::Event> events_;        // elsewhere
};

// Times every op that really runs, by phase and class, where its call takes as long as the op: on
// the CPU. Recomputed ops are told apart by the engine, the optimizer's by PhaseGuard.

// Thread-safe: backward may run on another thread than forward.
class OpClassTimer final : public OpObserver {
 public:
  using Times = std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases>;

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // Everything timed so far. Not while a step runs.
  const Times& times() const { return times_; }

 private:
  std::mutex mutex_;
  Times times_;
};

// Times the copies of what a plan offloads, and how long the step's own work waits for them. On a
// GPU by pairs of events, around each copy in the copying stream and around each join in the
// waiting one, so a step runs as it does without; on the CPU, where a copy is done when the call
// returns, the step waits for all of it.

struct CopyTimes {
  std::chrono::nanoseconds copying{};
  std::chrono::nanoseconds waiting{};  // of streams, in joins; gaps before the host comes included
  std::chrono::nanoseconds hidden() const;   // of the copies, beside other work
  std::chrono::nanoseconds exposed() const;  // with other work waiting
};

class CopyTimer final : public MoveObserver {
 public:
  void around(Move move, c10::Stream stream, const std::function<void()>& start) override;

  // Times of all moves since the last call. The device must have been synchronized.
  CopyTimes take();

 private:
  struct Pair {
    Move move;
    c10::Event begin;
    c10::Event end;
  };
  void add(Move move, std::chrono::nanoseconds time);

  std::mutex mutex_;
  CopyTimes times_;
  std::vector<Pair> pairs_;
};

}  // namespace rematch
