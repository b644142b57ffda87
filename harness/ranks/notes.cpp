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
namespace {

constexpr const char* kVariable = "REMATCH_RANK_NOTES";

// Lies in memory of several processes.
struct Slot {
  std::atomic<std::int64_t> joined;
  std::atomic<std::int64_t> step;
  std::atomic<std::int64_t> calls;
  std::atomic<std::int64_t> lost_others;
  std::atomic<std::int64_t> failed_at_ns;  // 0: it has not
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

Slot* map_slots(int file, std::size_t count) {
  void* memory =
      mmap(nullptr, count * sizeof(Slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, /*offset=*/0);
  return memory == MAP_FAILED ? nullptr : static_cast<Slot*>(memory);
}

class NotesInSlot final : public RankNotes {
 public:
  explicit NotesInSlot(Slot* slot) : slot_(slot != nullptr ? *slot : own_) {}
  void joined() override { slot_.joined = 1; }
  void step(std::int64_t step) override { slot_.step = step; }
  void call() override { ++slot_.calls; }
  void lost_others() override { slot_.lost_others = 1; }
  void failed() override {
    std::int64_t none = 0;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    slot_.failed_at_ns.compare_exchange_strong(none, std::chrono::nanoseconds(now).count());
  }

 private:
  Slot own_{};
  Slot& slot_;
};

// The slot in the launcher's file, which stays mapped while the process lives; null without one.
Slot* find_slot() {
  const char* text = std::getenv(kVariable);
  int file = -1;
  unsigned index = 0;
  if (text == nullptr || std::sscanf(text, "%d,%u", &file, &index) != 2) return nullptr;
  struct stat status {};
  if (fstat(file, &status) != 0) return nullptr;
  const std::size_t count = static_cast<std::size_t>(status.st_size) / sizeof(Slot);
  Slot* const slots = index < count ? map_slots(file, count) : nullptr;
  return slots == nullptr ? nullptr : slots + index;
}

}  // namespace

std::shared_ptr<RankNotes> RankNotes::of_this_process() {
  return std::make_shared<NotesInSlot>(find_slot());
}

struct RankBoard::Shared {
  int file = -1;
  std::size_t count = 0;
  void* slots = nullptr;
};

RankBoard::RankBoard(int num_ranks) : shared_(std::make_unique<Shared>()) {
  shared_->count = static_cast<std::size_t>(num_ranks);
  shared_->file = memfd_create("rematch_rank_notes", /*flags=*/0);  // inherited
  if (shared_->file >= 0 &&
      ftruncate(shared_->file, static_cast<off_t>(shared_->count * sizeof(Slot))) == 0) {
    shared_->slots = map_slots(shared_->file, shared_->count);
  }
  if (shared_->slots == nullptr) {
    const int error = errno;
    if (shared_->file >= 0) close(shared_->file);
    throw std::system_error(error, std::generic_category(), "cannot share memory with the ranks");
  }
}

RankBoard::~RankBoard() {
  munmap(shared_->slots, shared_->count * sizeof(Slot));
  close(shared_->file);
}

std::string RankBoard::variable(int index) const {
  return std::string(kVariable) + "=" + std::to_string(shared_->file) + "," + std::to_string(index);
}

RankNote RankBoard::read(int index) const {
  const Slot& slot = static_cast<const Slot*>(shared_->slots)[index];
  RankNote note;
  note.joined = slot.joined != 0;
  note.step = slot.step;
  note.calls = slot.calls;
  note.lost_others = slot.lost_others != 0;
  if (slot.failed_at_ns != 0) note.failed_at = std::chrono::nanoseconds(slot.failed_at_ns);
  return note;
}

}  // namespace rematch
