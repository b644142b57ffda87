#include "policies/replay/op_alignment.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/property.h"

namespace rematch::testing {
namespace {

using Ops = std::vector<std::int32_t>;

Ops count_to(int count) {
  Ops ops(static_cast<std::size_t>(count));
  std::iota(ops.begin(), ops.end(), 0);
  return ops;
}

// Returns the index in `planned` of each op that ran, or -1 for an extra op.
Ops align(const Ops& planned, const Ops& ran) {
  OpAlignment alignment(planned, 0);
  Ops found;
  for (const std::int32_t op : ran) {
    const OptionalIndex index = alignment.next(op);
    found.push_back(index.has_value() ? *index : -1);
  }
  return found;
}

constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();

// Returns the least cost of aligning the first `num_ran` ops with the first `num_planned` planned
// ops. The last op of the
// alignment is a match if `last` is 0, an extra op if it is 1, and a missing op if it is 2.
std::int64_t cost(const Ops& planned, const Ops& ran, std::size_t num_planned, std::size_t num_ran,
                  int last) {
  if (num_planned == 0 && num_ran == 0) return last == 0 ? 0 : kFar;
  const auto least = [&](std::size_t p, std::size_t r, std::int64_t after_match,
                         std::int64_t after_extra, std::int64_t after_missing) {
    return std::min({cost(planned, ran, p, r, 0) + after_match,
                     cost(planned, ran, p, r, 1) + after_extra,
                     cost(planned, ran, p, r, 2) + after_missing});
  };
  if (last == 0) {
    if (num_planned == 0 || num_ran == 0 || planned[num_planned - 1] != ran[num_ran - 1]) {
      return kFar;
    }
    return least(num_planned - 1, num_ran - 1, 0, 0, 0);
  }
  if (last == 1) return num_ran == 0 ? kFar : least(num_planned, num_ran - 1, 100, 80, 100);
  if (num_planned == 0) return kFar;
  return std::min(cost(planned, ran, num_planned - 1, num_ran, 0) + 100,
                  std::min(cost(planned, ran, num_planned - 1, num_ran, 1) + 100,
                           cost(planned, ran, num_planned - 1, num_ran, 2) + 1));
}

TEST_CASE("ops that run as planned align without edits") {
  CHECK(align(count_to(200), count_to(200)) == count_to(200));
}

TEST_CASE("one extra op is recognized at any position") {
  const Ops planned = count_to(100);
  for (std::ptrdiff_t place = 0; place <= 100; ++place) {
    for (const std::int32_t op : {-7, 0, 50, 99}) {
      if (place < 100 && planned[static_cast<std::size_t>(place)] == op) continue;
      const bool is_next = place + 1 < 100 && planned[static_cast<std::size_t>(place) + 1] == op;
      // skipped, because this extra op would be aligned with the next planned op
      if (is_next) continue;
      CAPTURE(place, op);
      Ops ran = planned;
      ran.insert(ran.begin() + place, op);
      Ops expected = planned;
      expected.insert(expected.begin() + place, -1);
      CHECK(align(planned, ran) == expected);
    }
  }
}

TEST_CASE("after consecutive missing ops, at most one op is misaligned") {
  const Ops planned = count_to(100);
  for (int length = 1; length <= 60; ++length) {
    CAPTURE(length);
    Ops ran = planned;
    ran.erase(ran.begin() + 10, ran.begin() + 10 + length);
    const Ops found = align(planned, ran);
    for (std::size_t i = 0; i < ran.size(); ++i) {
      if (i == 10 && length > 1) continue;
      CHECK(found[i] == ran[i]);
    }
  }
}

TEST_CASE("skip_to() can skip more ops than the window holds") {
  const Ops planned = count_to(300);
  OpAlignment alignment(planned, 10);
  for (int i = 0; i < 20; ++i) CHECK(!alignment.next(250 + i).has_value());
  alignment.skip_to(270);
  for (std::int32_t op = 270; op < 300; ++op) CHECK(alignment.next(op) == op);
  CHECK(alignment.num_extra() == 20);
  CHECK(alignment.num_missing() == 260);
}

TEST_CASE("every op after the end of the plan is extra") {
  const Ops planned = count_to(3);
  OpAlignment alignment(planned, 3);
  for (int i = 0; i < 10; ++i) CHECK(!alignment.next(i).has_value());
  CHECK(alignment.num_extra() == 10);
  CHECK(alignment.num_missing() == 0);
}

TEST_CASE("each op is classified as in the best alignment", "[property]") {
  check_property("least cost", [] {
    const Ops planned = *rc::gen::container<Ops>(6, rc::gen::inRange(0, 4));
    const Ops ran = *rc::gen::container<Ops>(5, rc::gen::inRange(0, 4));
    // Alignment starts only at an op that differs from the planned op.
    if (planned.front() == ran.front()) return;
    const Ops found = align(planned, ran);
    for (std::size_t num_ran = 1; num_ran <= ran.size(); ++num_ran) {
      std::int64_t least_match = kFar;
      std::int64_t least_extra = kFar;
      for (std::size_t place = 0; place <= planned.size(); ++place) {
        least_match = std::min(least_match, cost(planned, ran, place, num_ran, 0));
        least_extra = std::min(least_extra, cost(planned, ran, place, num_ran, 1));
      }
      const std::int32_t op = found[num_ran - 1];
      if (op == -1) {
        RC_ASSERT(least_extra < least_match);
      } else {
        const auto place = static_cast<std::size_t>(op) + 1;
        RC_ASSERT(cost(planned, ran, place, num_ran, 0) == least_match);
        RC_ASSERT(least_match <= least_extra);
      }
    }
  });
}

// Tests long plans, with a few consecutive ops added or left out at several places.
TEST_CASE("an edit misaligns at most two ops", "[property]") {
  check_property("few ops are matched with the wrong planned op", [](std::uint32_t seed) {
    std::mt19937 dice(seed);
    Ops planned(400);
    for (std::int32_t& op : planned) op = static_cast<std::int32_t>(dice() % 40);
    Ops ran;
    Ops truth;
    int num_edits = 0;
    for (std::size_t i = 0; i < planned.size(); ++i) {
      const bool is_edit = i > 0 && i % 60 == 0;
      if (is_edit) {
        ++num_edits;
        const auto length = static_cast<std::size_t>(1 + dice() % 12);
        if (dice() % 2 == 0) {
          i += length;
        } else {
          for (std::size_t j = 0; j < length; ++j) {
            ran.push_back(static_cast<std::int32_t>(100 + dice() % 5));
            truth.push_back(-1);
          }
        }
      }
      ran.push_back(planned[i]);
      truth.push_back(static_cast<std::int32_t>(i));
    }
    const Ops found = align(planned, ran);
    int num_wrong = 0;
    for (std::size_t i = 0; i < ran.size(); ++i) num_wrong += found[i] != truth[i] ? 1 : 0;
    RC_ASSERT(num_wrong <= 3 * num_edits);
  });
}

}  // namespace
}  // namespace rematch::testing
