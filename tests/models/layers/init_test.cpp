#include "models/layers/parameters.h"

#include <ATen/ops/empty.h>

#include "models/layers/hash.h"
#include "models/layers/parameters.h"
#include "tests/support/catch.h"

using namespace rematch;

// Expects the first outputs of SplitMix64 for seed 0, and FNV's published test vectors.
TEST_CASE("the hash functions reproduce their published test vectors") {
  CHECK(splitmix64(0) == 0xE220A8397B1DCDAFULL);
  CHECK(splitmix64(0x9E3779B97F4A7C15ULL) == 0x6E789E6AA1B965F4ULL);
  CHECK(fnv1a64("") == 0xCBF29CE484222325ULL);
  CHECK(fnv1a64("a") == 0xAF63DC4C8601EC8CULL);
  CHECK(fnv1a64("foobar") == 0x85944171F73967E8ULL);
}

TEST_CASE("hashes map to exact multiples of 2^-23 in [-1, 1)") {
  CHECK(hash_to_signed_unit(0) == -1.0F);
  CHECK(hash_to_signed_unit(~0ULL) == 1.0F - 0x1p-23F);
  CHECK(hash_to_signed_unit(1ULL << 63) == 0.0F);
}

// The expected values were computed in Python, as ((splitmix64((fnv1a64(name) + i) mod 2^64) >> 40)
// - 2^23) * 2^-23, and then rounded to float32.
TEST_CASE("initial parameters are bitwise equal to values computed in Python") {
  Parameters parameters(at::kFloat, at::kCPU);
  const at::Tensor weight =
      parameters.add("blocks.3.attention.wq.weight", {2, 3}, uniform_by_fan_in(3));
  const at::Tensor norm = parameters.add("head.norm.weight", {3}, near_one());
  const float expected_weight[] = {0x1.fb00ec0000000p-3F,  0x1.f5fc6c0000000p-3F,
                                   -0x1.065c500000000p-2F, 0x1.9ef7ba0000000p-2F,
                                   -0x1.39637e0000000p-2F, 0x1.5e9d260000000p-3F};
  const float expected_norm[] = {0x1.caf91c0000000p-1F, 0x1.0ee54a0000000p+0F,
                                 0x1.cc3ccc0000000p-1F};
  for (std::int64_t i = 0; i < 6; ++i) CHECK(weight.data_ptr<float>()[i] == expected_weight[i]);
  for (std::int64_t i = 0; i < 3; ++i) CHECK(norm.data_ptr<float>()[i] == expected_norm[i]);
  CHECK(weight.is_leaf());
  CHECK(weight.requires_grad());
  CHECK(parameters.list()[1].name == "head.norm.weight");
  CHECK(parameters.list()[1].tensor.is_same(norm));
}

TEST_CASE("initial bfloat16 parameters equal the float32 parameters after rounding") {
  Parameters wide(at::kFloat, at::kCPU);
  Parameters narrow(at::kBFloat16, at::kCPU);
  const at::Tensor expected = wide.add("w", {100}, uniform_by_fan_in(7)).value().to(at::kBFloat16);
  CHECK(narrow.add("w", {100}, uniform_by_fan_in(7)).value().equal(expected));
}

// A uniform variable in [-a, a] has mean 0 and mean square a^2 / 3. With 100000 draws the error is
// a few tenths of a percent.
TEST_CASE("initial values are uniform in their range") {
  const at::Tensor values = at::empty({100'000});
  fill_by_hash(values, "name", uniform_by_fan_in(4));  // uniform in [-0.5, 0.5]
  CHECK(values.abs().max().item<float>() <= 0.5F);
  CHECK(values.mean().item<float>() == Approx(0.0).margin(0.005));
  CHECK(values.pow(2).mean().item<float>() == Approx(0.25 / 3).epsilon(0.01));
}

TEST_CASE("initial parameters on meta have a shape but no data") {
  Parameters parameters(at::kFloat, at::kMeta);
  const at::Tensor weight = parameters.add("w", {1'000'000, 1'000'000}, uniform_by_fan_in(1));
  CHECK(weight.is_meta());
  CHECK(weight.requires_grad());
}

TEST_CASE("the error for a tensor that cannot be filled names the tensor") {
  CHECK_THROWS_WITH(
      fill_by_hash(at::empty({2}, at::TensorOptions().dtype(at::kLong)), "w", near_one()),
      Catch::Contains("unsupported dtype Long for w"));
}
