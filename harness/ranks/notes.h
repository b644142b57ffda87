// Progress notes that the ranks of one machine write for their launcher. They tell how far each
// rank is, and whether the rank failed on its own or because of another rank. The notes are in
// shared memory, so they remain readable after the rank has ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace rematch {

// The progress of a rank.
struct RankNote {
  bool joined = false;     // whether the rank has joined the other ranks
  std::int64_t step = 0;   // number of the current step, counted from 1
  std::int64_t calls = 0;  // number of collectives that the rank has begun
  // True if a collective failed, which usually means that another rank failed first.
  bool lost_others = false;
  // The time of the rank's failure, on the machine's steady clock.
  std::optional<std::chrono::nanoseconds> failed_at;
};

struct RankSlot;  // placed in memory that several processes share

// The progress notes of one rank. They are in the launcher's shared memory if a launcher started
// this process, and otherwise in this process's own memory.
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
  void failed();  // records that this rank failed; later calls have no effect

 private:
  std::unique_ptr<RankSlot> own_;  // null if the launcher's memory is used
  RankSlot* slot_;
};

// The launcher's memory with the notes of `num_ranks` ranks.
class RankBoard {
 public:
  explicit RankBoard(int num_ranks);
  ~RankBoard();
  RankBoard(const RankBoard&) = delete;
  RankBoard& operator=(const RankBoard&) = delete;

  // Returns the environment variable, as "NAME=value", that makes a process write its notes at
  // `index`.
  std::string variable(int index) const;
  RankNote read(int index) const;

 private:
  std::size_t count_;
  int file_;
  RankSlot* slots_ = nullptr;
};

}  // namespace rematch
