#include "reports/render/charts/axis.h"

#include <cmath>
#include <limits>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/seeds.h"

namespace rematch::chart {
namespace {

std::vector<std::string> texts(const Axis& axis) {
  std::vector<std::string> all;
  for (const Tick& tick : axis.ticks) all.push_back(tick.text);
  return all;
}

}  // namespace

TEST_CASE("axes have round numbers of MiB or of milliseconds") {
  const Axis bytes = make_axis(Quantity::kBytes, 0, 38.8 * 1048576, 4);
  CHECK(bytes.unit == "MiB");
  CHECK(texts(bytes) == std::vector<std::string>{"0", "10", "20", "30", "40"});
  const Axis times = make_axis(Quantity::kDuration, 40.2e6, 41.1e6, 5);
  CHECK(times.unit == "ms");
  CHECK(texts(times) == std::vector<std::string>{"40.2", "40.4", "40.6", "40.8", "41.0", "41.2"});
}

TEST_CASE("a ratio axis has round numbers, or powers if its range is wide") {
  CHECK(texts(make_axis(Quantity::kRatio, 0.97, 1.05, 5)) ==
        std::vector<std::string>{"0.96", "0.98", "1.00", "1.02", "1.04", "1.06"});
  CHECK(texts(make_axis(Quantity::kRatio, 0.4, 3, 5)) ==
        std::vector<std::string>{"0.2", "0.5", "1", "2", "5"});
  CHECK(texts(make_axis(Quantity::kRatio, 0.02, 300, 5)) ==
        std::vector<std::string>{"0.01", "0.1", "1", "10", "100", "1000"});
  const Axis axis = make_axis(Quantity::kRatio, 0.1, 10, 5);
  CHECK(axis(0.5) - axis(0.25) == Catch::Detail::Approx(axis(4) - axis(2)));
  CHECK(axis(-3) == 0);
  CHECK_FALSE(axis.holds(-3));
}

TEST_CASE("each ratio axis is above 0 and includes its range", "[property]") {
  for (std::uint32_t seed = 0; seed < rematch::testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const double low = std::pow(10, static_cast<double>(random() % 1800) / 100 - 11);
    const double high = low * std::pow(10, static_cast<double>(random() % 400) / 100);
    const int most = 2 + static_cast<int>(random() % 8);
    const Axis axis = make_axis(Quantity::kRatio, low, high, most);
    CHECK(axis.low > 0);
    CHECK(axis.low <= low * (1 + 1e-6));
    CHECK(axis.high >= high * (1 - 1e-6));
    CHECK(axis.ticks.size() >= 2);
    CHECK(axis.ticks.size() <= static_cast<std::size_t>(most) + 2);
    for (std::size_t index = 1; index < axis.ticks.size(); ++index) {
      CHECK(axis.ticks[index].value > axis.ticks[index - 1].value);
    }
  }
  for (const double value : {0.0, -3.0, 1.0, 1e300, std::nan("")}) {
    const Axis axis = make_axis(Quantity::kRatio, value, value, 5);
    CHECK(axis.low > 0);
    CHECK(axis.low < axis.high);
  }
}

TEST_CASE("an interval far outside the others extends the axis only a little") {
  const std::vector<Estimate> usual = {{4, {3.8, 4.2}}, {5, {4.8, 5.2}}, {6, {5.8, 6.2}}};
  CHECK(range_of(usual, 2).low == 3.8);
  CHECK(range_of(usual, 2).high == 6.2);
  std::vector<Estimate> wide = usual;
  wide[1].interval = {
      0.1, 25};  // The values differ by 2, so an interval extends the range by at most 1.
  CHECK(range_of(wide, 2).low == 3);
  CHECK(range_of(wide, 2).high == 7);
  CHECK(range_of({{5, {4, 7}}}, 10).high == 7);  // the interval of a single value is shown in full
}

TEST_CASE("axes of counts have no fractions") {
  CHECK(texts(make_axis(Quantity::kCount, 0, 2, 8)) == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("a range with equal or infinite ends gives a valid axis") {
  for (const double value : {0.0, 5.0, 1e12, -3.0, std::nan("")}) {
    for (const Quantity quantity :
         {Quantity::kBytes, Quantity::kDuration, Quantity::kCount, Quantity::kNumber}) {
      const Axis axis = make_axis(quantity, value, value, 5);
      CHECK(axis.low < axis.high);
      CHECK(axis.ticks.size() >= 2);
    }
  }
  CHECK(make_axis(Quantity::kNumber, 0, std::numeric_limits<double>::infinity(), 5).high > 0);
}

TEST_CASE("each axis includes its range, and has a moderate number of rising ticks", "[property]") {
  for (std::uint32_t seed = 0; seed < rematch::testing::num_seeds(2000); ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const double size = std::pow(10, static_cast<double>(random() % 18));
    const double low = static_cast<double>(random() % 1000) * size / 500 - size * (seed % 2);
    const double high = low + static_cast<double>(random() % 1000) * size / 1000;
    const int most = 1 + static_cast<int>(random() % 9);
    const Axis axis = make_axis(static_cast<Quantity>(random() % 4), low, high, most);
    CHECK(axis.low <= low + 1e-6 * size);
    CHECK(axis.high >= high - 1e-6 * size);
    CHECK(axis.ticks.size() <= static_cast<std::size_t>(most) + 2);
    for (std::size_t index = 1; index < axis.ticks.size(); ++index) {
      CHECK(axis.ticks[index].value > axis.ticks[index - 1].value);
      CHECK(axis.ticks[index].text != axis.ticks[index - 1].text);
    }
  }
}

}  // namespace rematch::chart
