#include "harness/measure/memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <thread>
#include "tests/support/catch.h"

namespace rematch {
namespace {

std::int64_t cpu_bytes() { return current_cpu_memory().total.count; }
std::int64_t meta_bytes() { return current_meta_memory().total.count; }

const auto kMeta = at::TensorOptions().device(at::kMeta);

TEST_CASE("CPU bytes are the requested bytes of live tensors") {
  install_counting_allocators();
  const std::int64_t before = cpu_bytes();
  {
    const at::Tensor a = at::empty({10, 10});        // 400 bytes
    const at::Tensor view = a.view({100});           // a view allocates nothing
    const at::Tensor b = at::empty({3}, at::kLong);  // 24 bytes
    CHECK(cpu_bytes() - before == 424);
  }
  CHECK(cpu_bytes() == before);
}

TEST_CASE("meta tensors of any size are counted without memory") {
  install_counting_allocators();
  const std::int64_t before = meta_bytes();
  {
    // 2^20 x 2^20 floats are 4 TiB.
    const at::Tensor huge = at::empty({1 << 20, 1 << 20}, kMeta);
    CHECK(meta_bytes() - before == std::int64_t{1} << 42);
  }
  CHECK(meta_bytes() == before);
}

TEST_CASE("rounding applies to every block, like the granularity of a caching allocator") {
  install_counting_allocators(512);
  const std::int64_t before = meta_bytes();
  {
    const at::Tensor a = at::empty({1}, kMeta);    // 4 bytes, rounded to 512
    const at::Tensor b = at::empty({129}, kMeta);  // 516 bytes, rounded to 1024
    install_counting_allocators(1);
    CHECK(meta_bytes() - before == 1536);
  }
  CHECK(meta_bytes() == before);  // a block keeps its rounded size until it is freed
}

TEST_CASE("the peak includes memory freed between two samples, and can be reset") {
  install_counting_allocators();
  const std::int64_t before = cpu_bytes();
  reset_memory_peaks();
  { const at::Tensor gone = at::empty({250}); }
  CHECK(cpu_bytes() == before);
  CHECK(peak_cpu_memory().count - before == 1000);
  reset_memory_peaks();
  CHECK(peak_cpu_memory().count == before);
}

TEST_CASE(
    "a memory block has the tag that the allocating thread has set, until the block is retagged") {
  install_counting_allocators();
  const MemorySample before = current_cpu_memory();
  at::Tensor weight;
  {
    const MemoryTagGuard tag(MemoryTag::kParameter);
    weight = at::empty({5});
    std::thread other([] { const at::Tensor untagged = at::empty({7}); });
    other.join();
  }
  const auto grown = [&](MemoryTag tag) {
    return current_cpu_memory().at(tag).count - before.at(tag).count;
  };
  CHECK(grown(MemoryTag::kParameter) == 20);
  CHECK(grown(MemoryTag::kOther) == 0);

  c10::StorageImpl& storage = *weight.storage().unsafeGetStorageImpl();
  CHECK(retag_storage(storage, MemoryTag::kOther, MemoryTag::kForward).count == 0);
  CHECK(grown(MemoryTag::kParameter) == 20);
  CHECK(retag_storage(storage, MemoryTag::kParameter, MemoryTag::kGradient).count == 20);
  CHECK(grown(MemoryTag::kParameter) == 0);
  CHECK(grown(MemoryTag::kGradient) == 20);
  weight.reset();
  CHECK(grown(MemoryTag::kGradient) == 0);
}

TEST_CASE(
    "LibTorch's kernels work with the counting allocators, even where bf16 matmul allocates raw "
    "memory") {
  install_counting_allocators();
  const auto bf16 = at::TensorOptions().dtype(at::kBFloat16);
  const at::Tensor product = at::mm(at::ones({64, 64}, bf16), at::ones({64, 64}, bf16));
  CHECK(product[0][0].item<float>() == 64.0F);
}

TEST_CASE("the error for a failed allocation gives the requested bytes") {
  install_counting_allocators();
  const std::int64_t before = cpu_bytes();
  try {
    at::empty({std::int64_t{1} << 58});  // the tensor would take 2^60 bytes
    FAIL("this machine has allocated an exbibyte");
  } catch (const OutOfMemory& error) {
    CHECK(error.requested.count == std::int64_t{1} << 60);
    CHECK(error.alive.count == before);
  }
  CHECK(cpu_bytes() == before);
}

TEST_CASE("the counted bytes remain correct if storage is resized or moved") {
  install_counting_allocators();
  const std::int64_t before = cpu_bytes();
  {
    at::Tensor grows = at::zeros({2});
    grows.resize_({100});
    CHECK(cpu_bytes() - before == 400);
  }
  CHECK(cpu_bytes() == before);
}

TEST_CASE(
    "after the memory tags are forgotten, every block counts as kOther, even if it is later freed "
    "or retagged") {
  install_counting_allocators();
  const MemorySample before = current_cpu_memory();
  at::Tensor first;
  at::Tensor second;
  {
    const MemoryTagGuard tag(MemoryTag::kParameter);
    first = at::empty({64});
    second = at::empty({64});
  }
  const auto risen = [&](MemoryTag tag) {
    return current_cpu_memory().at(tag).count - before.at(tag).count;
  };
  CHECK(risen(MemoryTag::kParameter) == 512);
  forget_memory_tags();
  CHECK(current_cpu_memory().at(MemoryTag::kParameter) == Bytes{});
  CHECK(current_cpu_memory().at(MemoryTag::kOther) == current_cpu_memory().total);
  first.reset();
  CHECK(current_cpu_memory().at(MemoryTag::kParameter) == Bytes{});
  const c10::StorageImpl& storage = *second.storage().unsafeGetStorageImpl();
  CHECK(retag_storage(storage, MemoryTag::kParameter, MemoryTag::kFrozen) == Bytes{});
  CHECK(retag_storage(storage, MemoryTag::kOther, MemoryTag::kFrozen) == Bytes{256});
  CHECK(current_cpu_memory().at(MemoryTag::kFrozen) == Bytes{256});
  second.reset();
  CHECK(current_cpu_memory().at(MemoryTag::kFrozen) == Bytes{});
}

}  // namespace
}  // namespace rematch
