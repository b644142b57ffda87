#include "policies/predict/step/caching_allocator.h"

#include <stdexcept>

#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20;

struct Sizes {
  std::int64_t requested, allocated, reserved;
  bool operator==(const Sizes&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Sizes& sizes) {
  return out << sizes.requested << " " << sizes.allocated << " " << sizes.reserved;
}

Sizes sizes_of(const CachingAllocator& allocator) {
  return {allocator.requested().count, allocator.allocated().count, allocator.reserved().count};
}

Sizes alone(std::int64_t bytes) {
  CachingAllocator allocator;
  allocator.allocate(Bytes{bytes});
  return sizes_of(allocator);
}

// 512 bytes in 2 MiB; over 1 MiB from 20 MiB; from 10 MiB on a segment of its own, in 2 MiB, whose
// rest stays with the block where it is not over 1 MiB.
TEST_CASE("a first request takes a block of its size from a segment of its pool") {
  CHECK(alone(1) == Sizes{1, 512, 2 * kMib});
  CHECK(alone(0) == Sizes{0, 0, 0});
  CHECK(alone(kMib) == Sizes{kMib, kMib, 2 * kMib});
  CHECK(alone(kMib + 1) == Sizes{kMib + 1, kMib + 512, 20 * kMib});
  CHECK(alone(10 * kMib) == Sizes{10 * kMib, 10 * kMib, 10 * kMib});
  CHECK(alone(31200 * 1536 * 2) == Sizes{95846400, 96468992, 96468992});
  CHECK(alone(5200 * 1024 * 2) == Sizes{10649600, 10649600, 12582912});
}

TEST_CASE("a block that is free is used again, the smallest that fits first") {
  CachingAllocator allocator;
  const auto large = allocator.allocate(Bytes{16 * kMib});
  const auto larger = allocator.allocate(Bytes{32 * kMib});
  allocator.release(larger);
  allocator.release(large);
  CHECK(sizes_of(allocator) == Sizes{0, 0, 48 * kMib});
  allocator.allocate(Bytes{15 * kMib});  // 1 MiB is left: too little to be split off
  CHECK(sizes_of(allocator) == Sizes{15 * kMib, 16 * kMib, 48 * kMib});
  allocator.allocate(Bytes{4 * kMib});  // from the larger one, which is split
  CHECK(sizes_of(allocator) == Sizes{19 * kMib, 20 * kMib, 48 * kMib});
  allocator.allocate(Bytes{28 * kMib});
  CHECK(sizes_of(allocator) == Sizes{47 * kMib, 48 * kMib, 48 * kMib});
}

TEST_CASE("neighbours that are free become one block, and whole segments go back to the device") {
  CachingAllocator allocator;
  const auto first = allocator.allocate(Bytes{4 * kMib});
  const auto second = allocator.allocate(Bytes{4 * kMib});
  const auto third =
      allocator.allocate(Bytes{12 * kMib - 512});  // the rest of their segment, whole
  CHECK(sizes_of(allocator) == Sizes{20 * kMib - 512, 20 * kMib, 20 * kMib});
  allocator.release(first);
  allocator.release(third);
  allocator.release(second);
  const auto whole = allocator.allocate(Bytes{20 * kMib});
  CHECK(sizes_of(allocator) == Sizes{20 * kMib, 20 * kMib, 20 * kMib});
  const auto small = allocator.allocate(Bytes{1000});
  allocator.release(whole);
  allocator.empty_cache();  // what a small block stands in stays
  CHECK(sizes_of(allocator) == Sizes{1000, 1024, 2 * kMib});
  CHECK(allocator.peak_reserved() == Bytes{22 * kMib});
  allocator.reset_peaks();
  CHECK(allocator.peak_reserved() == Bytes{2 * kMib});
  allocator.release(small);
  CHECK_THROWS_AS(allocator.release(small), std::out_of_range);
}

}  // namespace
}  // namespace rematch
