// Tests kernel counts if CUPTI's records are faulty. The dry device makes the faults.
#include <string>

#include "harness/dry_cuda/dry_cuda.h"
#include "tests/harness/run/dry_points.h"

namespace rematch::testing {
namespace {

constexpr int kSteps = 2;

PointRecord counted(const std::string& policy) {
  const PointRecord record =
      run(point_of("llama_small", kSmallLlama, policy), Pass::kExact, kSteps);
  CAPTURE(policy, record.reason, record.kernels_reason);
  REQUIRE(record.kernels.has_value());
  return record;
}

// Returns how many kernels are recorded before the middle of the first counted step. This includes
// the kernels of one earlier step.
unsigned kernels_before_middle(const PointRecord& record) {
  std::int64_t sum = 0;
  for (const auto& phase : record.kernels->count) {
    for (const auto& [kernel_class, count] : phase) sum += kernel_class == "memory" ? 0 : count;
  }
  const std::int64_t of_step = sum / kSteps;
  return static_cast<unsigned>(of_step + of_step / 2);
}

// Any seven consecutive kernels belong to several classes: at most five in a row are elementwise,
// in a norm.
TEST_CASE("any lost kernel record makes the counts invalid", "[device]") {
  REMATCH_NEEDS_CUDA();
  if (!on_dry_device()) return;
  const PointRecord complete = counted("full");
  CHECK(complete.kernels->invalid == "");
  CHECK(complete.kernels->lost_records == 0);
  const unsigned before = kernels_before_middle(complete);
  for (unsigned later = 0; later < 7; ++later) {
    dry_cuda_plant_failure("cupti.lost_record", before + later, 1);
    const PointRecord record = counted("full");
    CAPTURE(later);
    CHECK(record.kernels->lost_records == 1);
    CHECK_THAT(record.kernels->invalid,
               Catch::StartsWith("ops launched kernels without a record: 1;"));
  }
}

TEST_CASE("a buffer that CUPTI withholds is counted like any other buffer", "[device]") {
  REMATCH_NEEDS_CUDA();
  if (!on_dry_device()) return;
  const PointRecord complete = counted("full");
  dry_cuda_plant_failure("cupti.withheld_record", kernels_before_middle(complete), 1);
  const PointRecord record = counted("full");
  CHECK(record.kernels->invalid == "");
  CHECK((record.kernels->count == complete.kernels->count));
}

TEST_CASE("an unfinished kernel makes the counts invalid", "[device]") {
  REMATCH_NEEDS_CUDA();
  if (!on_dry_device()) return;
  const unsigned before = kernels_before_middle(counted("full"));
  dry_cuda_plant_failure("cupti.unfinished_record", before, 1);
  const PointRecord record = counted("full");
  CHECK(record.kernels->lost_records >= 1);
  CHECK_THAT(record.kernels->invalid, Catch::Contains("1 kernels or copies had not ended"));
}

TEST_CASE("copies of an offload are counted with their bytes, and no copy is unattributed",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  const PointRecord kept = counted("full");
  CHECK_FALSE(kept.kernels->offload_copies.has_value());
  CHECK_FALSE(kept.kernels->unattributed_transfers.has_value());
  const PointRecord record = counted("offload_inputs(full)");
  CHECK(record.kernels->invalid == "");
  CHECK(record.kernels->note == "");
  REQUIRE(record.kernels->offload_copies.has_value());
  const HostRecord& host = record.memory->host.value();
  CHECK(record.kernels->offload_copies->bytes ==
        Bytes{kSteps * (host.copied_out + host.copied_back).count});
  CHECK_FALSE(record.kernels->unattributed_transfers.has_value());
  CHECK((record.kernels->count == kept.kernels->count));
}

}  // namespace
}  // namespace rematch::testing
