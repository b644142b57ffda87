#include "harness/measure/copy_timer.h"

#include <algorithm>

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

c10::Event timed_event(c10::Stream stream) {
  c10::Event event(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT);  // with a time stamp
  event.record(stream);
  return event;
}

}  // namespace

// A join ends with the copies that it waits for, so longer waits are gaps of the host's making.
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
    const std::chrono::duration<double, std::milli> elapsed(pair.begin.elapsedTime(pair.end));
    add(pair.move, std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed));
  }
  return std::exchange(times_, {});
}

void CopyTimer::add(Move move, std::chrono::nanoseconds time) {
  (move == Move::kCopy ? times_.copying : times_.waiting) += time;
}

}  // namespace rematch
