// The model of LibTorch's caching allocator beside LibTorch's own, on the dry device.
#include <ATen/ops/empty.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <random>

#include "policies/predict/step/caching_allocator.h"
#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

class Both {
 public:
  Both() {
    at::empty({1}, options());  // the context
    real().emptyCache();
    before_ = real().getDeviceStats(0);
  }

  void allocate(std::int64_t bytes) {
    tensors_.push_back(at::empty({bytes}, options()));
    handles_.push_back(model_.allocate(Bytes{bytes}));
  }

  void release(std::size_t index) {
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(index));
    model_.release(handles_.at(index));
    handles_.erase(handles_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  void empty_cache() {
    real().emptyCache();
    model_.empty_cache();
  }

  void check() const {
    const auto now = real().getDeviceStats(0);
    const auto taken = [&](const auto& stat, const auto& stat_before) {
      return stat[0].current - stat_before[0].current;
    };
    REQUIRE(model_.requested().count == taken(now.requested_bytes, before_.requested_bytes));
    REQUIRE(model_.allocated().count == taken(now.allocated_bytes, before_.allocated_bytes));
    REQUIRE(model_.reserved().count == taken(now.reserved_bytes, before_.reserved_bytes));
  }

  std::size_t size() const { return tensors_.size(); }

 private:
  static at::TensorOptions options() {
    return at::TensorOptions().device(at::Device(at::kCUDA, 0)).dtype(at::kByte);
  }
  static c10::DeviceAllocator& real() { return *c10::getDeviceAllocator(at::kCUDA); }

  CachingAllocator model_;
  std::vector<at::Tensor> tensors_;
  std::vector<CachingAllocator::Handle> handles_;
  c10::CachingDeviceAllocator::DeviceStats before_;
};

// Sizes of all pools, a few of them again and again as those of layers are.
std::int64_t random_size(std::mt19937& generator) {
  const int kind = static_cast<int>(generator() % 4);
  const std::int64_t most[] = {4 << 10, 1 << 20, 12 << 20, 200 << 20};
  if (generator() % 2 == 0) return most[kind] - 1000;
  return static_cast<std::int64_t>(generator() % static_cast<std::uint64_t>(most[kind]));
}

TEST_CASE("the allocator's model takes and holds what LibTorch's does, whatever comes",
          "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(40); ++seed) {
    CAPTURE(seed);
    std::mt19937 generator(seed);
    Both both;
    for (int step = 0; step < 300; ++step) {
      const bool grows = both.size() == 0 || (both.size() < 40 && generator() % 5 < 3);
      if (grows) {
        both.allocate(random_size(generator));
      } else {
        both.release(generator() % both.size());
      }
      if (generator() % 100 == 0) both.empty_cache();
      CAPTURE(step);
      both.check();
    }
  }
}

}  // namespace
}  // namespace rematch
