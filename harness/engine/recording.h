// Activation checkpointing for C++ LibTorch. Records a region's ops once, below autograd, while
// forward runs, and recomputes recorded ops when backward demands a value. Needs no closures and
// rebuilds no graph. This header is the whole public surface.
//
//   rematch::Checkpoint checkpoint(plan, rematch::Schedule::kOnDemand);   // once per plan
//   ...
//   rematch::Recording recording(checkpoint);                            // once per step
//   auto loss = model.forward(batch);      // the model opens rematch::Scope objects; nothing else
//   loss.backward();
//
// Loss, gradients, generator states and buffers have the same bits as in a run without
// checkpointing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "policies/base/bytes.h"
#include "policies/plan/plan.h"
#include "policies/trace/host_memory.h"

namespace rematch {

// Thrown under OnMismatch::kRefuse, if the model ran different ops than the plan was made for. The
// message names region, index, expected op and found op.
struct StreamMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown if the engine cannot guarantee equal bits after an action of the model or the user: see
// Note [What the engine refuses]. The message names region, op and tensor, and says what to do
// instead.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Note [What the engine refuses]
// In a region, while forward runs:
// - giving different data to a result of the region (set_data, x.data = y) after autograd saved it;
// - filling a tensor through a raw pointer a second time, after the first content was read;
// - a collective that the region does not wait for, or a planned collective that returns a handle;
// - an op on another stream of its device than the ops before it;
// - inference mode, and a Recording that begins inside the region.
//
// A tensor from outside may have been written to, or given different data, since it was read.
// Backward then throws Refused in two cases: autograd saved the tensor, or an op that must be
// recomputed read its content. Details:
// - Making a view of the tensor, or a tensor of its sizes, reads no content.
// - An op whose result backward does not need is left out.
// - A tensor that the region itself overwrites after an op read it is copied first.
// - A tensor that the traced step overwrites later in forward is copied too: see Note [Watching
//   writes] in write_watch.h.
// - A changed tensor that the plan offloads is always refused.
//
// Also refused:
// - a demand for a result that was written to after the region, if it was filled through a raw
//   pointer in the region or made by an op with a side effect;
// - recompute of an op on a different stream than forward ran it on. Autograd runs backward on the
//   streams of forward, whichever are current.
//
// Note [What the engine cannot see]
// - A write through .data or a raw pointer into a tensor from outside, or other memory given to its
//   storage. OutsideCheck::kHashes detects both.
// - An op of another library that writes to an argument which its schema does not mark. kHashes and
//   tracing detect it. After a trace, records of the same process treat the argument as written.
// - An op of another library that has a state of its own, or that draws numbers without a generator
//   argument and without the tag nondeterministic_seeded. Verify::kRecomputedOps finds such ops.
// - A write through a raw pointer into a result of the region. The engine sees it in three cases:
//   the tensor's version is raised after the write (increment_version, mark_dirty), an `empty` made
//   the tensor and no op wrote to it, or note_pointer_taken() was called for it
//   (record/pointer_taken.h). Python calls it for numpy(), data_ptr(), __dlpack__ and Triton.
// - Kernels that give different bits each time. Use LibTorch's deterministic mode.

// How the engine detects that a tensor from outside a region changed between forward and backward.
enum class OutsideCheck : std::uint8_t {
  kVersions,  // by version counter, storage and offset; costs nothing
  kHashes,    // also by content; for debugging, not for training
};

// Chooses the reaction to a forward pass whose ops in a region match no shape of the plan.
//
// Note [Following a shape] A pass through a region follows one shape of the plan. A forward pass
// begins with the shape that the previous forward pass of the Recording followed, at first with the
// first shape. While other shapes have had the same ops since then, the region keeps every value
// that one of these shapes keeps. Once the ops determine the shape, the region drops the other
// values. After that, ops are compared with one shape only. If an op differs, the region switches
// to another shape that has had all ops of the region so far. Values that the new shape keeps and
// the region did not keep are recomputed. Bytes and counts therefore equal those of the shape that
// ran, unless the shape changes after the ops determined it.
//
// Note [Leaving the plan] A pass that runs the ops of no shape leaves its plan and continues. Its
// ops are aligned with the planned ops. Planned ops are treated as planned, extra ops are
// recomputed, and extra collectives are kept, because other ranks may not run them. Backward
// recomputes from the record, which does not depend on the plan, so the bits equal those of the
// step without the plan. Leaving the plan costs memory or recomputation. Such a pass ignores the
// plan's order of recomputation and its offloaded inputs.
enum class OnMismatch : std::uint8_t {
  kFollow,         // layers may depart from the plan; warns once for each region type (TORCH_WARN)
  kFollowQuietly,  // layers may depart from the plan; the caller reports Checkpoint::departures()
  kRefuse,         // throws StreamMismatch, for callers that must prove that counts are as planned
};

// Counts the passes through regions of one type, and how many of them left the plan. A pass counts
// for the type that it followed last.
struct Departures {
  int shape = 0;  // 0 for the plan's own shape; i for Plan::other_shapes[i - 1]
  int type = 0;   // index into the types of the shape
  std::int64_t passes = 0;
  std::int64_t left = 0;
  std::string region;            // region of the first pass that left the plan
  std::string first_difference;  // at that pass, for example "op 3: the plan expects aten::mm, the
                                 // model ran ..."
  std::int64_t extra_ops = 0;    // number of ops that ran and are not planned, over all passes
  std::int64_t missing_ops = 0;  // number of planned ops that did not run, over all passes
  Bytes kept_beyond_plan;        // maximum over all passes
};

// Whether a step hashes the results of ops, and compares the hashes of recomputed ops with the
// hashes in forward. For debugging only, because the step waits for the device after each op.
enum class Verify : std::uint8_t { kNothing, kRecomputedOps };

// The first recomputed op of a region whose results differ from the results in forward. Possible
// reasons: the op has state or random numbers that the record does not see, or a kernel changed the
// op's input and the engine did not see this write.
struct RecomputeDifference {
  std::string region;
  std::string op;
  std::size_t index = 0;  // index among the region's ops
};

class GatheredTensors;
class MoveObserver;

// The memory that stores hold, and the bytes that they have copied since
// Checkpoint::restart_host_counts().
struct StoreUse : HostMemory {
  Bytes in_use;
  std::int64_t allocations = 0;  // number of blocks ever allocated; steps reuse blocks
  bool operator==(const StoreUse&) const = default;
};

// A plan that is prepared to run: op names are looked up and regions are indexed. Immutable. One
// Checkpoint serves any number of recordings, on any thread. It owns the host memory of offloaded
// values, so a plan that offloads needs one Checkpoint for all steps. The constructor marks the ops
// that the plan's hidden effects name, for the whole process, so call it while no other thread
// records. It throws Refused if the plan has an op that cannot be recomputed. Under kRefuse it
// throws StreamMismatch if this LibTorch does not have an op of the plan.
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

  // The host memory of all recordings. Peak and copied bytes count from the last restart.
  StoreUse host_memory() const;
  bool offloads() const;
  void restart_host_counts() const;
  // Sets the observer of copies to and from the host and of waits for them; null for none. It must
  // outlive the steps that it observes. Must not be called while a step runs.
  void observe_moves(MoveObserver* observer) const;

  // One entry for each region type that ran, on any thread, since the Checkpoint was made.
  std::vector<Departures> departures() const;
  // The number of passes that left the plan. Costs one atomic read.
  std::int64_t num_left() const;

  // At most one difference for each region, from the recordings that verified.
  std::vector<RecomputeDifference> recompute_differences() const;

  // Parameters whose content may be missing between forward and backward: see record/gathered.h.
  GatheredTensors& gathered() const;

  struct Prepared;
  const std::shared_ptr<const Prepared>& prepared() const { return prepared_; }

 private:
  std::shared_ptr<const Prepared> prepared_;
};

// Whether a Recording has run regions of its plan. An evaluation opens scopes without grad mode,
// and runs none.
enum class RegionsRun : std::uint8_t { kSome, kNone, kNoneWithoutGrad };

// While this object lives, records forward passes on this thread as the plan says. Backward may run
// while the Recording lives or afterwards. A Recording may follow another. Several may be alive on
// one thread; the innermost takes effect. Outside regions, without grad mode, and inside backward,
// ops are not recorded.
class Recording {
 public:
  explicit Recording(const Checkpoint& checkpoint, Verify verify = Verify::kNothing);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends the recording early, and throws errors that the destructor would swallow. Examples are a
  // collective that is not waited for (Refused) and, under kRefuse, a region that ended before its
  // last planned op (StreamMismatch). Returns whether regions ran, because a step without regions
  // is legal.
  RegionsRun finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch
