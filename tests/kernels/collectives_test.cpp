#include "kernels/collectives/collectives.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "tests/models/op_stream.h"
#include "tests/support/catch.h"
#include "tests/support/slow_group.h"

using namespace rematch;
using rematch::testing::SlowGroup;

namespace {

constexpr const char* kGroup = "collectives_test";
constexpr std::int64_t kWorld = SlowGroup::kWorld;

template <typename Run>
std::vector<OpSeen> ops_of(const Run& run) {
  OpStream stream;
  const OpModeGuard guard(&stream);
  run();
  return stream.ops();
}

// Runs every collective once, on tensors of several sizes and dtypes.
void run_all(at::Device device) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto options = at::TensorOptions().dtype(dtype).device(device);
    const at::Tensor matrix = at::ones({4, 3}, options);
    const at::Tensor vector = at::ones({6}, options);
    collectives::all_reduce(matrix, kGroup);
    collectives::all_gather(vector, kWorld, kGroup);
    collectives::reduce_scatter(matrix, kWorld, kGroup);
    collectives::all_to_all(matrix, {2, 2}, {2, 2}, kGroup);
    collectives::all_gather(std::vector<at::Tensor>{matrix, vector}, kWorld, kGroup);
    collectives::reduce_scatter({vector, matrix}, collectives::Reduction::kSum, kWorld, kGroup);
  }
}

}  // namespace

TEST_CASE("on meta, collectives need no group and have the ops and layouts of real collectives") {
  std::vector<OpSeen> on_cpu;
  {
    const SlowGroup group(kGroup);
    on_cpu = ops_of([] { run_all(at::kCPU); });
  }
  const std::vector<OpSeen> on_meta = ops_of([] { run_all(at::kMeta); });
  REQUIRE(on_cpu.size() == on_meta.size());
  for (std::size_t i = 0; i < on_cpu.size(); ++i) {
    CAPTURE(i, on_cpu[i].name);
    CHECK(on_cpu[i].name == on_meta[i].name);
    CHECK(on_cpu[i].outputs == on_meta[i].outputs);
  }
}

TEST_CASE("a collective's result is complete when the call returns") {
  const SlowGroup group(kGroup);  // a group whose collectives complete late
  const at::Tensor x = at::arange(4, at::TensorOptions().dtype(at::kFloat));
  const at::Tensor all = collectives::all_gather(x, kWorld, kGroup);
  CHECK(all.narrow(0, 0, 4).equal(x));
}

// In the first exchange, this rank sends 2 + 2 rows and receives 1 + 3 rows.
TEST_CASE("an uneven all-to-all on meta returns as many rows as would arrive") {
  const at::Tensor x = at::empty({4, 5}, at::TensorOptions().device(at::kMeta));
  CHECK(collectives::all_to_all(x, {1, 3}, {2, 2}, kGroup).sizes() == at::IntArrayRef{4, 5});
  CHECK(collectives::all_to_all(x, {0, 9}, {4, 0}, kGroup).sizes() == at::IntArrayRef{9, 5});
}

TEST_CASE("collectives on meta reject the arguments that real collectives reject") {
  const at::Tensor x = at::empty({3, 4}, at::TensorOptions().device(at::kMeta));
  CHECK_THROWS_WITH(collectives::reduce_scatter(x, 2, kGroup),
                    Catch::Contains("dimension 0 of [3, 4] is not divisible by 2 ranks"));
  CHECK_THROWS_WITH(collectives::all_gather(x.t(), 2, kGroup),
                    Catch::Contains("the input must be contiguous"));
}

TEST_CASE("an in-place sum on meta leaves its tensors unchanged") {
  const at::Tensor x = at::empty({3, 4}, at::TensorOptions().device(at::kMeta));
  const auto* storage = x.storage().unsafeGetStorageImpl();
  collectives::all_reduce_in_place({x}, collectives::Reduction::kMean, kGroup);
  CHECK(x.storage().unsafeGetStorageImpl() == storage);
}
