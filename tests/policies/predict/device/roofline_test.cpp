#include "policies/predict/device/roofline.h"

#include <tuple>

#include "policies/predict/device/collective_time.h"
#include "policies/predict/step/step_range.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

// Makes a device with 1 GFLOP/s in float32 and 1 GB/s, so a FLOP or a byte takes a nanosecond.
DeviceSheet slow_device() {
  DeviceSheet sheet;
  sheet.name = "slow";
  sheet.float32_flops_per_second = 1e9;
  sheet.bfloat16_flops_per_second = 4e9;
  sheet.memory_bytes_per_second = 1e9;
  sheet.link_bytes_per_second = 1e8;
  return sheet;
}

std::size_t find_op(const Trace& trace, std::string_view name) {
  std::size_t index = 0;
  while (trace.ops.at(index).name != name) ++index;
  return index;
}

// The first mm is wq, [8, 16] by [16, 16]. It reads 512 + 1024 bytes and writes 512.
TEST_CASE("an op takes the longer of its arithmetic time and its memory time") {
  Trace trace = testing::toy_llama({.layers = 2, .tokens = 8, .dim = 16});
  const std::size_t mm = find_op(trace, "aten::mm");
  CHECK(moved_bytes(trace, trace.ops[OpId(mm)]) == Bytes{2048});
  trace.ops[OpId(mm)].flops = 4096;
  CHECK(roofline_profile(trace, slow_device()).forward[OpId(mm)].count() == 4096);
  trace.ops[OpId(mm)].flops = 100;
  CHECK(roofline_profile(trace, slow_device()).forward[OpId(mm)].count() == 2048);
}

TEST_CASE("views take no time, and an embedding costs only the rows that it reads") {
  const Trace trace = testing::toy_llama({.layers = 2, .tokens = 8, .dim = 16, .vocab = 1000});
  const Profile profile = roofline_profile(trace, slow_device());
  CHECK(profile.forward[OpId(find_op(trace, "aten::t"))].count() == 0);
  // 8 rows of 64 bytes are read and written, and 8 indices of 8 bytes are read
  CHECK(profile.forward[OpId(find_op(trace, "aten::embedding"))].count() == 512 + 512 + 64);
}

TEST_CASE("backward takes twice the time of forward in each scope") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Profile profile = roofline_profile(trace, slow_device());
  CHECK(profile.source == ProfileSource::kRoofline);
  CHECK_FALSE(profile_problem(profile, trace).has_value());
  const auto forward = static_cast<double>(profile.forward_time().count());
  CHECK(static_cast<double>(profile.backward_time().count()) ==
        Approx(2 * forward).epsilon(0.02));  // the tolerance covers rounding to whole nanoseconds
}

// Builds two blocks on four ranks of group `tp`: an all-gather of [4, 4] to [16, 4], and an
// all-reduce of [4, 4].
Trace communicating() {
  testing::TraceBuilder build("communicating");
  ValueId x = build.outside({4, 4}, "float32", true);
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = build.scope("blocks", layer);
    const ValueId part = build.call("aten::silu", {x}, {4, 4}, {{0}, {}});
    const ValueId whole = build.call("_c10d_functional::all_gather_into_tensor", {part}, {16, 4});
    build.trace().ops.back().group = "tp";
    build.wait(whole);
    x = build.call("aten::mm", {whole}, {4, 4}, {{0}, {}});
    x = build.call("_c10d_functional::all_reduce", {x}, {4, 4});
    build.trace().ops.back().group = "tp";
    build.wait(x);
  }
  Trace trace = build.finish();
  trace.dimensions["tp"] = 4;
  return trace;
}

TEST_CASE("a collective takes the time to send its bytes, and its wait takes no time") {
  const Trace trace = communicating();
  const Profile profile = roofline_profile(trace, slow_device());
  const std::size_t gather = find_op(trace, "_c10d_functional::all_gather_into_tensor");
  const std::size_t reduce = find_op(trace, "_c10d_functional::all_reduce");
  CHECK(sent_bytes(trace, trace.ops[OpId(gather)]) == Bytes{256 * 3 / 4});
  CHECK(sent_bytes(trace, trace.ops[OpId(reduce)]) == Bytes{2 * 64 * 3 / 4});
  CHECK_FALSE(sent_bytes(trace, trace.ops[OpId(gather + 1)]).has_value());
  CHECK(profile.forward[OpId(gather)].count() ==
        10 * 256 * 3 / 4);  // the link takes 10 ns per byte
  CHECK(profile.forward[OpId(reduce)].count() == 10 * 2 * 64 * 3 / 4);
  CHECK(profile.forward[OpId(gather + 1)].count() == 0);
}

TEST_CASE("the number of ranks is read from the group's dimension or from tensor shapes") {
  Trace trace = communicating();
  const TracedOp& gather =
      trace.ops[OpId(find_op(trace, "_c10d_functional::all_gather_into_tensor"))];
  const TracedOp& reduce = trace.ops[OpId(find_op(trace, "_c10d_functional::all_reduce"))];
  trace.dimensions.clear();
  CHECK(ranks_of(trace, gather) == 4);
  CHECK_FALSE(ranks_of(trace, reduce).has_value());
  CHECK(sent_bytes(trace, reduce)->count >= 2 * 64 - 1);
}

// The test gives every collective of backward 256 bytes.
TEST_CASE(
    "in backward, a collective costs its own bytes, and any other op costs twice its forward "
    "bytes") {
  Trace trace = communicating();
  std::int64_t on_link = 0;
  for (BackwardEvent& event : trace.backward) {
    const auto kind = collective_kind(event.op);
    if (!kind) continue;
    event.group = "tp";
    event.collective_bytes = Bytes{256};
    on_link += 10 * sent_bytes(*kind, Bytes{256}, 4).count;  // the link takes 10 ns per byte
  }
  REQUIRE(on_link > 0);
  const Profile profile = roofline_profile(trace, slow_device());
  std::int64_t computed = 0;
  for (const OpId op : trace.ops.ids()) {
    if (!collective_kind(trace.ops[op].name)) computed += 2 * profile.forward[op].count();
  }
  const std::int64_t backward = profile.backward_time().count();
  CHECK(backward <= on_link + computed);
  // Dividing the time of a scope among its ops rounds down to whole nanoseconds.
  CHECK(backward > on_link + computed - static_cast<std::int64_t>(profile.backward.size()));
  CHECK(communication_time(trace, profile).count() == on_link + 2 * 10 * (192 + 96));
}

TEST_CASE("gradients are summed over ranks before the optimizer runs") {
  Trace trace = communicating();
  const Profile without = roofline_profile(trace, slow_device());
  trace.gradient_sums = {{"_c10d_functional::all_reduce_", "tp", Bytes{800}}};
  const Profile with = roofline_profile(trace, slow_device());
  CHECK(with.gradient_sums.count() == 10 * 2 * 800 * 3 / 4);
  CHECK(with.optimizer == without.optimizer + with.gradient_sums);
  CHECK(communication_time(trace, with) == communication_time(trace, without) + with.gradient_sums);
}

TEST_CASE("collectives send as many bytes as ring algorithms") {
  using Kind = CollectiveKind;
  CHECK(sent_bytes(Kind::kAllReduce, Bytes{800}, 2) == Bytes{800});
  CHECK(sent_bytes(Kind::kAllReduce, Bytes{800}, 8) == Bytes{1400});
  CHECK(sent_bytes(Kind::kAllGather, Bytes{800}, 8) == Bytes{700});
  CHECK(sent_bytes(Kind::kReduceScatter, Bytes{800}, 1) == Bytes{0});
  CHECK(sent_bytes(Kind::kAllToAll, Bytes{800}, 4) == Bytes{600});
  CHECK(sent_bytes(Kind::kBroadcast, Bytes{800}, 4) == Bytes{800});
}

// float32: the step reads and writes the parameter and two moments, and reads the gradient: 7 times
// 40 bytes. bfloat16: it reads the gradient (20 bytes), and the master copy and moments (120). It
// writes the parameter (20), and the master copy and moments (120).
TEST_CASE("an optimizer step reads the optimizer's state once and writes it once") {
  Trace trace;
  trace.parameters = {{10, "float32", 1}};
  CHECK(optimizer_moved_bytes(trace) == Bytes{280});
  trace.parameters = {{10, "bfloat16", 2}};
  CHECK(optimizer_moved_bytes(trace) == Bytes{2 * 280});
}

TEST_CASE("data sheets are found by name, and unknown names get a suggestion") {
  for (const DeviceSheet& sheet : device_sheets()) {
    CAPTURE(sheet.name);
    CHECK(find_device_sheet(sheet.name) == &sheet);
    CHECK_FALSE(sheet.source.empty());
    CHECK(sheet.bfloat16_flops_per_second > sheet.float32_flops_per_second);
    CHECK(sheet.memory_bytes_per_second > sheet.pcie_bytes_per_second);
    CHECK(sheet.memory_bytes_per_second > sheet.link_bytes_per_second);
    CHECK(sheet.link_bytes_per_second >= sheet.pcie_bytes_per_second);
  }
  CHECK(find_device_sheet("h10") == nullptr);
  CHECK_THAT(unknown_device("h10").message,
             Catch::Contains("did you mean") && Catch::Contains("h100, h200, l40s, a100"));
}

TEST_CASE("the error of a roofline is the ratio of measured time to roofline time") {
  const Trace trace = testing::toy_llama({.layers = 2});
  const Profile roofline = roofline_profile(trace, slow_device());
  Profile measured = roofline;
  for (Profile::Duration& time : measured.forward) time *= 3;
  for (Profile::Duration& time : measured.backward) time *= 3;
  measured.optimizer *= 3;
  const RooflineError error = roofline_error(roofline, measured);
  CHECK(error.step_time_ratio == Approx(3));
  CHECK(error.median_op_ratio == Approx(3));
}

}  // namespace
// The advertised 80 GB and 48 GB would be 74.5 GiB and 44.7 GiB. Drivers report other sizes.
TEST_CASE("a device's memory is the size that its driver reports, not the size on the data sheet") {
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
