#include "policies/search/front/hypervolume.h"

#include <cstddef>
#include <vector>

#include "tests/support/catch.h"

namespace rematch {
namespace {

// (7, 9) is dominated, and (12, 1) is beyond the reference (10, 10). The other points add
// rectangles of 12, 12 and 3, so the area is 27 of 100.
TEST_CASE("hypervolume is a sum of rectangles") {
  CHECK(hypervolume_ratio({{9, 2}, {4, 8}, {12, 1}, {7, 9}, {6, 5}}, {10, 10}) == Approx(0.27));
  CHECK(hypervolume_ratio({}, {10, 10}) == 0);
}

TEST_CASE("spread_points() chooses both ends first, and then the points that add the most area") {
  const std::vector<PlanePoint> front = {{0, 100}, {1, 50}, {50, 49}, {99, 48}, {100, 0}};
  CHECK(spread_points(front, 2) == std::vector<std::size_t>{0, 4});
  CHECK(spread_points(front, 3) == std::vector<std::size_t>{0, 1, 4});
  CHECK(spread_points(front, 9).size() == 5);
  CHECK(knee_of(front) == 1);
}

}  // namespace
}  // namespace rematch
