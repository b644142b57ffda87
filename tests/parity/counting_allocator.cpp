// Counts executed ops and the bytes of CPU tensors. counting.py loads this library into Python. The
// library counts at the same moments as the engine's tests: it uses a fallback at dispatch key Fake
// (see Note [Dispatch key Fake] in harness/engine/interception.h), and an allocator like the
// counting allocator in harness/measure.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "tests/parity/fingerprint.h"

namespace {

constexpr std::size_t kHeaderBytes = 64;
constexpr std::uint8_t kAllocatorPriority = 100;
constexpr c10::DispatchKeySet kBelowFake(c10::DispatchKeySet::FULL_AFTER, c10::DispatchKey::Fake);

// Unsynchronized, because Python's step runs on one thread, and backward of CPU tensors runs on the
// caller's thread.
std::int64_t current_bytes = 0;
std::int64_t baseline_bytes = 0;
std::int64_t peak_bytes = 0;
std::map<std::string, std::int64_t> executed;

void release(void* data) {
  if (data == nullptr) return;
  char* block = static_cast<char*>(data) - kHeaderBytes;
  current_bytes -= *reinterpret_cast<std::int64_t*>(block);
  c10::free_cpu(block);
}

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t num_bytes) override {
    if (num_bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    auto* block = static_cast<char*>(c10::alloc_cpu(num_bytes + kHeaderBytes));
    *reinterpret_cast<std::int64_t*>(block) = static_cast<std::int64_t>(num_bytes);
    current_bytes += static_cast<std::int64_t>(num_bytes);
    return {block + kHeaderBytes, block + kHeaderBytes, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t num_bytes) const override {
    default_copy_data(to, from, num_bytes);
  }
};

// Returns whether the op is bookkeeping of torch.utils.checkpoint, which detaches tensors and makes
// two empty tensors for each region.
bool belongs_to_checkpoint(const std::string& name, const torch::jit::Stack& stack) {
  if (name == "aten::detach") return true;
  return name == "aten::empty.memory_format" && stack.back().toTensor().numel() == 0;
}

void note(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  peak_bytes = std::max(peak_bytes, current_bytes - baseline_bytes);
  const c10::OperatorName& full = op.operator_name();
  const std::string name =
      full.overload_name.empty() ? full.name : full.name + "." + full.overload_name;
  if (!belongs_to_checkpoint(name, stack)) ++executed[name];
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  // A Python dispatch mode of selective checkpointing handles this call. The mode returns a stored
  // value, or calls the op again, which is counted below.
  if (keys.has(c10::DispatchKey::Python)) {
    op.redispatchBoxed(keys & kBelowFake, stack);
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard kernels_are_not_seen(c10::DispatchKey::Fake);
  op.redispatchBoxed(keys & kBelowFake, stack);
  note(op, *stack);
}

std::string returned;  // owns the text that the last call returned

}  // namespace

extern "C" {

void parity_install() {
  TORCH_CHECK(
      !c10::Dispatcher::singleton().hasBackendFallbackForDispatchKey(c10::DispatchKey::Fake),
      "this PyTorch already uses dispatch key Fake; the golden files need PyTorch 2.15");
  static auto* allocator = new CountingAllocator;
  c10::SetCPUAllocator(allocator, kAllocatorPriority);
  static auto* library =
      new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::Fake, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

void parity_start() {
  executed.clear();
  baseline_bytes = current_bytes;
  peak_bytes = 0;
  c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, true);
}

void parity_stop() { c10::impl::tls_set_dispatch_key_included(c10::DispatchKey::Fake, false); }

// Call this inside __torch_dispatch__ of a Python mode, to count the ops that __torch_dispatch__
// calls. torch excludes the dispatch key Fake there, and this function removes the exclusion.
void parity_see_ops_of_mode() {
  c10::impl::tls_set_dispatch_key_excluded(c10::DispatchKey::Fake, false);
}

std::int64_t parity_current_bytes() { return current_bytes - baseline_bytes; }
std::int64_t parity_peak_bytes() { return peak_bytes; }

// Returns lines of the form "name count".
const char* parity_executed() {
  returned.clear();
  for (const auto& [name, count] : executed) {
    returned += name + " " + std::to_string(count) + "\n";
  }
  return returned.c_str();
}

// Returns lines of the form "key value".
const char* parity_fingerprint() {
  returned.clear();
  for (const auto& [key, value] : rematch::parity_fingerprint()) {
    returned += key + " " + value + "\n";
  }
  return returned.c_str();
}
}
