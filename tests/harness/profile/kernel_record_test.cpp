#include "harness/profile/attribution.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

constexpr auto kForward = static_cast<std::size_t>(Phase::kForward);

KernelUse two_matmuls() {
  KernelUse use;
  use.by_class[kForward][KernelClass::kMatmul] = {2, nanoseconds(300)};
  use.by_class[kForward][KernelClass::kUnknown] = {1, nanoseconds(100)};
  use.by_name[kForward]["gemm"] = {2, nanoseconds(300)};
  use.ops_with_kernels[kForward][OpClass::kMatmul] = 2;
  use.unknown["somebodys_kernel"] = nanoseconds(100);
  return use;
}

CountsRecord executed(std::int64_t matmuls) {
  CountsRecord counts;
  counts.counted_steps = 2;
  counts.by_class[kForward][OpClass::kMatmul] = matmuls;
  return counts;
}

TEST_CASE("a kernel record contains counts by class, and the share of time in unknown kernels") {
  const KernelRecord record = kernel_record(two_matmuls(), executed(2));
  CHECK(record.counted_steps == 2);
  CHECK(record.count[kForward].at("matmul") == 2);
  CHECK(record.time[kForward].at("matmul") == nanoseconds(300));
  CHECK(record.launches[kForward].at("gemm") == 2);
  CHECK(record.unknown_time_ratio == 0.25);
  CHECK(record.unknown_names == std::vector<std::string>{"somebodys_kernel"});
  CHECK(record.unknown_times.at("somebodys_kernel") == nanoseconds(100));
  CHECK(record.invalid.empty());
}

TEST_CASE("kernels that do not match the executed ops make the record invalid") {
  CHECK_THAT(kernel_record(two_matmuls(), executed(3)).invalid,
             Catch::Contains("forward executed 3 matmul ops, but 2"));
}

TEST_CASE("the kernel record reports an error in attributing kernels before all other errors") {
  KernelUse use = two_matmuls();
  use.dropped = 7;
  use.unattributed = 2;
  use.badly_stamped = 1;
  use.lost = 3;
  use.unfinished = 4;
  use.invalid = "7 activity records were dropped; count fewer steps";
  const KernelRecord record = kernel_record(use, executed(3));
  CHECK(record.invalid == *use.invalid);
  CHECK(record.dropped_records == 7);
  CHECK(record.unattributed_kernels == 2);
  CHECK(record.lost_records == 7);
  CHECK(record.badly_stamped_records == 1);
}

TEST_CASE("a kernel record with only a note is usable") {
  KernelUse use = two_matmuls();
  use.note = "step 0 ran 5 kernels, step 1 ran 4";
  const KernelRecord record = kernel_record(use, executed(2));
  CHECK(record.note == *use.note);
  CHECK(record.is_usable());
}

TEST_CASE("transfers outside of ops are recorded; the field is absent if there are none") {
  KernelUse use = two_matmuls();
  CHECK_FALSE(kernel_record(use, executed(2)).offload_copies);
  CHECK_FALSE(kernel_record(use, executed(2)).unattributed_transfers);
  use.offload = {2, Bytes{4096}, nanoseconds(80)};
  use.unattributed_transfers = {1, Bytes{64}, nanoseconds(5)};
  const KernelRecord record = kernel_record(use, executed(2));
  CHECK((record.offload_copies == TransferRecord{2, Bytes{4096}, nanoseconds(80)}));
  CHECK((record.unattributed_transfers == TransferRecord{1, Bytes{64}, nanoseconds(5)}));
}

// In two steps, matmuls took 300 ns in kernels, so one step takes 150 ns.
TEST_CASE("times by op class are averaged per step") {
  KernelUse use;
  use.by_op_class[kForward][OpClass::kMatmul] = {4, nanoseconds(300)};
  const auto times = op_class_times(use, 2);
  CHECK(times[kForward].at(OpClass::kMatmul) == nanoseconds(150));
  CHECK(times[static_cast<std::size_t>(Phase::kBackward)].empty());
}

TEST_CASE("without kernels, the share of time in unknown kernels is zero") {
  CHECK(kernel_record({}, executed(0)).unknown_time_ratio == 0);
}

}  // namespace
}  // namespace rematch
