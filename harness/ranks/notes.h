// Notes that the ranks of one machine write for their launcher while they run, through shared
// memory: how far each is, and which failed by itself. A note costs a rank one write to memory, and
// what is noted outlives it.
#pragma once

#include <chrono>
#include <cstddef>
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

struct RankSlot;  // in memory of several processes

// One of the ranks' own: in the launcher's memory if this process was started by one, else in its
// own.
class RankNotes {
 public:
  RankNotes();
  ~RankNotes();
  RankNotes(const RankNotes&) = delete;
  RankNotes& operator=(const RankNotes&) = delete;

  void joined();
  void step(std::int64_t step);
  void call();
  void lost_others();
  void failed();  // the first time counts

 private:
  std::unique_ptr<RankSlot> own_;  // null where the launcher's is used
  RankSlot* slot_;
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
  std::size_t count_;
  int file_;
  RankSlot* slots_ = nullptr;
};

}  // namespace rematch
