#include "policies/plan/treatment.h"

#include <catch2/catch.hpp>
#include <set>

namespace rematch {
namespace {

TEST_CASE(
    "the table of stores is indexed by the Store enumerator, and each store has a unique name and "
    "letter") {
  std::set<std::string_view> words = {to_string(Treatment::kRecompute)};
  std::set<char> letters = {'r'};
  for (std::size_t row = 0; row < kStores.size(); ++row) {
    const StoreTraits& store = kStores[row];
    CAPTURE(store.word);
    CHECK(static_cast<std::size_t>(store.store) == row);
    CHECK(words.insert(store.word).second);
    CHECK(letters.insert(store.letter).second);
    const bool is_device = store.store == Store::kDevice;
    CHECK((store.saved_key == nullptr) == is_device);
    CHECK((store.inputs_key == nullptr) == is_device);
    CHECK((store.at_least_key == nullptr) == is_device);
    CHECK((store.demanded_key == nullptr) == is_device);
  }
}

TEST_CASE("a kept value takes memory either on the device or on the host") {
  constexpr Bytes kBytes{640};
  for (const StoreTraits& store : kStores) {
    CHECK(store.device_bytes(kBytes) + store.host_bytes(kBytes) == kBytes);
  }
}

TEST_CASE("is_moved() is true for a value that is kept outside the device") {
  CHECK_FALSE(Treatment::kRecompute.is_kept());
  CHECK(Treatment::kSave.is_kept());
  CHECK_FALSE(Treatment::kSave.is_moved());
  CHECK(Treatment::kOffload.is_moved());
}

TEST_CASE("only results that are final can be kept on the host") {
  const StoreTraits& host = traits_of(Store::kHost);
  CHECK(host.can_hold("aten::mm"));
  CHECK_FALSE(host.can_hold("aten::empty.memory_format"));
  CHECK_FALSE(host.can_hold("_c10d_functional::all_reduce"));
  CHECK(traits_of(Store::kDevice).can_hold("aten::empty.memory_format"));
}

}  // namespace
}  // namespace rematch
