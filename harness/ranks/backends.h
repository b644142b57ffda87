// The c10d backends that carry a group's collectives.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "harness/ranks/nccl_backend.h"
#include "harness/ranks/notes.h"

namespace rematch {

// Work that was done when its call returned.
class DoneWork final : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
};

// The data that a backend needs to find the other ranks of its group.
struct GroupPlace {
  std::string name;
  int rank = 0;  // in the group
  int size = 1;
  int device = 0;                         // the GPU of this process, for NCCL
  c10::intrusive_ptr<c10d::Store> store;  // of this group alone
  std::string address;                    // of the store
  std::chrono::milliseconds timeout{};    // of a collective
  std::shared_ptr<RankNotes> notes;
};

// Gloo on the CPU. Quiet: a collective is done when the call returns, and Gloo's threads hold none
// of its tensors any more, so that bytes at op boundaries are the same in every run; what fails is
// a RanksError that names the rank and the group. Not quiet: Gloo as it is, asynchronous.
enum class GlooKind : std::uint8_t { kQuiet, kAsynchronous };
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const GroupPlace& place, GlooKind kind);

// Nobody else: outputs are filled from this rank's inputs. Gather repeats them, scatter takes the
// first part, reduce, exchange and broadcast copy. Bytes are those of the real ranks, values are
// finite and wrong.
c10::intrusive_ptr<c10d::Backend> make_pretended_backend(int rank, int size);

}  // namespace rematch
