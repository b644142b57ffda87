// Times the copies of what a plan offloads, and how long the step's own work waits for them. On a
// GPU by pairs of events, around each copy in the copying stream and around each join in the
// waiting one, so a step runs as it does without; on the CPU, where a copy is done when the call
// returns, the step waits for all of it.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "harness/engine/offload/move_observer.h"

namespace rematch {

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
