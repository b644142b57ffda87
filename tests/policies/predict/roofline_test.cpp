#include "policies/predict/roofline.h"

#include <tuple>

#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

// 1 GFLOP/s in float32 and 1 GB/s: a FLOP or a byte takes a nanosecond.
DeviceSheet slow_device() {
  DeviceSheet sheet;
  sheet.name = "slow";
  sheet.float32_flops_per_second = 1e9;
  sheet.bfloat16_flops_per_second = 4e9;
  sheet.memory_bytes_per_second = 1e9;
  return sheet;
}

std::size_t find_op(const Trace& trace, std::string_view name) {
  std::size_t index = 0;
  while (trace.ops.at(index).name != name) ++index;
  return index;
}

// [8, 16] by [16, 16]: the first mm is wq. Reads 512 + 1024 bytes and writes 512.
TEST_CASE("an op takes as long as its arithmetic or its bytes, whichever is longer") {
  Trace trace = testing::toy_llama({.layers = 2, .tokens = 8, .dim = 16});
  const std::size_t mm = find_op(trace, "aten::mm");
  CHECK(moved_bytes(trace, trace.ops[mm]) == Bytes{2048});
  trace.ops[mm].flops = 4096;
  CHECK(roofline_profile(trace, slow_device()).forward[mm].count() == 4096);
  trace.ops[mm].flops = 100;
  CHECK(roofline_profile(trace, slow_device()).forward[mm].count() == 2048);
}

TEST_CASE("views take nothing, and of a table what is looked up") {
  const Trace trace = testing::toy_llama({.layers = 2, .tokens = 8, .dim = 16, .vocab = 1000});
  const Profile profile = roofline_profile(trace, slow_device());
  CHECK(profile.forward[find_op(trace, "aten::t")].count() == 0);
  // 8 rows of 64 bytes read and written, and 8 indices of 8 bytes.
  CHECK(profile.forward[find_op(trace, "aten::embedding")].count() == 512 + 512 + 64);
}

TEST_CASE("backward takes twice forward, scope by scope, and a roofline says what it is") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Profile profile = roofline_profile(trace, slow_device());
  CHECK(profile.source == ProfileSource::kRoofline);
  CHECK_FALSE(profile_problem(profile, trace).has_value());
  const auto forward = static_cast<double>(profile.forward_time().count());
  CHECK(static_cast<double>(profile.backward_time().count()) ==
        Approx(2 * forward).epsilon(0.02));  // whole nanoseconds
}

// 10 float32 elements: 4 reads and 3 writes of 40 bytes. bfloat16: reads gradient 20, master and
// moments 120, writes parameter 20, master and moments 120.
TEST_CASE("an optimizer's step moves its state once each way") {
  Trace trace;
  trace.parameters = {{10, "float32", 1}};
  CHECK(optimizer_moved_bytes(trace) == Bytes{280});
  trace.parameters = {{10, "bfloat16", 2}};
  CHECK(optimizer_moved_bytes(trace) == Bytes{2 * 280});
}

TEST_CASE("data sheets are found by name, and unknown devices get the nearest") {
  for (const DeviceSheet& sheet : device_sheets()) {
    CAPTURE(sheet.name);
    CHECK(find_device_sheet(sheet.name) == &sheet);
    CHECK_FALSE(sheet.source.empty());
    CHECK(sheet.bfloat16_flops_per_second > sheet.float32_flops_per_second);
    CHECK(sheet.memory_bytes_per_second > sheet.pcie_bytes_per_second);
  }
  CHECK(find_device_sheet("h10") == nullptr);
  CHECK_THAT(unknown_device("h10").message,
             Catch::Contains("did you mean") && Catch::Contains("h100, h200, l40s, a100"));
}

TEST_CASE("a roofline's error is what was measured over it") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Profile roofline = roofline_profile(trace, slow_device());
  Profile measured = roofline;
  for (auto* times : {&measured.forward, &measured.backward}) {
    for (Profile::Duration& time : *times) time *= 3;
  }
  measured.optimizer *= 3;
  const RooflineError error = roofline_error(roofline, measured);
  CHECK(error.step_time_ratio == Approx(3));
  CHECK(error.median_op_ratio == Approx(3));
}

}  // namespace
// 80 GB would be 74.5 GiB, and 48 GB 44.7.
TEST_CASE("a device has the memory that its driver gives out, not the data sheet's gigabytes") {
  const auto gib = [](double number) { return Bytes{static_cast<std::int64_t>(number * 0x1p30)}; };
  const std::vector<std::tuple<const char*, Bytes, Bytes>> fits_and_does_not = {
      {"h100", gib(77.9), gib(79.5)},
      {"h200", gib(139), gib(141)},
      {"l40s", gib(44.3), gib(44.6)},
      {"a100", gib(79), gib(79.5)},
      {"b200", gib(178), gib(180)}};
  CHECK(fits_and_does_not.size() == device_sheets().size());
  for (const auto& [name, fits, exceeds] : fits_and_does_not) {
    CAPTURE(name);
    const DeviceSheet* sheet = find_device_sheet(name);
    REQUIRE(sheet != nullptr);
    CHECK(fits <= sheet->memory);
    CHECK(sheet->memory < exceeds);
    CHECK_THAT(std::string(sheet->source), Catch::Contains("memory"));
  }
}

}  // namespace rematch
