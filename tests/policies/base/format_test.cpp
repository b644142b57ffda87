#include "policies/base/format.h"

#include "policies/base/format_apart.h"
#include "tests/support/catch.h"

namespace rematch {

TEST_CASE("bytes are printed with three digits and a fitting unit") {
  CHECK(format_bytes({0}) == "0 B");
  CHECK(format_bytes({1023}) == "1023 B");
  CHECK(format_bytes({1024}) == "1.00 KiB");
  CHECK(format_bytes({1536}) == "1.50 KiB");
  CHECK(format_bytes({100 << 20}) == "100 MiB");
  // 1023.999 KiB would round to 1024 KiB, so the next unit is used
  CHECK(format_bytes({(1 << 20) - 1}) == "1.00 MiB");
  CHECK(format_bytes({std::int64_t{25} << 29}) == "12.5 GiB");
  CHECK(format_bytes({std::int64_t{5000} << 40}) == "5000 TiB");
  CHECK(format_bytes({-2048}) == "-2.00 KiB");
}

TEST_CASE("durations are printed with three digits and a fitting unit") {
  using std::chrono::nanoseconds;
  CHECK(format_duration(nanoseconds(7)) == "7 ns");
  CHECK(format_duration(nanoseconds(12345)) == "12.3 us");
  CHECK(format_duration(nanoseconds(10000000)) == "10.0 ms");
  CHECK(format_duration(nanoseconds(999999999)) == "1.00 s");
  CHECK(format_duration(std::chrono::hours(1)) == "3600 s");
}

TEST_CASE("a percentage never rounds a difference to zero") {
  CHECK(format_percent(0) == "0 %");
  CHECK(format_percent(0.00001) == "under 0.1 %");
  CHECK(format_percent(-0.0312) == "3.1 %");
  CHECK(format_percent(0.412) == "41 %");
  CHECK(format_change(0) == "0");
  CHECK(format_change(-0.412) == "-41 %");
  CHECK(format_change(0.031) == "+3.1 %");
  CHECK(format_change(-0.0000001) == "<0.1 %");
}

TEST_CASE("a count per step is a whole number if the division is exact") {
  CHECK(format_per_step(600, 10) == "60");
  CHECK(format_per_step(0, 10) == "0");
  CHECK(format_per_step(605, 10) == "60.5");
  CHECK(format_per_step(5, 0) == "5.0");
}

TEST_CASE("text wraps at spaces and keeps long words whole") {
  CHECK(wrap("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrap("a longwordhere b", 4) == std::vector<std::string>{"a", "longwordhere", "b"});
  CHECK(wrap("held by 40 %, all", 10) == std::vector<std::string>{"held by", "40 %, all"});
  CHECK(wrap("step of 105 ms", 11) == std::vector<std::string>{"step of", "105 ms"});
  CHECK(wrap("of rank s", 8) ==
        std::vector<std::string>{
            "of rank",
            "s"});  // the line may break here, because "rank s" is not a number with a unit
  CHECK(wrap("", 10).empty());
  CHECK(wrap("  spaced   out ", 20) == std::vector<std::string>{"spaced out"});
}

TEST_CASE("two different amounts that would look equal side by side get more digits") {
  constexpr std::int64_t kKiB = 1024;
  CHECK(format_apart({196 * kKiB}, {195 * kKiB}) == "196 KiB");
  CHECK(format_apart({196 * kKiB}, {196 * kKiB}) == "196 KiB");
  CHECK(format_apart({196 * kKiB}, {196 * kKiB - 1}) == "196.000 KiB");
  CHECK(format_apart({196 * kKiB - 1}, {196 * kKiB}) == "195.999 KiB");
  CHECK(format_apart({(std::int64_t{100} << 40) + 1}, {std::int64_t{100} << 40}) ==
        "109951162777601 B");
}

}  // namespace rematch
