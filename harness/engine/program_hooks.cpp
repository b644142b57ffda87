#include "harness/engine/program_hooks.h"

#include <ATen/Functions.h>
#include <ATen/SavedTensorHooks.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "harness/engine/interception.h"

namespace rematch {
namespace {

using Hooks = std::unique_ptr<torch::autograd::SavedVariableHooks>;

std::atomic<IdentifyHooks> identify_hooks{nullptr};
std::atomic<TensorOf> tensor_of_object{nullptr};

// The comparison runs on the CPU, so in a large step only the first tensors are compared. If a pair
// of hooks changes bits, it changes bits of the first tensors too.
constexpr std::int64_t kBytesComparedOfPair = std::int64_t{64} << 20;

struct Verdict {
  HookTrust trust = HookTrust::kOnTrial;
  bool makes_contiguous = false;
  std::int64_t bytes_left = kBytesComparedOfPair;
};

std::mutex verdicts_mutex;
// Leaked, because threads may still run backward while the process ends.
std::unordered_map<std::int64_t, Verdict>& verdicts() {
  static auto* all = new std::unordered_map<std::int64_t, Verdict>;
  return *all;
}

Verdict verdict_on(std::int64_t id) {
  if (id < 0) return {.trust = HookTrust::kDecides};
  const std::lock_guard<std::mutex> lock(verdicts_mutex);
  return verdicts()[id];
}

bool takes_content_of(std::int64_t id, std::int64_t bytes) {
  const std::lock_guard<std::mutex> lock(verdicts_mutex);
  Verdict& verdict = verdicts()[id];
  if (bytes > verdict.bytes_left) return false;
  verdict.bytes_left -= bytes;
  return true;
}

void note_trial(std::int64_t id, bool is_equal, bool was_made_contiguous) {
  const std::lock_guard<std::mutex> lock(verdicts_mutex);
  Verdict& verdict = verdicts()[id];
  verdict.makes_contiguous |= was_made_contiguous;
  if (!is_equal) {
    verdict.trust = HookTrust::kDecides;
  } else if (verdict.trust == HookTrust::kOnTrial) {
    verdict.trust = HookTrust::kExact;
  }
}

void* address_of(const c10::SafePyObject& object) { return object.ptr(&object.pyinterpreter()); }

bool is_plain(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.has_storage() &&
         !tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Python);
}

// Returns whether pack() returned its argument, or another tensor on the same memory.
bool is_same_memory(const torch::autograd::SavedVariableHooks& hooks, const at::Tensor& tensor) {
  const TensorOf tensor_of = tensor_of_object.load(std::memory_order_relaxed);
  const auto data = hooks.retrieve_unpack_hook_data();
  if (tensor_of == nullptr || !data.has_value()) return false;
  auto* const packed = static_cast<c10::TensorImpl*>(tensor_of(address_of(data->second)));
  const c10::TensorImpl* const given = tensor.unsafeGetTensorImpl();
  if (packed == nullptr || packed == given) return packed != nullptr;
  return packed->has_storage() && given->has_storage() &&
         packed->unsafe_storage().unsafeGetStorageImpl() ==
             given->unsafe_storage().unsafeGetStorageImpl() &&
         packed->storage_offset() == given->storage_offset() && packed->sizes() == given->sizes() &&
         packed->strides() == given->strides() && packed->dtype() == given->dtype();
}

// Hides the ops of the program's hook from the recorder, because these ops do not belong to the
// region.
void pack_unseen(torch::autograd::SavedVariableHooks& hooks, const at::Tensor& tensor) {
  const c10::impl::ExcludeDispatchKeyGuard unseen(c10::DispatchKey::Fake);
  hooks.call_pack_hook(tensor);
}

class ProgramHooks final : public torch::autograd::SavedVariableHooks {
 public:
  ProgramHooks(const HookPair& pair, Hooks program, Hooks otherwise)
      : id_(pair.id),
        is_on_trial_(pair.trust == HookTrust::kOnTrial),
        program_(std::move(program)),
        otherwise_(std::move(otherwise)) {}

  void call_pack_hook(const at::Tensor& tensor) override {
    pack_unseen(*program_, tensor);
    const bool decides = id_ < 0;
    if (!decides && is_same_memory(*program_, tensor)) {
      program_.reset();
      otherwise_->call_pack_hook(tensor);
      return;
    }
    otherwise_.reset();
    is_on_trial_ = is_on_trial_ && is_plain(tensor);
    if (!is_on_trial_) return;
    sizes_ = tensor.sizes().vec();
    options_ = tensor.options();
    was_contiguous_ = tensor.is_contiguous();
    if (takes_content_of(id_, static_cast<std::int64_t>(tensor.nbytes()))) hash_ = hash_of(tensor);
  }

  at::Tensor call_unpack_hook() override {
    if (otherwise_ != nullptr) return otherwise_->call_unpack_hook();
    const at::Tensor unpacked = program_->call_unpack_hook();
    if (is_on_trial_) compare(unpacked);
    return unpacked;
  }

 private:
  void compare(const at::Tensor& unpacked) {
    const bool is_equal = unpacked.defined() && is_plain(unpacked) && unpacked.sizes() == sizes_ &&
                          unpacked.device() == options_.device() &&
                          unpacked.scalar_type() == c10::typeMetaToScalarType(options_.dtype()) &&
                          (!hash_.has_value() || hash_of(unpacked) == *hash_);
    note_trial(id_, is_equal, is_equal && !was_contiguous_ && unpacked.is_contiguous());
  }

  std::int64_t id_;
  bool is_on_trial_;
  Hooks program_;    // null if the plan decides what is kept
  Hooks otherwise_;  // null if the program's hooks hold the tensor
  std::vector<std::int64_t> sizes_;
  at::TensorOptions options_;
  bool was_contiguous_ = true;
  std::optional<std::uint64_t> hash_;
};

// Returns whether packing the value may free memory. Parameters, buffers and masks stay allocated
// even if they are packed.
bool may_be_freed(const Record& record, const RecordedValue& value) {
  const at::Tensor& kept = value.kept;
  if (!kept.defined() || value.constant || kept.requires_grad() || !is_plain(kept)) return false;
  if (kept.storage_offset() != 0 || kept.nbytes() != kept.storage().nbytes()) return false;
  if (value.op.has_value()) return version_of(kept) == value.kept_version;
  const auto shares_storage = [&](const RecordedValue& other) {
    return !other.op.has_value() && other.storage == value.storage;
  };
  if (std::count_if(record.values.begin(), record.values.end(), shares_storage) != 1) return false;
  const auto original =
      record.outside_tensors[static_cast<std::size_t>(*value.outside)].original.lock();
  return !original.defined() || !at::Tensor(original).is_leaf();
}

at::Tensor with_strides(const at::Tensor& tensor, const std::vector<std::int64_t>& strides) {
  if (tensor.strides() == strides) return tensor;
  return at::empty_strided(tensor.sizes(), strides, tensor.options()).copy_(tensor);
}

}  // namespace

void set_program_hooks(IdentifyHooks identify, TensorOf tensor_of) {
  identify_hooks.store(identify);
  tensor_of_object.store(tensor_of);
}

std::optional<HookPair> hooks_of_program(const std::optional<HookPair>& known) {
  const auto innermost = at::SavedTensorDefaultHooks::get_hooks();
  if (!innermost.has_value()) return std::nullopt;
  HookPair pair{.pack = address_of(innermost->first), .unpack = address_of(innermost->second)};
  if (known.has_value() && known->pack == pair.pack && known->unpack == pair.unpack) return known;
  const IdentifyHooks identify = identify_hooks.load(std::memory_order_relaxed);
  if (identify != nullptr) pair.id = identify(pair.pack, pair.unpack);
  pair.trust = verdict_on(pair.id).trust;
  return pair;
}

bool makes_contiguous(const HookPair& pair) { return verdict_on(pair.id).makes_contiguous; }

Hooks program_hooks(const HookPair& pair, Hooks otherwise) {
  return std::make_unique<ProgramHooks>(pair, hooks_of_engine_behind(), std::move(otherwise));
}

void PackedValues::pack(Record& record, const HookPair& pair) {
  makes_contiguous_ = rematch::makes_contiguous(pair);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < record.values.size(); ++i) {
    RecordedValue& value = record.values[i];
    if (!may_be_freed(record, value)) continue;
    Hooks hooks = hooks_of_engine_behind();
    pack_unseen(*hooks, value.kept);
    packed_.push_back({static_cast<std::int32_t>(i), value.kept.strides().vec(), std::move(hooks)});
    value.kept.reset();
  }
}

void PackedValues::unpack(Record& record) {
  if (packed_.empty()) return;
  const at::NoGradGuard no_grad;
  for (Packed& packed : packed_) {
    const at::Tensor unpacked = packed.hooks->call_unpack_hook();
    const UnseenGuard unseen;
    RecordedValue& value = record.values[static_cast<std::size_t>(packed.value)];
    value.kept = with_strides(without_graph(unpacked), packed.strides);
    value.kept_version = version_of(value.kept);
    if (!value.op.has_value()) {
      exchange_held(record.outside_tensors[static_cast<std::size_t>(*value.outside)], value.kept);
    }
  }
  packed_.clear();
}

}  // namespace rematch
