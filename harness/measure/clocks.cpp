#include "harness/measure/clocks.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cstddef>

#include "harness/measure/step_place.h"

namespace rematch {

void synchronize(c10::Device device) {
  if (!device.is_cuda()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

std::chrono::steady_clock::time_point now_on(c10::Device device) {
  synchronize(device);
  return std::chrono::steady_clock::now();
}

c10::Event timed_event(c10::Stream stream) {
  // Only an event with this flag records a time stamp.
  c10::Event event(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT);
  event.record(stream);
  return event;
}

c10::Event timed_event(c10::Device device) {
  return timed_event(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

std::chrono::nanoseconds time_between(const c10::Event& begin, const c10::Event& end) {
  const std::chrono::duration<double, std::milli> elapsed(begin.elapsedTime(end));
  return std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed);
}

void StepClock::begin() {
  marks_.clear();
  events_.clear();
  phases_.clear();
  is_running_ = true;
  start_ = now_on(device_);
  mark();
}

void StepClock::part_done(std::optional<Phase> phase) {
  phases_.push_back(phase);
  mark();
}

void StepClock::end() {
  part_done(Phase::kOptimizer);
  from_begin_to_end_ = now_on(device_) - start_;
  is_running_ = false;
}

StepClock::Nanoseconds StepClock::whole() const {
  Nanoseconds whole = from_begin_to_end_;
  const std::vector<Nanoseconds> times = parts();
  for (std::size_t part = 0; part < times.size(); ++part) {
    if (!phases_[part]) whole -= times[part];
  }
  return whole;
}

std::array<StepClock::Nanoseconds, kNumPhases> StepClock::by_phase() const {
  std::array<Nanoseconds, kNumPhases> sums{};
  const std::vector<Nanoseconds> times = parts();
  for (std::size_t part = 0; part < times.size(); ++part) {
    if (phases_[part]) sums[static_cast<std::size_t>(*phases_[part])] += times[part];
  }
  return sums;
}

std::vector<StepClock::Nanoseconds> StepClock::parts() const {
  std::vector<Nanoseconds> parts;
  for (std::size_t index = 1; index < marks_.size(); ++index) {
    parts.emplace_back(marks_[index] - marks_[index - 1]);
  }
  for (std::size_t index = 1; index < events_.size(); ++index) {
    parts.push_back(time_between(events_[index - 1], events_[index]));
  }
  return parts;
}

void StepClock::mark() {
  if (!device_.is_cuda()) {
    marks_.push_back(Clock::now());
    return;
  }
  events_.push_back(timed_event(device_));
}

namespace {

using Clock = std::chrono::steady_clock;

// The start of the op that this thread runs. Ops that kernels call are not observed, so a thread
// never times two ops at once.
thread_local Clock::time_point start_of_op;

}  // namespace

void OpClassTimer::about_to_run(const c10::OperatorHandle&, Phase, const torch::jit::Stack&) {
  start_of_op = Clock::now();
}

void OpClassTimer::executed(const c10::OperatorHandle& op, Phase phase, const torch::jit::Stack&) {
  const std::chrono::nanoseconds spent = Clock::now() - start_of_op;
  const auto slot = static_cast<std::size_t>(PhaseGuard::effective(phase));
  const OpClass op_class = op_class_of(op.operator_name().name);
  const std::lock_guard lock(mutex_);
  times_[slot][op_class] += spent;
}

// A stream has to wait only until the copies end. Any longer wait is a gap that the host caused.
std::chrono::nanoseconds CopyTimes::exposed() const { return std::min(copying, waiting); }
std::chrono::nanoseconds CopyTimes::hidden() const { return copying - exposed(); }

void CopyTimer::around(Move move, c10::Stream stream, const std::function<void()>& start) {
  if (stream.device().is_cuda()) {
    c10::Event begin = timed_event(stream);
    start();
    c10::Event end = timed_event(stream);
    const std::lock_guard<std::mutex> lock(mutex_);
    pairs_.push_back({move, std::move(begin), std::move(end)});
    return;
  }
  const Clock::time_point begin = Clock::now();
  start();
  const std::chrono::nanoseconds spent = Clock::now() - begin;
  const std::lock_guard<std::mutex> lock(mutex_);
  times_.copying += spent;
  times_.waiting += spent;
}

CopyTimes CopyTimer::take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Pair& pair : std::exchange(pairs_, {})) {
    add(pair.move, time_between(pair.begin, pair.end));
  }
  return std::exchange(times_, {});
}

void CopyTimer::add(Move move, std::chrono::nanoseconds time) {
  (move == Move::kCopy ? times_.copying : times_.waiting) += time;
}

}  // namespace rematch
