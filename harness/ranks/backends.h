// The c10d backends that run a group's collectives.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <memory>
#include <string>

#include "harness/ranks/nccl_backend.h"
#include "harness/ranks/notes.h"

namespace rematch {

// A c10d work object that is complete from the start.
class DoneWork final : public c10d::Work {
 public:
  bool wait(std::chrono::milliseconds) override { return true; }
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
};

// The data that a backend needs to find the other ranks of its group.
struct GroupPlace {
  std::string name;
  int rank = 0;  // rank within the group
  int size = 1;
  int device = 0;                         // index of this process's GPU, for NCCL
  c10::intrusive_ptr<c10d::Store> store;  // store that only this group uses
  std::string address;                    // address of the store
  std::chrono::milliseconds timeout{};    // time limit of a collective
  std::shared_ptr<RankNotes> notes;
};

// The two kinds of Gloo backends on the CPU. kQuiet: a call returns only when the collective is
// complete and Gloo's threads have released its tensors, so memory use at op boundaries is the same
// in every run. A failed collective throws RanksError, which names the rank and the group.
// kAsynchronous: c10d's Gloo backend, unchanged.
enum class GlooKind : std::uint8_t { kQuiet, kAsynchronous };
c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const GroupPlace& place, GlooKind kind);

// Makes a backend that needs no other ranks. Gather repeats this rank's input, scatter returns its
// first part, and other collectives copy the input. Memory use equals that of real ranks. Values
// are finite but wrong.
c10::intrusive_ptr<c10d::Backend> make_pretended_backend(int rank, int size);

}  // namespace rematch
