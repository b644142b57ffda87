// The record of a region: every op that ran below autograd, with what it takes to run it again.
// A Recorder writes it while the region is open; Replay (replay.h) reads it in backward.
//
// Note [Values, storages, versions]
// A value is one TensorImpl: autograd keeps the impl that the dispatcher returned, so addresses
// identify tensors while the region is open (weak references keep them from being reused). In-place
// ops make no new value; they raise the version of the value's storage, and a read is a pair of
// value and version. Views are values that share a storage.
//
// Note [Writes that no op made]
// A kernel may write to a result of the region through a raw pointer. The
// recorder finds such a write if a version counter moved further than the writes of ops explain
// (increment_version, mark_dirty), or if note_pointer_taken() was called (pointer_taken.h). It then
// copies the storage and appends an op of its own, rematch::restore_content, which writes the copy
// back. So reads before and after the write are ordered like those of any in-place op, and views
// see it. The write counts as one that ran after all ops that were recorded when it was found.
//
// Counters are compared when an op takes a tensor and when autograd saves one. A counter may differ
// without such a write: it is raised when an op in place has returned, by ops of Python's
// torch.library.custom_op before that, and by collectives until their wait is over; tensors on one
// storage may have counters of their own, which stay behind. Inference tensors have none.
//
// Note [Ops that are held]
// Replay cannot repeat an op that writes into a list of tensors, into tensors inside and outside
// the region at once, or into a tensor that shares a result's data through .data. Such an op counts
// as one with a side effect. The record copies what the op wrote into the region's own storages,
// and replay writes it back with rematch::restore_content.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/MT19937RNGEngine.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "harness/engine/offload/host_copy.h"
#include "harness/engine/recompute_differences.h"
#include "harness/engine/record/gathered.h"
#include "harness/engine/record/kernel_context.h"
#include "harness/engine/record/op_facts.h"
#include "harness/engine/record/outside.h"
#include "harness/engine/record/pointer_map.h"
#include "harness/engine/record/pointer_taken.h"
#include "harness/engine/recording.h"
#include "policies/base/id.h"

namespace rematch {

struct RecordedUse {
  std::int32_t value;
  std::int32_t version;    // of the value's storage, when it was read
  std::uint16_t argument;  // position in the schema
  OptionalIndex item;      // in a tensor list; absent: the argument itself
};

struct RecordedOp {
  const OpFacts* facts;
  c10::DispatchKeySet keys;  // below the interception point
  std::uint32_t first_argument;
  std::uint32_t first_use;
  std::uint32_t first_output;
  std::uint32_t num_uses;
  std::uint32_t num_outputs;
  std::int32_t context;                     // see Note [What kernels read]
  OptionalIndex generator_state;            // absent: draws nothing
  BasicOptionalIndex<std::int16_t> stream;  // absent: the op's device has none
  bool side_effect : 1;                     // is never repeated: writes to a tensor from outside
  bool in_place : 1;                        // writes to a tensor of the region
  bool side_writes : 1;                     // see Note [Side writes]
  bool held_writes : 1;                     // see Note [Ops that are held]
};
static_assert(sizeof(RecordedOp) == 48, "every step writes thousands of these");

struct RecordedValue {
  OptionalIndex op;  // absent: from outside the region
  std::int32_t storage;
  // Outside values but numbers: held for the record's life. Values of saved ops: until their last
  // use.
  at::Tensor kept;
  std::uint32_t kept_version = 0;  // of a saved op's value
  // The outside tensor that it is, or is a view of; absent: the region's own.
  OptionalIndex outside;
  // The tensor's version counter less the storage's `explained`.
  std::uint32_t version_offset = 0;
  bool constant = false;    // kept because replay cannot make it; never given away
  bool saved = false;       // by autograd
  bool from_empty = false;  // its op leaves the content undefined
  // A collective may have raised its version: what it is when next looked at is right.
  bool has_any_version = false;
};

struct RecordedStorage {
  std::int32_t version = 0;            // in-place writes seen
  std::int32_t last_loud_version = 0;  // after the last write that raised the tensor's version
  std::uint32_t explained = 0;         // what recorded writes raised version counters by
  bool outside = false;
  bool exposed = false;           // a pointer to it was taken
  const void* address = nullptr;  // of the StorageImpl
};

struct RecordedWrite {
  std::int32_t op;
  std::int32_t storage;
  std::int32_t version;  // of the storage, after the write
};

// A number of the program, which an op takes as a tensor. Written down: a tensor that the record
// held for it would take bytes.
struct RecordedNumber {
  std::int32_t value;
  c10::Scalar number;
};

// The content of an outside tensor at a version that is gone, or may be gone unnoticed.
struct RecordedCopy {
  std::int32_t value;
  std::int32_t version;
  at::Tensor content;
};

// A collective and the op that completes it; see Note [A collective and its wait].
struct RecordedWait {
  std::int32_t start;  // op
  std::int32_t value;  // that it returned
  OptionalIndex wait;  // op; absent: not yet
};

// The state that a generator was in. The CPU's is held as the plain Mersenne twister: get_state()
// would make a tensor of 5,056 bytes for every op that draws.
struct CpuGeneratorState {
  at::mt19937 engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};

struct GeneratorState {
  at::Generator generator;
  std::variant<CpuGeneratorState, at::Tensor> state;
};

struct Record {
  std::vector<RecordedOp> ops;
  std::vector<c10::IValue> arguments;  // tensors blanked
  std::vector<RecordedUse> uses;
  std::vector<OptionalIndex> outputs;  // value per tensor output; absent: undefined
  std::vector<RecordedValue> values;
  std::vector<RecordedStorage> storages;
  std::vector<OutsideTensor> outside_tensors;
  std::vector<RecordedWrite> writes;
  std::vector<std::int32_t> hidden_writes;  // ops of the recorder's own: writes that no op made,
                                            // and views that an opaque call made
  std::vector<RecordedCopy> copies;
  std::vector<RecordedNumber> numbers;  // ascending
  std::vector<RecordedWait> waits;
  std::vector<KernelContext> contexts;  // that ops ran under; mostly one
  std::vector<GeneratorState> generator_states;
  std::vector<c10::Stream> streams;  // that ops ran on; mostly one
  std::vector<HostCopy> host_copies;
  HostStore* host = nullptr;  // null: what is to be offloaded is kept on the device
  OutsideCheck outside_check = OutsideCheck::kVersions;
  const GatheredTensors* gathered = nullptr;    // null: none
  RecomputeDifferences* differences = nullptr;  // null: results are not compared
  std::vector<std::uint64_t> result_hashes;     // by op, where results are compared; may be shorter

  // Ops of the program; `ops` may have some of the recorder's own.
  std::size_t num_program_ops() const { return ops.size() - hidden_writes.size(); }
  // Where in `ops` an op of the program is; the size of `ops` if there is none.
  std::size_t program_op(std::size_t index) const;

  // The number of ops of the program before the op.
  std::size_t program_index(std::int32_t op) const;

  // Whether it keeps the value on the value's own storage, and not as a copy.
  bool shares_kept(std::int32_t value) const;

  // The content that was read, if it was copied.
  const at::Tensor* copy_of(const RecordedUse& use) const;

  // The tensor that an op reads if it takes a value from outside the region.
  at::Tensor outside_argument(std::int32_t value) const;

  // As change_of(), of the outside tensor that a value is or is a view of: for an op that read it,
  // and for autograd, which saved it.
  const char* change_since_read(std::int32_t value) const;
  const char* change_since_saved(std::int32_t value) const;
  const char* change_of_gathered(const at::Tensor& held) const;
  const at::Tensor& outside_of(std::int32_t value) const;

  void copy_to_host(std::int32_t value);
  void drop_host_copy(std::int32_t value);  // if there is one

  void clear();  // keeps the memory
};

// How to treat the outputs of the op that is about to run. kForever is for what replay cannot
// make: results of ops with side effects.
enum class Keep : std::uint8_t { kNothing, kOutputs, kOffload, kForever };

// A record that is never replayed ignores hidden writes, and holds no op.
enum class HiddenWrites : std::uint8_t { kNoted, kIgnored };

// Writes a record while its region is open, on one thread.
//
// Note [A factory may hand on another tensor]
// torch.empty and its like, of Python and of <torch/torch.h>, make a variable of what the op
// returned: the tensor itself while nobody else holds it or its version counter, else a copy, which
// the record would not know. What is to be kept of such an op is kept when it has become a
// variable.
//
// Note [Identities of the dead]
// A weak reference keeps a dead tensor's address from being used again, and with it the memory of
// the TensorImpl. Held to the end of the region, they would keep malloc from recycling what
// temporaries leave, so every op looks at one identity of each kind and forgets it if it has died.
class Recorder {
 public:
  // Starts an empty record. `region` names it in errors.
  void open(Record* record, const std::string* region);
  // Forgets every identity; the record stays with its owner.
  void close();

  // Runs the op through call_next() and appends it. Throws Refused for what cannot be replayed;
  // if the op itself throws, the record is as before.
  void run(const OpFacts& facts, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth, Keep keep);

  // Treats the outputs of the ops that have run as if they had been run with these treatments, one
  // for each op of the program. What was not kept is not kept now either.
  void change_keep(const std::vector<Keep>& keep);

  void set_hidden_writes(HiddenWrites hidden_writes) { hidden_writes_ = hidden_writes; }

  // See pointer_taken.h.
  void note_pointer_taken(const at::Tensor& tensor, PointerUse use);

  // For opaque_call.h.
  bool is_replayed() const { return hidden_writes_ == HiddenWrites::kNoted; }
  // A kernel that nobody records is about to write to the tensor.
  void note_write_ahead(const at::Tensor& tensor);
  // Tensors that the record does not know: those that hold the memory of the call, and in a record
  // that is replayed the views of them and of the region's values.
  struct UnseenResults {
    std::vector<at::Tensor> fresh;
    std::vector<at::Tensor> views;
  };
  UnseenResults unseen_results(const std::vector<at::Tensor>& results) const;
  // Appends an op that makes `view`, which is unknown, of `base`, a value of the region.
  void append_view(const at::Tensor& base, const at::Tensor& view);

  // The value of a tensor: one of the region's own, or an outside one, which is added and held.
  std::int32_t value_of(const at::Tensor& tensor);
  // The same, for a tensor that autograd saves.
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
  // An op of one argument that the program did not run and replay does, to be filled in.
  RecordedOp op_not_run(const OpFacts& facts, const at::Tensor& tensor);
  std::uint32_t pending_bumps(std::int32_t storage) const;
  void classify_writes(RecordedOp& op, const torch::jit::Stack& stack);
  void hold_writes();
  std::int32_t value_made_on(std::int32_t storage, std::int32_t otherwise) const;
  void check_may_be_written(const RecordedOp& op, const at::Tensor& tensor) const;
  void copy_side_arguments(const RecordedOp& op, const torch::jit::Stack& stack);
  void copy_what_is_overwritten(const RecordedOp& op);
  void copy_outside(const RecordedUse& read);
  bool is_outside(const RecordedUse& use) const;
  using VersionCounters = c10::SmallVector<c10::VariableVersion, 2>;
  VersionCounters counters_of_written(const RecordedOp& op, const torch::jit::Stack& stack) const;
  void note_writes(const RecordedOp& op, const VersionCounters& counters);
  void settle_writes();
  void note_written(OutsideTensor& outside, const RecordedValue& value) const;
  void note_outputs(RecordedOp& op, const torch::jit::Stack& stack, Keep keep);
  void note_output(RecordedOp& op, const at::Tensor& tensor, Keep keep);
  void keep_value(std::int32_t value, const at::Tensor& tensor, Keep keep);
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
  void follow_new_values(std::int32_t value, const at::Tensor& tensor);
  void keep_if_filled_by_pointer(std::int32_t unwritten, const at::Tensor& tensor);
  void forget_some_dead();

  // A write of the op that ran last. Whether it raised its tensor's version is not known yet.
  struct UnsettledWrite {
    std::int32_t storage;
    std::int32_t version;            // of the storage, after it
    std::int32_t last_loud_version;  // before it
    c10::VariableVersion counter;
    std::uint32_t counter_before;

    // An op raises the version of what it writes by one. A larger change has another cause.
    bool is_loud() const {
      return counter.enabled() && counter.current_version() != counter_before;
    }
  };

  // A tensor on one of the region's storages, which an op that is held writes to.
  struct HeldWrite {
    std::int32_t value;
    at::Tensor tensor;
    c10::VariableVersion counter;
    std::uint32_t counter_before;
  };

  // See Note [A factory may hand on another tensor].
  struct UnkeptResult {
    std::int32_t value;
    Keep keep;
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
  };

  // A tensor whose version counter or exposed storage asks for a closer look.
  struct SuspectedTensor {
    std::int32_t value;
    at::Tensor tensor;
  };

  // Autograd hands on a copy of what detach returned, on the same storage and version counter.
  struct DetachedValue {
    std::int32_t value;
    at::ScalarType dtype;
    std::int64_t storage_offset;
    std::vector<std::int64_t> sizes;
    std::vector<std::int64_t> strides;
  };

  // A storage that the program may write to through a pointer for as long as it likes.
  struct ExposedStorage {
    std::int32_t storage;
    PointerUse use;
    at::Tensor content;  // when it was last looked at; undefined: not yet
  };

  Record* record_ = nullptr;
  Recorder* outer_ = nullptr;  // the thread's open one before this
  const std::string* region_ = nullptr;
  HiddenWrites hidden_writes_ = HiddenWrites::kNoted;
  std::vector<SuspectedTensor> suspected_;
  std::vector<ExposedStorage> exposed_;
  std::vector<DetachedValue> detached_;
  PointerMap values_;
  PointerMap storages_;
  std::vector<c10::weak_intrusive_ptr<c10::TensorImpl>> tensor_identities_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> storage_identities_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> never_written_;  // of sparse tensors
  std::vector<UnsettledWrite> unsettled_;
  std::vector<UnkeptResult> unkept_;
  std::vector<HeldWrite> held_writes_;  // of the op that runs
  bool has_aliases_ = false;            // outside tensors on storages of the region's own
  KernelContext context_;               // of the op that ran last
  OptionalIndex context_index_;         // in the record; absent: no op has run
  std::size_t next_tensor_ = 0;         // to be looked at
  std::size_t next_storage_ = 0;
};

// The version at which backward reads an outside tensor that was saved at `version`. Autograd does
// not notice writes that leave the tensor's version as it was, and reads what they left; any other
// makes the saved tensor stale, and the result lower than the storage's version.
inline std::int32_t version_for_backward(const RecordedStorage& storage, std::int32_t version) {
  return storage.last_loud_version <= version ? storage.version : version;
}

// The tensor's version; 0 for one that has no counter.
inline std::uint32_t counted_version(const at::Tensor& tensor) {
  const c10::VariableVersion& counter = tensor.unsafeGetTensorImpl()->version_counter();
  return counter.enabled() ? counter.current_version() : 0;
}

// Of aten::detach.
const OpFacts& detach_facts();

bool is_written(const RecordedOp& op, const RecordedUse& use);

// Whether it is an argument of Note [Side writes], written in this call or not.
bool is_side_argument(const OpFacts& facts, const RecordedUse& use);

// Whether this thread runs the kernel of an op that was intercepted.
bool is_in_kernel();

// The thread's open recorder; null: none.
Recorder* open_recorder();

// Replaces the thread's open recorder. Returns the previous one.
Recorder* exchange_open_recorder(Recorder* recorder);

// A tensor on the same storage and version counter, without its graph; or with another counter.
at::Tensor without_graph(const at::Tensor& tensor);
at::Tensor without_graph(const at::Tensor& tensor, const c10::VariableVersion& counter);

// "float32 [2, 64]", for messages.
std::string describe_tensor(const at::Tensor& tensor);

}  // namespace rematch
