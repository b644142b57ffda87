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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"

namespace rematch {

// The model ran other ops than the plan was made for, under OnMismatch::kRefuse. Names region,
// index, expected and found op.
struct StreamMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The engine cannot keep its promise of equal bits for what the model or its user did: see Note
// [What is refused]. Names region, op and tensor, and says what to do instead.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Note [What is refused]
// While forward runs, in a region:
//   - a result of the region that is given other data (set_data, x.data = y) after autograd saved
//     it;
//   - a tensor that was filled through a raw pointer, read, and filled so again;
//   - a collective that the region does not wait for, or that gives a handle to wait on;
//   - an op on another stream of its device than those before it;
//   - inference mode, and a Recording that begins inside the region.
// When backward wants a tensor from outside that was written to or given other data since it was
// read: if autograd saved it, or if an op that has to be recomputed read its content. Making a view
// of it, or a tensor of its sizes, reads no content; an op whose result backward does not need is
// left out; and a tensor that the region itself overwrites after an op read it is copied first. One
// that the plan offloads is refused whoever wants it. When backward wants what was filled through a
// raw pointer in the region, or is the result of an op with a side effect, and was written to after
// the region. When an op would be recomputed on another stream than forward ran it on. Autograd
// runs backward on the streams of forward, whichever are current.
//
// Note [What is not seen]
//   - a write through .data or a raw pointer into a tensor from outside, and other memory given to
//     its storage: OutsideCheck::kHashes does;
//   - an op of another library that writes to an argument which its schema does not mark (kHashes
//     does; so does a trace, and records of its process then treat the argument as written), that
//     has a state of its own, or that draws numbers and neither takes a generator nor is tagged
//     nondeterministic_seeded (Verify::kRecomputedOps finds those);
//   - a write through a raw pointer into a result of the region. It is seen if the tensor's version
//     is raised after it (increment_version, mark_dirty), if note_pointer_taken() was called for it
//     (record/pointer_taken.h; Python does for numpy(), data_ptr(), __dlpack__ and Triton), or if
//     an `empty` made the tensor and no op wrote to it;
//   - kernels that give other bits each time: use LibTorch's deterministic mode.

// How a change of a tensor from outside a region, made between forward and backward, is noticed.
enum class OutsideCheck : std::uint8_t {
  kVersions,  // by its version counter and its place in which storage: costs nothing
  kHashes,    // by its content too: for finding a fault, not for training
};

// What happens when a pass of forward through a region runs other ops than its plan has, in all of
// its shapes.
//
// Note [Following a shape]
// A pass through a region follows one shape of the plan. A pass of forward begins with the shape
// that the one before it in the Recording had, at first with the first shape. While other shapes
// have had the same ops since then, the region keeps what any of them keeps, and drops the rest
// when the ops tell which shape it is. After that only the ops of one shape are compared. If one
// differs, the region goes on with another shape that has had all the ops of the region so far.
// Values that the other shape keeps and the region did not are recomputed. So bytes and counts are
// those of the shape that ran, unless the shape changes behind the point where ops told it apart.
//
// Note [Leaving the plan]
// Such a pass leaves its plan and continues. Its ops are aligned with the planned ops. Planned ops
// are treated as planned, extra ops are recomputed, and extra collectives are kept, because other
// ranks may not run them. Backward recomputes from the record, which does not depend on the plan,
// so bits are those of the step without the plan. Leaving the plan costs memory or recomputation.
// Such a pass ignores the plan's order of recomputation and its offloaded inputs.
enum class OnMismatch : std::uint8_t {
  kFollow,         // leave the plan, with a warning for each region type (TORCH_WARN)
  kFollowQuietly,  // leave the plan; the caller reports Checkpoint::departures()
  kRefuse,         // throw StreamMismatch, for callers that prove counts
};

// The passes through regions of one type, and those among them that left the plan. A pass counts
// for the type that it followed last.
struct Departures {
  int shape = 0;  // 0: the plan's own types; i: those of Plan::other_shapes[i - 1]
  int type = 0;   // index into them
  std::int64_t passes = 0;
  std::int64_t left = 0;
  std::string region;            // the first that left
  std::string first_difference;  // there: "op 3: the plan expects aten::mm, the model ran ..."
  std::int64_t extra_ops = 0;    // ran and are not planned, in all passes
  std::int64_t missing_ops = 0;  // planned and did not run
  Bytes kept_beyond_plan;        // the most of any pass
};

// Whether a step hashes what ops compute, and compares the results of recomputed ops with those of
// forward. For finding a fault: it waits for the device after each op.
enum class Verify : std::uint8_t { kNothing, kRecomputedOps };

// The first recomputed op of a region that gave other results than in forward: it has a state, or
// random numbers, that no record sees, or a kernel wrote unseen to what it read.
struct RecomputeDifference {
  std::string region;
  std::string op;
  std::size_t index = 0;  // among the region's ops
};

class GatheredTensors;
class MoveObserver;

// Host memory that holds what a plan offloads.
struct HostMemory {
  Bytes in_use;
  Bytes peak;
  Bytes copied_out;
  Bytes copied_back;
  std::int64_t allocations = 0;  // blocks, ever; they are used again from step to step
  bool operator==(const HostMemory&) const = default;
};

// A plan made ready to run: op names looked up, regions indexed. Immutable; one serves any number
// of recordings, on any thread. Owns the host memory of what they offload, so a plan that offloads
// needs one Checkpoint for all steps. Throws Refused if the plan has an op that cannot be
// recomputed, and, under kRefuse, StreamMismatch for one that this LibTorch does not have.
class Checkpoint {
 public:
  struct Options {
    OutsideCheck outside_check = OutsideCheck::kVersions;
    OnMismatch on_mismatch = OnMismatch::kFollow;
  };

  Checkpoint(const Plan& plan, Schedule schedule, Options options);
  Checkpoint(const Plan& plan, Schedule schedule) : Checkpoint(plan, schedule, Options()) {}
  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  // The host memory of all recordings. Peak and copied bytes count from the last restart on.
  HostMemory host_memory() const;
  bool offloads() const;
  void restart_host_counts() const;
  // Who is told of copies to the host and back and of waits for them; null: nobody. Must outlive
  // the steps that it is told of. Not while a step runs.
  void observe_moves(MoveObserver* observer) const;

  // One entry for each region type that ran, on any thread, since the Checkpoint was made.
  std::vector<Departures> departures() const;
  // The number of passes that left the plan. Costs one atomic read.
  std::int64_t num_left() const;

  // At most one for each region, of the recordings that verified.
  std::vector<RecomputeDifference> recompute_differences() const;

  // Parameters whose content comes and goes: see record/gathered.h.
  GatheredTensors& gathered() const;

  struct Prepared;
  const std::shared_ptr<const Prepared>& prepared() const { return prepared_; }

 private:
  std::shared_ptr<const Prepared> prepared_;
};

// Whether a Recording ran regions of its plan. An evaluation opens scopes without grad mode.
enum class RegionsRun : std::uint8_t { kSome, kNone, kNoneWithoutGrad };

// While it lives, forward passes on this thread are recorded as the plan says. Backward may run
// while it lives or after. Recordings may follow each other, and several may be alive on one
// thread: the innermost governs. Outside regions, without grad mode and inside backward ops pass
// through.
class Recording {
 public:
  explicit Recording(const Checkpoint& checkpoint, Verify verify = Verify::kNothing);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends recording early and throws what a destructor must swallow: under kRefuse, StreamMismatch
  // if a region ended before its last planned op. Says whether regions ran, as a step without any
  // is legal.
  RegionsRun finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch
