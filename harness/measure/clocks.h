// Measures the time of a step, of its classes of ops, and of its copies to the host.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>

#include <array>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/stores/mover.h"
#include "policies/trace/op_class.h"
#include "policies/trace/phase.h"

namespace rematch {

// Waits until everything launched on the device has run. Returns at once on the CPU and on meta,
// where calls are synchronous.
void synchronize(c10::Device device);

// Returns the current time. Synchronizes the device first, so that the time includes launched work.
std::chrono::steady_clock::time_point now_on(c10::Device device);

// Records a timed event in `stream`, which must belong to a GPU.
c10::Event timed_event(c10::Stream stream);
// Records a timed event in the device's current stream.
c10::Event timed_event(c10::Device device);

// Returns the time between two timed events, which must both have completed.
std::chrono::nanoseconds time_between(const c10::Event& begin, const c10::Event& end);

// Times a step as a whole and by phase. Synchronizes the device before and after the step, but not
// during the step. On a GPU, launches therefore run ahead of kernels, as in an unmeasured step, and
// phases are timed with events in the step's stream.
class StepClock {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit StepClock(c10::Device device) : device_(device) {}

  void begin();  // synchronizes, and forgets the previous step
  // Ends a part of the step that belongs to `phase`, or to no phase. Its work has been launched but
  // need not have run. A part without a phase is not counted.
  void part_done(std::optional<Phase> phase);
  // Returns whether a step has begun and not ended.
  bool is_running() const { return is_running_; }
  void end();  // ends the last part, which belongs to the optimizer, and synchronizes

  // The time from begin() to end(), without the parts that belong to no phase.
  Nanoseconds whole() const;
  // The sum over all phases is whole(), except for the cost of begin() and end().
  std::array<Nanoseconds, kNumPhases> by_phase() const;

 private:
  using Clock = std::chrono::steady_clock;
  void mark();
  std::vector<Nanoseconds> parts() const;

  c10::Device device_;
  Clock::time_point start_;
  Nanoseconds from_begin_to_end_{};
  bool is_running_ = false;
  std::vector<std::optional<Phase>> phases_;  // one entry per part
  // Used on the CPU and on meta, where calls are synchronous.
  std::vector<Clock::time_point> marks_;
  std::vector<c10::Event> events_;  // used on a GPU
};

// Times every executed op, by phase and class. Only for the CPU, where a call takes as long as its
// op. The engine marks recomputed ops, and PhaseGuard marks the optimizer's ops. Thread-safe,
// because backward may run on another thread.
class OpClassTimer final : public OpObserver {
 public:
  using Times = std::array<std::map<OpClass, std::chrono::nanoseconds>, kNumPhases>;

  void about_to_run(const c10::OperatorHandle& op, Phase phase,
                    const torch::jit::Stack& stack) override;
  void executed(const c10::OperatorHandle& op, Phase phase,
                const torch::jit::Stack& stack) override;

  // The times measured so far. Do not call this while a step runs.
  const Times& times() const { return times_; }

 private:
  std::mutex mutex_;
  Times times_;
};

// Copy times of offloaded values, summed over all copies.
struct CopyTimes {
  std::chrono::nanoseconds copying{};
  // Time that streams spend waiting for copies. Includes gaps before the host launches more work.
  std::chrono::nanoseconds waiting{};
  std::chrono::nanoseconds hidden() const;   // copy time during which other work runs
  std::chrono::nanoseconds exposed() const;  // copy time during which other work waits
};

// Times the copies of offloaded values, and how long the step waits for them. On a GPU, records
// events before and after each copy and each wait, without synchronizing. On the CPU copies are
// synchronous, so the step waits during every copy.
class CopyTimer final : public MoveObserver {
 public:
  void around(Move move, c10::Stream stream, const std::function<void()>& start) override;

  // Returns the times of all copies and waits since the last call. Synchronize the device first.
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
