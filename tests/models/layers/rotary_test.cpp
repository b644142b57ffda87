#include "models/layers/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>

#include "tests/support/catch.h"

using namespace rematch;

TEST_CASE("rotary frequencies fall from 1 towards 1 / theta") {
  CHECK(rotary_frequencies(2, 1e4) == std::vector<double>{1.0});
  const std::vector<double> four = rotary_frequencies(4, 1e4);
  REQUIRE(four.size() == 2);
  CHECK(four[1] == Approx(0.01));
  CHECK(rotary_frequencies(0, 1e4).empty());
}

TEST_CASE("the rotary table lists all pairs of the first axis, then all pairs of the next axis") {
  const RotaryTable table = make_rotary_table({{{0, 5}, {1.0}}, {{3, 2}, {0.5, 0.25}}}, at::kCPU);
  REQUIRE(table.cosine.sizes() == at::IntArrayRef({2, 1, 3}));
  const double angles[] = {0.0, 1.5, 0.75, 5.0, 1.0, 0.5};
  for (int i = 0; i < 6; ++i) {
    CHECK(table.cosine.data_ptr<float>()[i] == static_cast<float>(std::cos(angles[i])));
    CHECK(table.sine.data_ptr<float>()[i] == static_cast<float>(std::sin(angles[i])));
  }
}

// Computes the same rotation as a product of complex numbers.
TEST_CASE("pairs rotate like complex numbers") {
  const RotaryTable table =
      make_rotary_table({{{0, 1, 2, 7}, rotary_frequencies(6, 100.0)}}, at::kCPU);
  const at::Tensor x = at::randn({2, 4, 3, 6});
  const at::Tensor angle = at::atan2(table.sine, table.cosine);
  const at::Tensor turn = at::polar(at::ones_like(angle), angle);
  const at::Tensor turned = at::view_as_complex(x.view({2, 4, 3, 3, 2})) * turn;
  CHECK(at::allclose(apply_rotary(x, table), at::view_as_real(turned).view(x.sizes()), 1e-5, 1e-6));
  const at::Tensor narrow = x.to(at::kBFloat16);
  CHECK(apply_rotary(narrow, table)
            .equal(apply_rotary(narrow.to(at::kFloat), table).to(at::kBFloat16)));
}

TEST_CASE("a rotary table on meta has a shape but no data") {
  const RotaryTable table = make_rotary_table({{{0, 1}, {1.0, 2.0}}}, at::kMeta);
  CHECK(table.sine.is_meta());
  CHECK(table.sine.sizes() == at::IntArrayRef({2, 1, 2}));
}
