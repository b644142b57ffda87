// The record of a region: every op that ran below autograd, with everything needed to run it again.
// A Recorder writes the record while the region is open. Replay (replay.h) reads it in backward.
//
// Note [Values, storages, versions] A value is one TensorImpl. Autograd keeps the impl that the
// dispatcher returned, so addresses identify tensors while the region is open. Weak references
// prevent the reuse of addresses. An in-place op creates no new value, but raises the version of
// the value's storage. A read is therefore a pair of value and version. Views are values that share
// a storage.
//
// Note [Hidden writes] A kernel may write to a result of the region through a raw pointer. The
// recorder finds such a hidden write in two cases. Either a version counter is higher than the
// recorded writes explain (increment_version, mark_dirty), or note_pointer_taken() was called
// (pointer_taken.h). The recorder then copies the storage and appends an op,
// rematch::restore_content, which writes the copy back in replay. Reads before and after the hidden
// write are therefore ordered as around any in-place op, and views see the write. The added op
// comes after all ops that were recorded before the write was found.
//
// The recorder compares counters when an op reads a tensor and when autograd saves one. A counter
// may also differ without a hidden write:
// - An in-place op raises the counter after it has returned.
// - Ops of Python's torch.library.custom_op raise the counter before they run.
// - A collective may raise the counter until its wait completes.
// - Tensors on one storage may have separate counters, and a write through one tensor raises only
//   the counter of that tensor.
// Inference tensors have no counter.
//
// Note [Held ops]
// Replay cannot repeat an op that writes into a list of tensors, into tensors inside and outside
// the region at once, or into a tensor that shares a result's data through .data. Such an op is
// called held, and counts as an op with a side effect. The record copies the content that the op
// wrote into the region's storages. Replay writes this copy back with rematch::restore_content.
//
// Note [Parts of sparse tensors] A sparse tensor has no storage of its own. Its parts are other
// tensors: values and indices. The record assigns a storage to the sparse tensor: the storage of
// its values, or that of its indices if only the indices were made in the region. A part that the
// record does not know yet is assigned the same storage. A part that already has another storage in
// the record is linked:
// - A write to the linked part also counts as a write to the sparse tensor, so that reads of both
//   are ordered.
// - If the linked part comes from outside the region, recompute must not write to it. Replay builds
//   the sparse tensor from a copy of the part, and rematch::restore_part updates the copy.
// - If the whole sparse tensor comes from outside the region, it is copied before one of its parts
//   is overwritten.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/engine/recompute_differences.h"
#include "harness/engine/record/gathered.h"
#include "harness/engine/record/kernel_context.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/outside.h"
#include "harness/engine/record/pointer_map.h"
#include "harness/engine/record/pointer_taken.h"
#include "harness/engine/recording.h"
#include "policies/base/id.h"
#include "policies/plan/treatment.h"

namespace rematch {

class Stash;

struct RecordedUse {
  std::int32_t value;
  std::int32_t version;    // the storage's version at the time of the read
  std::uint16_t argument;  // the argument's position in the schema
  OptionalIndex item;      // index in a tensor list; absent if the argument is a tensor
};

struct RecordedOp {
  const OpFacts* facts;
  c10::DispatchKeySet keys;  // dispatch keys below the interception point
  std::uint32_t first_argument;
  std::uint32_t first_use;
  std::uint32_t first_output;
  std::uint32_t num_uses;
  std::uint32_t num_outputs;
  std::int32_t context;                     // see Note [What kernels read]
  OptionalIndex generator_state;            // absent if the op draws no random numbers
  BasicOptionalIndex<std::int16_t> stream;  // absent if the op's device has no streams
  bool side_effect : 1;  // never recomputed, because it writes to an outside tensor
  bool in_place : 1;     // writes to a tensor of the region
  bool side_writes : 1;  // see Note [Side writes]
  bool held_writes : 1;  // see Note [Held ops]
  bool takes_parts : 1;  // makes a sparse tensor from outside tensors
};
static_assert(sizeof(RecordedOp) == 48, "keep RecordedOp small: a step records thousands of ops");

struct RecordedValue {
  OptionalIndex op;  // absent if the value comes from outside the region
  std::int32_t storage;
  // Values from outside the region, other than numbers, are held for the life of the record. Kept
  // results are held until their last use.
  at::Tensor kept;
  std::uint32_t kept_version = 0;  // version of `kept`, for a kept result
  // The outside tensor, if this value is an outside tensor or a view of one. Absent if the value
  // was made inside the region. A result of .data can count as an outside tensor although a value
  // of the region uses the same storage.
  OptionalIndex outside;
  // The tensor's version counter minus RecordedStorage::explained.
  std::uint32_t version_offset = 0;
  bool constant = false;    // kept because replay cannot compute it, and never freed by replay
  bool saved = false;       // autograd has saved the value
  bool from_empty = false;  // the value's op leaves the content undefined
  // A collective may have raised the version counter, so the next check must accept any version.
  bool has_any_version = false;
};

struct RecordedStorage {
  std::int32_t version = 0;  // number of in-place writes seen
  std::int32_t last_loud_version =
      0;                        // version after the last write that raised the version counter
  std::uint32_t explained = 0;  // number of counter increments caused by recorded writes
  bool outside = false;
  bool exposed = false;           // the program has taken a pointer to the storage
  const void* address = nullptr;  // address of the StorageImpl
};

struct RecordedWrite {
  std::int32_t op;
  std::int32_t storage;
  std::int32_t version;  // version of the storage after the write
};

// A write that the op's schema does not mark, and that happens only after the op was recorded. The
// op is an opaque call, or a collective that returns a handle.
struct RecordedWriteAhead {
  std::int32_t op;
  std::int32_t storage;
};

// A number that the program passed to an op, wrapped in a tensor. Stored as a scalar, because
// holding the tensor would use memory.
struct RecordedNumber {
  std::int32_t value;
  c10::Scalar number;
};

// A copy of an outside tensor's content at one version. The program has overwritten that version of
// the tensor, or may overwrite it unnoticed.
struct RecordedCopy {
  std::int32_t value;
  std::int32_t version;
  at::Tensor content;
};

// The constant `value` was copied before `op` overwrote it.
struct RecordedConstantCopy {
  std::int32_t op;
  std::int32_t value;
};

// A collective and the op that completes it; see Note [A collective and its wait].
struct RecordedWait {
  std::int32_t start;  // index of the op that starts the collective
  std::int32_t value;  // value that `start` returned
  OptionalIndex wait;  // the op that completes the collective; absent if it is not recorded yet
};

// The state of a CPU generator, stored as a plain Mersenne twister, because get_state() would
// allocate a tensor of 5,056 bytes for every op that draws.
struct CpuGeneratorState {
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};

// The state of a CUDA generator in a stream capture: how far the captured ops have advanced it.
struct CapturedGeneratorState {
  std::uint64_t offset;
};

struct GeneratorState {
  at::Generator generator;
  std::variant<CpuGeneratorState, CapturedGeneratorState, at::Tensor> state;
};

struct Record {
  std::vector<RecordedOp> ops;
  std::vector<c10::IValue> arguments;  // arguments of all ops; tensors are left out
  std::vector<RecordedUse> uses;
  std::vector<OptionalIndex>
      outputs;  // the value of each tensor output; absent if the output is undefined
  std::vector<RecordedValue> values;
  std::vector<RecordedStorage> storages;
  std::vector<OutsideTensor> outside_tensors;
  std::vector<RecordedWrite> writes;
  std::vector<RecordedWriteAhead> writes_ahead;
  // Ops that the recorder added: restored hidden writes, and views that an opaque call made. Only
  // replay runs these ops. See is_replay_only() (policies/trace/op_class.h).
  std::vector<std::int32_t> hidden_writes;
  std::vector<RecordedCopy> copies;
  std::vector<RecordedConstantCopy> constant_copies;
  std::vector<RecordedNumber> numbers;  // ascending
  std::vector<RecordedWait> waits;
  std::vector<KernelContext> contexts;  // contexts that ops ran under; usually one
  std::vector<GeneratorState> generator_states;
  std::vector<c10::Stream> streams;  // streams that ops ran on; usually one
  Stash* stash = nullptr;            // receives values that the plan stores; null in a trace
  OutsideCheck outside_check = OutsideCheck::kVersions;
  const GatheredTensors* gathered = nullptr;    // null if no tensors are gathered
  RecomputeDifferences* differences = nullptr;  // if null, results are not compared
  std::vector<std::uint64_t> result_hashes;  // hash of each op's results, if results are compared;
                                             // may be shorter than `ops`

  // The number of ops that the program ran. `ops` also contains the ops that the recorder added.
  std::size_t num_program_ops() const { return ops.size() - hidden_writes.size(); }
  // Converts an index among the ops that the program ran into an index in `ops`. Returns the size
  // of `ops` if the program ran too few ops.
  std::size_t program_op(std::size_t index) const;

  // Converts an index in `ops` into an index among the ops that the program ran.
  std::size_t program_index(std::int32_t op) const;

  // Returns whether the record keeps the value itself rather than a copy.
  bool shares_kept(std::int32_t value) const;

  // The copied content that `use` reads, or null if the content was not copied.
  const at::Tensor* copy_of(const RecordedUse& use) const;

  // Returns whether the op makes a sparse tensor from outside tensors only. The result is then a
  // view of them, although the schema does not declare this.
  bool makes_sparse_of_outside(const RecordedOp& op) const;

  // Returns the outside tensor that an op reads as `value`.
  at::Tensor outside_argument(std::int32_t value) const;

  // These functions return how the value's outside tensor has changed since an op read it, or since
  // autograd saved it. They return null if no change was found.
  const char* change_since_read(std::int32_t value) const;
  const char* change_since_saved(std::int32_t value) const;
  const char* change_of_gathered(const at::Tensor& held) const;
  const at::Tensor& outside_of(std::int32_t value) const;

  void clear();  // Clears the record and keeps its memory.
};

// Whether the record keeps the outputs of an op. kForever is for ops with side effects, because
// replay cannot compute their outputs.
struct Keep {
  enum class What : std::uint8_t { kNothing, kOutputs, kForever };
  What what = What::kNothing;
  Store store = Store::kDevice;  // where the outputs are kept under kOutputs

  static const Keep kNothing;
  static const Keep kOutputs;
  static const Keep kForever;
  bool operator==(const Keep&) const = default;
};
inline constexpr Keep Keep::kNothing = {};
inline constexpr Keep Keep::kOutputs = {What::kOutputs};
inline constexpr Keep Keep::kForever = {What::kForever};

// The use of a record. A trace is never replayed, so its record needs no copies for hidden writes
// and held ops.
enum class RecordUse : std::uint8_t { kReplay, kTrace };

// Writes a record while its region is open, on one thread.
//
// Note [Results of factories] Factories such as torch.empty, in Python and in <torch/torch.h>, turn
// the result of the op into a variable. A factory uses the result itself if nobody else holds the
// result or its version counter. Otherwise the factory makes a copy, which would be missing from
// the record. So the recorder keeps the result of a factory only after the variable exists.
//
// Note [Identities of dead tensors] A weak reference prevents the reuse of a dead tensor's address,
// and therefore of its TensorImpl's memory. If the recorder kept all weak references until the
// region ends, malloc could not recycle the memory of temporaries. So at each op the recorder
// checks one tensor and one storage, and drops the weak reference if the object has died.
class Recorder {
 public:
  // Starts an empty record. `region` is the region's name in errors.
  void open(Record* record, const std::string* region);
  // Drops the recorder's weak references to tensors and storages. The record itself stays valid.
  void close();

  // Runs the op through call_next() and appends it. Throws Refused if the op cannot be replayed. If
  // the op itself throws, the record stays unchanged.
  void run(const OpFacts& facts, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth, Keep keep);

  // Changes which outputs are kept, for ops that have already run. `keep` contains one entry for
  // each op of the program. Outputs that were already dropped stay dropped.
  void change_keep(const std::vector<Keep>& keep);

  void set_use(RecordUse use) { use_ = use; }

  // Implements note_pointer_taken() of pointer_taken.h.
  void note_pointer_taken(const at::Tensor& tensor, PointerUse use);

  // The functions below serve opaque_call.h.
  bool is_replayed() const { return use_ == RecordUse::kReplay; }
  // Call this before an unrecorded kernel writes to the tensor.
  void note_write_ahead(const at::Tensor& tensor);
  // Returns the results of an opaque call that are new to the record. `fresh` are in memory that
  // the call allocated. `views` are views of `fresh` tensors and of the region's values.
  struct UnseenResults {
    std::vector<at::Tensor> fresh;
    std::vector<at::Tensor> views;
  };
  UnseenResults unseen_results(const std::vector<at::Tensor>& results) const;
  // Appends an op that makes `view` from `base`. `view` must be new to the record. `base` must be a
  // value of the region.
  void append_view(const at::Tensor& base, const at::Tensor& view);

  // The size of the storage that the record has assigned to the value, in bytes.
  Bytes storage_bytes(std::int32_t value, const at::Tensor& tensor) const;

  // Returns the value of a tensor. Adds an unknown tensor as an outside value, and holds it.
  std::int32_t value_of(const at::Tensor& tensor);
  // Like value_of(), for a tensor that autograd saves.
  std::int32_t saved_value_of(const at::Tensor& tensor);

 private:
  void run_with_effects(RecordedOp& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
                        std::size_t depth, Keep keep);
  std::int32_t note_context();
  BasicOptionalIndex<std::int16_t> note_stream(const std::optional<c10::Stream>& stream);
  void note_arguments(const OpFacts& facts, const torch::jit::Stack& stack);
  void note_use(const at::Tensor& tensor, std::size_t argument, OptionalIndex item);
  void suspect(std::int32_t value, const at::Tensor& tensor);
  void note_hidden_writes(const OpFacts* next);
  bool is_explained(std::int32_t value, const at::Tensor& tensor, const OpFacts* next);
  bool is_unwritten_constant(std::int32_t storage);
  bool is_content_read(std::int32_t storage) const;
  bool has_exposed_content_changed(std::int32_t storage, c10::StorageImpl& impl);
  void append_hidden_write(std::int32_t value, const at::Tensor& tensor);
  void copy_constants(std::int32_t storage);
  void copy_constants_before_write(const RecordedOp& op, const RecordedUse& write);
  void drop_kept_values(std::int32_t storage);
  // Returns an op that only replay runs and that reads `tensor`. The caller fills in the other
  // fields.
  RecordedOp op_not_run(const OpFacts& facts, const at::Tensor& tensor);
  std::int32_t append_own_write(RecordedOp op, std::int32_t value);
  std::uint32_t pending_bumps(std::int32_t storage) const;
  void classify_writes(RecordedOp& op, const torch::jit::Stack& stack);
  void hold_writes();
  std::int32_t value_made_on(std::int32_t storage, std::int32_t otherwise) const;
  void copy_side_arguments(const RecordedOp& op, const torch::jit::Stack& stack);
  void copy_what_is_overwritten(const RecordedOp& op);
  void note_transfer(const OpFacts& facts, const torch::jit::Stack& stack);
  void copy_what_was_read(std::int32_t storage);
  bool is_outside(const RecordedUse& use) const;
  using VersionCounters = c10::SmallVector<c10::VariableVersion, 2>;
  VersionCounters counters_of_written(const RecordedOp& op, const torch::jit::Stack& stack) const;
  void note_writes(const RecordedOp& op, const VersionCounters& counters);
  void settle_writes();
  void note_written(OutsideTensor& outside, const RecordedValue& value) const;
  void note_outputs(RecordedOp& op, const torch::jit::Stack& stack, Keep keep);
  void note_output(RecordedOp& op, const at::Tensor& tensor, Keep keep);
  void keep_value(std::int32_t value, const at::Tensor& tensor, Keep keep);
  void put_in_store(std::int32_t value, Store store);
  void change_keep_of(std::int32_t value, Keep keep);
  void settle_factories();
  void note_start(const RecordedOp& op);
  void note_wait(RecordedOp& op, const torch::jit::Stack& stack);
  bool checks_hashes() const { return record_->outside_check == OutsideCheck::kHashes; }
  struct HashedArgument {
    std::uint16_t position;
    at::Tensor tensor;
    std::uint64_t hash;
  };
  using HashedArguments = std::vector<HashedArgument>;
  HashedArguments hash_unwritten(const RecordedOp& op, const torch::jit::Stack& stack) const;
  void check_unwritten(const RecordedOp& op, const HashedArguments& hashed) const;
  OptionalIndex outside_behind(const RecordedOp& op, std::int32_t storage) const;
  std::uint32_t offset_behind(const RecordedOp& op, std::int32_t storage) const;
  void note_detached(std::int32_t value, const at::Tensor& tensor);
  OptionalIndex detached_value(const at::Tensor& tensor);
  std::int32_t add_outside(const at::Tensor& tensor);
  void hold_outside(std::int32_t value, const at::Tensor& tensor);
  std::int32_t storage_of(const at::Tensor& tensor, bool outside);
  std::int32_t new_storage(c10::StorageImpl* address, bool outside);
  void add_address(c10::StorageImpl* address, std::int32_t storage);
  OptionalIndex known_storage(const at::Tensor& tensor) const;
  bool is_on(const at::Tensor& tensor, std::int32_t storage) const;

  // See Note [Parts of sparse tensors]. Each sparse tensor has one storage in the record. The
  // functions below handle its linked parts, which have other storages.
  std::int32_t storage_of_sparse(const at::Tensor& sparse, const std::vector<at::Tensor>& parts,
                                 bool outside);
  void link_parts(std::int32_t value, std::int32_t storage, const at::Tensor& sparse,
                  const std::vector<at::Tensor>& parts);
  void follow_new_parts(std::int32_t value, const at::Tensor& sparse);
  bool writes_part_of_outside(const RecordedOp& op, const RecordedUse& use) const;
  std::vector<std::int32_t> parts_written(const RecordedOp& op, const RecordedUse& use) const;
  // The storages that an op writes. `own` are the storages of its arguments; `all` also includes
  // the storages of the parts of sparse arguments.
  struct PartWrites {
    std::vector<std::int32_t> own;
    std::vector<std::int32_t> all;
  };
  PartWrites part_writes(const RecordedOp& op) const;
  void copy_before_part_writes(const RecordedOp& op);
  void note_part_writes(const RecordedOp& op);
  void note_linked_write(std::int32_t part, std::int32_t op, std::vector<std::int32_t> counted);
  bool restore_own_parts(std::int32_t value, const at::Tensor& tensor);
  void restore_outside_parts(const RecordedOp& op);
  void append_part_write(std::int32_t value, std::int32_t part, const at::Tensor& tensor);
  void keep_if_filled_by_pointer(std::int32_t unwritten, const at::Tensor& tensor);
  void forget_some_dead();

  // A write by the op that ran last. The recorder does not know yet whether the write raised the
  // tensor's version.
  struct UnsettledWrite {
    std::int32_t storage;
    std::int32_t version;            // version of the storage after the write
    std::int32_t last_loud_version;  // the storage's last_loud_version before this write
    c10::VariableVersion counter;
    std::uint32_t counter_before;

    // Returns whether the write raised the counter. An op raises the counter by one; any further
    // increase has another cause.
    bool is_loud() const {
      return counter.enabled() && counter.current_version() != counter_before;
    }
  };

  // A write of a held op (see Note [Held ops]) to a tensor on one of the region's storages.
  struct HeldWrite {
    std::int32_t value;
    at::Tensor tensor;
    c10::VariableVersion counter;
    std::uint32_t counter_before;
  };

  // A linked part of a sparse tensor: see Note [Parts of sparse tensors].
  struct LinkedPart {
    std::int32_t value;  // the sparse tensor
    std::int32_t part;   // index in parts_of()
    std::int32_t storage;
    at::Tensor outside;  // the part, if it comes from outside the region
    // A weak reference to the sparse tensor. Does not hold its version counter: see Note [Results
    // of factories].
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> sparse;
  };

  // See Note [Results of factories].
  struct UnkeptResult {
    std::int32_t value;
    Keep keep;
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
  };

  // A tensor to check for hidden writes: its version counter has changed, or the program has taken
  // a pointer to its storage.
  struct SuspectedTensor {
    std::int32_t value;
    at::Tensor tensor;
  };

  // A result of detach or of a similar op. Autograd gives the program a copy of the result, on the
  // same storage and version counter.
  struct DetachedValue {
    std::int32_t value;
    at::ScalarType dtype;
    at::Layout layout;
    std::int64_t storage_offset;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
  };

  // A storage that the program may write to through a raw pointer.
  struct ExposedStorage {
    std::int32_t storage;
    PointerUse use;
    at::Tensor content;  // copy from the last check; undefined before the first check
  };

  Record* record_ = nullptr;
  Recorder* outer_ = nullptr;  // the enclosing recorder on this thread, or null
  const std::string* region_ = nullptr;
  RecordUse use_ = RecordUse::kReplay;
  std::vector<SuspectedTensor> suspected_;
  std::vector<ExposedStorage> exposed_;
  std::vector<DetachedValue> detached_;
  PointerMap values_;
  PointerMap storages_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> tensor_identities_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storage_identities_;
  std::vector<LinkedPart> linked_parts_;
  std::vector<UnsettledWrite> unsettled_;
  std::vector<UnkeptResult> unkept_;
  std::vector<HeldWrite> held_writes_;  // writes of the op that is running
  bool has_aliases_ = false;     // an outside tensor shares a storage with a value of the region
  KernelContext context_;        // the context of the last op
  OptionalIndex context_index_;  // index in the record; absent if no op has run
  std::size_t next_tensor_ = 0;  // index of the weak reference to check next
  std::size_t next_storage_ = 0;
};

// Returns the storage version that backward reads, for an outside tensor that autograd saved at
// `version`. If a later write raised the version counter, returns `version`, because the saved
// tensor is stale. Otherwise returns the storage's last version, because autograd notices only
// writes that raise the counter.
inline std::int32_t version_for_backward(const RecordedStorage& storage, std::int32_t version) {
  return storage.last_loud_version <= version ? storage.version : version;
}

// The tensor's version counter; 0 for a tensor that has no counter.
inline std::uint32_t counted_version(const at::Tensor& tensor) {
  const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
  return counter.enabled() ? counter.current_version() : 0;
}

template <typename Number>
bool contains(const std::vector<Number>& numbers, Number number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

bool is_written(const RecordedOp& op, const RecordedUse& use);

// Returns whether some calls of the op write to this argument as in Note [Side writes]. This call
// may be one that does not.
bool is_side_argument(const OpFacts& facts, const RecordedUse& use);

// Returns all reads of the storage's present content that recompute may repeat. Leaves out ops that
// make views, because such ops read no content.
std::vector<RecordedUse> reads_of(const Record& record, std::int32_t storage);

// If `read` is of an outside tensor or of a view of one, copies the content that the op read.
void copy_outside(Record& record, const std::string& region, const RecordedUse& read);

// Returns whether this thread runs the kernel of an intercepted op.
bool is_in_kernel();

// The thread's open recorder, or null.
Recorder* open_recorder();

// Replaces the thread's open recorder. Returns the previous one.
Recorder* exchange_open_recorder(Recorder* recorder);

// Returns a detached tensor on the same storage. The result uses the version counter of `tensor`,
// or `counter` if given.
at::Tensor without_graph(const at::Tensor& tensor);
at::Tensor without_graph(const at::Tensor& tensor, const c10::VariableVersion& counter);

// Returns a text such as "float32 [2, 64]", for messages.
std::string describe_tensor(const at::Tensor& tensor);

}  // namespace rematch
