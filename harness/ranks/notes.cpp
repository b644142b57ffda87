#include "harness/ranks/notes.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace rematch {

struct RankSlot {
  std::atomic<std::int64_t> joined;
  std::atomic<std::int64_t> step;
  std::atomic<std::int64_t> calls;
  std::atomic<std::int64_t> lost_others;
  std::atomic<std::int64_t> failed_at_ns;  // time of the rank's failure; 0 if it has not failed
};

namespace {

constexpr const char* kVariable = "REMATCH_RANK_NOTES";

static_assert(std::atomic<std::int64_t>::is_always_lock_free);

RankSlot* map_slots(int file, std::size_t count) {
  void* memory = mmap(nullptr, count * sizeof(RankSlot), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                      /*offset=*/0);
  return memory == MAP_FAILED ? nullptr : static_cast<RankSlot*>(memory);
}

// Returns this rank's slot in the launcher's file. The slot stays mapped while the process lives.
// Returns null if no launcher started this process.
RankSlot* find_slot() {
  const char* text = std::getenv(kVariable);
  int file = -1;
  unsigned index = 0;
  if (text == nullptr || std::sscanf(text, "%d,%u", &file, &index) != 2) return nullptr;
  struct stat status {};
  if (fstat(file, &status) != 0) return nullptr;
  const std::size_t count = static_cast<std::size_t>(status.st_size) / sizeof(RankSlot);
  RankSlot* const slots = index < count ? map_slots(file, count) : nullptr;
  return slots == nullptr ? nullptr : slots + index;
}

}  // namespace

RankNotes::RankNotes() : slot_(find_slot()) {
  if (slot_ != nullptr) return;
  own_ = std::make_unique<RankSlot>();
  slot_ = own_.get();
}
RankNotes::~RankNotes() = default;

void RankNotes::joined() { slot_->joined = 1; }
void RankNotes::step(std::int64_t step) { slot_->step = step; }
void RankNotes::call() { ++slot_->calls; }
void RankNotes::lost_others() { slot_->lost_others = 1; }
void RankNotes::failed() {
  std::int64_t none = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  slot_->failed_at_ns.compare_exchange_strong(none, std::chrono::nanoseconds(now).count());
}

RankBoard::RankBoard(int num_ranks)
    : count_(static_cast<std::size_t>(num_ranks)),
      file_(
          memfd_create("rematch_rank_notes", /*flags=*/0)) {  // a file that child processes inherit
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(count_ * sizeof(RankSlot))) == 0) {
    slots_ = map_slots(file_, count_);
  }
  if (slots_ == nullptr) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw std::system_error(error, std::generic_category(), "cannot share memory with the ranks");
  }
}

RankBoard::~RankBoard() {
  munmap(slots_, count_ * sizeof(RankSlot));
  close(file_);
}

std::string RankBoard::variable(int index) const {
  return std::string(kVariable) + "=" + std::to_string(file_) + "," + std::to_string(index);
}

RankNote RankBoard::read(int index) const {
  const RankSlot& slot = slots_[index];
  RankNote note;
  note.joined = slot.joined != 0;
  note.step = slot.step;
  note.calls = slot.calls;
  note.lost_others = slot.lost_others != 0;
  if (slot.failed_at_ns != 0) note.failed_at = std::chrono::nanoseconds(slot.failed_at_ns);
  return note;
}

}  // namespace rematch
