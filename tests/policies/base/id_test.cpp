#include "policies/base/id.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <type_traits>
#include <unordered_set>

namespace rematch {
namespace {

using PlaneId = Id<struct PlaneTag>;
using TrainId = Id<struct TrainTag>;

static_assert(sizeof(PlaneId) == 4);
static_assert(!std::is_convertible_v<int, PlaneId> && !std::is_convertible_v<PlaneId, int>);
static_assert(!std::is_constructible_v<PlaneId, TrainId>);
static_assert(!std::is_invocable_v<std::less<>, PlaneId, TrainId>);
// An OptionalIndex is no larger than an index, so a table of them is as small as a table of
// indices.
static_assert(sizeof(OptionalIndex) == 4 && sizeof(BasicOptionalIndex<std::int16_t>) == 2);

TEST_CASE("an id can be incremented and two ids have a distance") {
  PlaneId id(3);
  CHECK(++id == PlaneId(4));
  CHECK(id++ == PlaneId(4));
  CHECK(id-- == PlaneId(5));
  CHECK(--id == PlaneId(3));
  CHECK(id + 2 - id == 2);
  CHECK(id - 1 < id);
  CHECK(to_string(id) == "3");
  std::ostringstream text;
  text << id;
  CHECK(text.str() == "3");
  CHECK(std::unordered_set<PlaneId>{id, id, PlaneId(4)}.size() == 2);
}

TEST_CASE("a table is indexed by its ids and returns the next id") {
  IdTable<PlaneId, std::string> names = {"zero", "one"};
  CHECK(names[PlaneId(1)] == "one");
  CHECK(names.at(PlaneId(0)) == "zero");
  CHECK_THROWS_AS(names.at(PlaneId(2)), std::out_of_range);
  CHECK_THROWS_AS(names.at(PlaneId(-1)), std::out_of_range);
  CHECK(names.contains(PlaneId(1)));
  CHECK_FALSE(names.contains(names.end_id()));
  CHECK_FALSE(names.contains(PlaneId(-1)));
  names.push_back("two");
  std::string all;
  for (const PlaneId id : names.ids()) all += names[id] + to_string(id);
  CHECK(all == "zero0one1two2");
  IdTable<PlaneId, bool> flags(2, false);
  flags[PlaneId(1)] = true;
  CHECK(flags == std::vector<bool>{false, true});
}

TEST_CASE("an absent index differs from the first index and sorts before it") {
  const OptionalIndex absent;
  const OptionalIndex first(0);
  CHECK_FALSE(absent.has_value());
  CHECK(first.has_value());
  CHECK(*first == 0);
  CHECK(absent == std::nullopt);
  CHECK(absent < first);
  CHECK(optional_id<PlaneId>(absent) == std::nullopt);
  CHECK(optional_id<PlaneId>(first) == PlaneId(0));
}

TEST_CASE("a list without duplicates returns the index of a new or known entry") {
  std::vector<std::string> list;
  CHECK(add_once(list, std::string("a")) == 0);
  CHECK(add_once(list, std::string("b")) == 1);
  CHECK(add_once(list, std::string("a")) == 0);
  CHECK(list == std::vector<std::string>{"a", "b"});
}

}  // namespace
}  // namespace rematch
