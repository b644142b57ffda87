// Activation checkpointing for C++ LibTorch: record a region's ops once, below autograd, while
// forward runs; recompute recorded ops when backward asks for a value. No closures, no rebuilt
// graph. This header is the whole public surface.
//
//   rematch::Checkpoint checkpoint(plan, rematch::Schedule::kOnDemand);   // once per plan
//   ...
//   rematch::Recording recording(checkpoint);                            // once per step
//   auto loss = model.forward(batch);      // the model opens rematch::Scope objects; nothing else
//   loss.backward();
//
// Loss, gradients, generator states and buffers have the bits of the run without it.
#pragma once

#include <memory>
#include <stdexcept>

#include "policies/plan/plan.h"

namespace rematch {

// The model ran other ops than the plan was made for. Names region, index, expected and found op.
struct StreamMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The engine cannot keep its promise of equal bits for what the model or its user did: a region
// input written in place, a parameter changed between forward and backward, a mutating op over
// tensor lists, a collective that its region does not wait for. Names the op.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A plan made ready to run: op names looked up, regions indexed. Immutable; one serves any number
// of recordings, on any thread. Throws StreamMismatch if the plan names an op that this LibTorch
// does not have, Refused for a treatment that this device cannot do.
class Checkpoint {
 public:
  Checkpoint(const Plan& plan, Schedule schedule);
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  struct Prepared;
  const std::shared_ptr<const Prepared>& prepared() const { return prepared_; }

 private:
  std::shared_ptr<const Prepared> prepared_;
};

// While it lives, forward passes on this thread are recorded as the plan says. Backward may run
// while it lives or after. Recordings may follow each other, and several may be alive on one
// thread: the innermost governs. Outside regions, without grad mode and inside backward ops pass
// through. Inference mode inside a region throws Refused.
class Recording {
 public:
  explicit Recording(const Checkpoint& checkpoint);
  Recording(const Plan& plan, Schedule schedule);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends recording early and throws what a destructor must swallow: StreamMismatch if a region
  // ended before its last planned op, or if no region of a non-empty plan was ever entered.
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch
