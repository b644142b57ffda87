// Activation checkpointing for C++ LibTorch. While forward runs, the engine records a region's ops
// below autograd. When backward needs a value, the engine recomputes it from the recorded ops. The
// model needs no checkpoint() calls, and no graph is rebuilt. This header is the whole public API.
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

// Thrown under OnMismatch::kRefuse if the model's ops differ from the plan. The message names
// region, index, expected op and actual op.
struct StreamMismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Thrown if the model or the program does something after which the engine cannot guarantee equal
// bits: see Note [What the engine refuses]. The message names region, op and tensor, and says what
// to do instead.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Note [What the engine refuses]
// In a region, while forward runs:
// - replacing the data of a result of the region (set_data, x.data = y) after autograd saved it;
// - filling a tensor through a raw pointer a second time, after the first content was read;
// - a collective that the region does not wait for, or a planned collective that returns a handle;
// - ops on different streams of one device;
// - inference mode, and a Recording that begins inside the region.
//
// The program may have overwritten a tensor from outside the region, or replaced its data. Backward
// then throws Refused if autograd saved the tensor, or if an op that must be recomputed read its
// content. Details:
// - Making a view of the tensor, or a new tensor of the same sizes, reads no content.
// - Ops whose results backward does not need are not recomputed, so they cause no error.
// - If the region itself overwrites the tensor after an op read it, the engine copies it first.
// - If the traced step overwrote the tensor later in forward, the engine copies it too: see Note
//   [Watching writes] in write_watch.h.
// - A changed tensor that the plan offloads is always refused.
//
// Also refused:
// - reading a result that was overwritten after the region, if the result was filled through a raw
//   pointer or made by an op with a side effect, because recompute cannot make such a result again;
// - recompute of an op on a different stream from the op's stream in forward. Autograd runs
//   backward on the streams of forward, so this happens only if the program switches streams in
//   backward.
//
// Note [What the engine cannot see]
// - A write through .data or a raw pointer into a tensor from outside the region, or a replacement
//   of its storage's memory. OutsideCheck::kHashes detects both.
// - An op of another library that writes to an argument which its schema does not mark. kHashes and
//   tracing detect it. After a trace, records of the same process treat the argument as written.
// - An op of another library that has a state of its own, or that draws numbers without a generator
//   argument and without the tag nondeterministic_seeded. Verify::kRecomputedOps finds such ops.
// - A write through a raw pointer into a result of the region. The engine sees such a write only in
//   three cases: the tensor's version is raised after the write (increment_version, mark_dirty);
//   the tensor was made by `empty` and no op wrote to it; or note_pointer_taken() was called
//   (record/pointer_taken.h). The Python package calls this function for numpy(), data_ptr(),
//   __dlpack__ and Triton.
// - Kernels that give different bits each time. Use LibTorch's deterministic mode.

// How the engine detects changes of outside tensors between forward and backward.
enum class OutsideCheck : std::uint8_t {
  kVersions,  // by version counter, storage and offset; costs nothing
  kHashes,    // also by hashes of the content; slow, only for debugging
};

// How to react if the ops of a forward pass fit no shape of the plan.
//
// Note [Following a shape] A plan may have several shapes, for steps that run different ops. The
// first forward pass of a Recording begins with the first shape, and later passes begin with the
// shape of the previous pass. As long as the ops fit several shapes, the region keeps every value
// that one of these shapes keeps. Once the ops fit only one shape, the region drops the other
// values. If a later op does not fit, the region switches to another shape that fits all its ops so
// far. Values that only the new shape keeps are then recomputed. Without such a switch, memory use
// and op counts are as predicted for the shape that ran.
//
// Note [Leaving the plan] A pass whose ops fit no shape leaves its plan and continues. Its ops are
// aligned with the planned ops. Ops that match a planned op are kept or recomputed as planned.
// Extra ops are recomputed, except for extra collectives, which are kept because other ranks may
// not run them. Backward recomputes from the record, which does not depend on the plan, so the bits
// equal those of the step without the plan. Leaving the plan may cost memory or recomputation. Such
// a pass ignores the planned order of recomputation, and offloads no inputs.
enum class OnMismatch : std::uint8_t {
  kFollow,         // continues without the plan; warns once for each region type (TORCH_WARN)
  kFollowQuietly,  // continues without the plan; the caller reports Checkpoint::departures()
  kRefuse,         // throws StreamMismatch, for callers that verify predicted counts
};

// Counts the passes through regions of one type, and how many of them left the plan. A pass that
// switched shapes counts for the last shape.
struct Departures {
  int shape = 0;  // 0 for the plan's own shape; i for Plan::other_shapes[i - 1]
  int type = 0;   // index among the region types of the shape
  std::int64_t passes = 0;
  std::int64_t left = 0;
  // The region of the first pass that left the plan, and why it left: "op 3: the plan expects
  // aten::mm, the model ran ...".
  std::string region;
  std::string first_difference;
  std::int64_t extra_ops = 0;    // number of ops that ran unplanned, over all passes
  std::int64_t missing_ops = 0;  // number of planned ops that did not run, over all passes
  Bytes kept_beyond_plan;        // bytes kept beyond the plan; maximum over all passes
};

// kRecomputedOps compares the results of recomputed ops with the results in forward, by hashes.
// Only for debugging, because the step waits for the device after each op.
enum class Verify : std::uint8_t { kNothing, kRecomputedOps };

// The first recomputed op of a region whose results differ from the results in forward. Possible
// reasons: the op uses state or random numbers that the engine does not know, or a kernel changed
// the op's input unnoticed.
struct RecomputeDifference {
  std::string region;
  std::string op;
  std::size_t index = 0;  // index among the region's ops
};

class GatheredTensors;
class MoveObserver;

// The memory that stores use, and the bytes copied since Checkpoint::restart_host_counts().
struct StoreUse : HostMemory {
  Bytes in_use;
  std::int64_t allocations = 0;  // number of blocks allocated; later steps reuse them
  bool operator==(const StoreUse&) const = default;
};

// A plan that is prepared to run: op names are looked up and regions are indexed. Immutable. One
// Checkpoint serves any number of recordings, on any thread. It owns the host memory of offloaded
// values, so a plan that offloads needs one Checkpoint for all steps. The constructor declares the
// plan's hidden effects for the whole process, so no other thread may be recording. It throws
// Refused if the plan contains an op that cannot be recomputed. Under kRefuse it throws
// StreamMismatch if this LibTorch lacks an op of the plan.
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

  // The host memory of all recordings. The peak and the copied bytes are counted since
  // restart_host_counts().
  StoreUse host_memory() const;
  bool offloads() const;
  void restart_host_counts() const;
  // Sets the observer of copies to and from the host, and of waits for copies; null for none. The
  // observer must outlive the steps that it observes. Must not be called while a step runs.
  void observe_moves(MoveObserver* observer) const;

  // One entry for each region type that ran, on any thread, since the Checkpoint was made.
  std::vector<Departures> departures() const;
  // The number of passes that left the plan. Costs one atomic read.
  std::int64_t num_left() const;

  // At most one difference for each region, from recordings with Verify::kRecomputedOps.
  std::vector<RecomputeDifference> recompute_differences() const;

  // Parameters whose content may be missing between forward and backward: see record/gathered.h.
  GatheredTensors& gathered() const;

  struct Prepared;
  const std::shared_ptr<const Prepared>& prepared() const { return prepared_; }

 private:
  std::shared_ptr<const Prepared> prepared_;
};

// Whether a Recording has run regions of its plan. An evaluation opens scopes without grad mode, so
// it runs no regions.
enum class RegionsRun : std::uint8_t { kSome, kNone, kNoneWithoutGrad };

// While this object lives, forward passes on this thread follow the plan. Backward may run while
// the Recording lives, or afterwards. Recordings may nest on a thread; only the innermost takes
// effect. Outside regions, without grad mode, and inside backward, ops are not recorded.
class Recording {
 public:
  explicit Recording(const Checkpoint& checkpoint, Verify verify = Verify::kNothing);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // Ends the recording early, and throws errors that the destructor would swallow. Examples are a
  // collective without a wait (Refused) and, under kRefuse, a region that ended before its last
  // planned op (StreamMismatch). Returns whether any region ran. A step without regions is not an
  // error.
  RegionsRun finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch
