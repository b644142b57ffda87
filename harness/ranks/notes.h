// Notes that the ranks of one machine write for their launcher while they run, through shared
// memory: how far each is, and which failed by itself. A note costs a rank one write to memory, and
// what is noted outlives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rematch {

// How far a rank is.
struct RankNote {
  bool joined = false;       // it has met the others
  std::int64_t step = 0;     // begun, from 1
  std::int64_t calls = 0;    // of collectives, begun
  bool lost_others = false;  // a collective of its failed: not by itself, as far as it knows
  std::optional<std::chrono::nanoseconds> failed_at;  // of the machine's steady clock
};

// One of the ranks' own.
class RankNotes {
 public:
  // In the launcher's memory if this process was started by one, else in its own.
  static std::shared_ptr<RankNotes> of_this_process();
  virtual ~RankNotes() = default;

  virtual void joined() = 0;
  virtual void step(std::int64_t step) = 0;
  virtual void call() = 0;
  virtual void lost_others() = 0;
  virtual void failed() = 0;  // the first time counts
};

// The launcher's: notes of so many ranks.
class RankBoard {
 public:
  explicit RankBoard(int num_ranks);
  ~RankBoard();
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  // "NAME=value" for the environment of the process that writes the notes of this index.
  std::string variable(int index) const;
  RankNote read(int index) const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace rematch
