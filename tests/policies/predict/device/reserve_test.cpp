#include "policies/predict/device/reserve.h"

#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

constexpr Bytes kGiB{std::int64_t{1} << 30};

// The device has 8 GiB. The context takes 0.5 GiB and two communicators take 1.5 GiB. Of the
// remaining 6 GiB, tensors take 4 GiB, and fragmentation takes half as much, 2 GiB.
TEST_CASE("the reserve of a card covers context, communicators and fragmentation") {
  DeviceSheet sheet;
  sheet.reserve = {Bytes{kGiB.count / 2}, Bytes{kGiB.count * 3 / 4}, 0.5};
  const MemoryReserve reserve = usual_reserve(&sheet, Bytes{8 * kGiB.count}, 2);
  CHECK(reserve.context == Bytes{kGiB.count / 2});
  CHECK(reserve.communicators == Bytes{kGiB.count * 3 / 2});
  CHECK(reserve.fragmentation == Bytes{2 * kGiB.count});
  CHECK(reserve.total() == Bytes{4 * kGiB.count});
  CHECK(usual_reserve(&sheet, Bytes{kGiB.count}, 8).fragmentation == Bytes{});
}

TEST_CASE("a requested reserve replaces the default reserve") {
  MemoryReserve reserve = usual_reserve(nullptr, kGiB, 1);
  reserve.asked = Bytes{5};
  CHECK(reserve.total() == Bytes{5});
  reserve.asked = Bytes{};
  CHECK(reserve.total() == Bytes{});
}

// Observed on real GPUs: at least 0.3 GiB for the context, at least 0.5 GiB for a communicator, and
// 14 to 20 % of the tensors' bytes for fragmentation.
TEST_CASE("the memory reserve for every GPU is at least as large as observed on real GPUs") {
  for (const DeviceSheet& sheet : device_sheets()) {
    CAPTURE(sheet.name);
    const MemoryReserve reserve = usual_reserve(&sheet, sheet.memory, 1);
    CHECK(reserve.context >= Bytes{kGiB.count * 3 / 10});
    CHECK(reserve.communicators >= Bytes{kGiB.count / 2});
    const auto tensors = static_cast<double>((sheet.memory - reserve.total()).count);
    const double gaps = static_cast<double>(reserve.fragmentation.count) / tensors;
    CHECK(gaps >= 0.14);
    CHECK(gaps <= 0.21);
  }
}

TEST_CASE("communicators are counted once per process group") {
  Trace trace = testing::toy_llama({.layers = 2});
  CHECK(num_communicators(trace) == 0);
  trace.ops.front().group = "fsdp";
  trace.ops.back().group = "tp";
  trace.gradient_sums.push_back({"", "fsdp", Bytes{4}});
  CHECK(num_communicators(trace) == 2);
  trace.gradient_sums.push_back({"", "ep", Bytes{4}});
  CHECK(num_communicators(trace) == 3);
}

}  // namespace
}  // namespace rematch
