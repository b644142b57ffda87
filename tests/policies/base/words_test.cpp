#include "policies/base/words.h"

#include <cstdint>

#include "tests/support/catch.h"

namespace rematch {

enum class Fruit : std::uint8_t { kApple, kPear };

template <>
inline constexpr std::array<std::string_view, 2> kWords<Fruit> = {"apple", "pear"};

namespace {

enum class Unnamed : std::uint8_t { kFirst };

TEST_CASE("an enumerator converts to its word and back") {
  CHECK(to_string(Fruit::kPear) == "pear");
  CHECK(from_string<Fruit>("apple") == Fruit::kApple);
  CHECK_FALSE(from_string<Fruit>("plum").has_value());
  CHECK(kAll<Fruit> == std::array{Fruit::kApple, Fruit::kPear});
  CHECK(all_words<Fruit>() == std::vector<std::string_view>{"apple", "pear"});
  CHECK(Word<Fruit>);
  CHECK_FALSE(Word<Unnamed>);
}

}  // namespace
}  // namespace rematch
