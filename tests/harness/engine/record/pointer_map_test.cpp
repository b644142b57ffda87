#include "harness/engine/record/pointer_map.h"

#include <cstdint>
#include <random>
#include <unordered_map>

#include "tests/support/catch.h"

namespace rematch {
namespace {

// There are few distinct keys, some close together and some far apart. Lookups therefore collide
// and wrap around the end of the table, and keys are erased between colliding keys.
const void* key_of(std::uint32_t number) {
  const std::uintptr_t spread = number % 2 == 0 ? 16 : 4096;
  return reinterpret_cast<const void*>(spread * (number + 1));
}

TEST_CASE(
    "a pointer map agrees with std::unordered_map after random insertions, erasures and clears") {
  constexpr std::uint32_t kNumKeys = 200;
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 generator(seed);
    PointerMap map;
    std::unordered_map<const void*, std::int32_t> expected;
    for (std::int32_t step = 0; step < 2000; ++step) {
      const void* key = key_of(static_cast<std::uint32_t>(generator()) % kNumKeys);
      const auto choice = generator() % 100;
      if (choice < 55) {
        map.set(key, step);
        expected[key] = step;
      } else if (choice < 99) {
        map.erase(key);
        expected.erase(key);
      } else {
        map.clear();
        expected.clear();
      }
    }
    for (std::uint32_t number = 0; number < kNumKeys; ++number) {
      const auto found = expected.find(key_of(number));
      CHECK(map.find(key_of(number)) == (found == expected.end() ? -1 : found->second));
    }
  }
}

}  // namespace
}  // namespace rematch
