// Runs the CUDA kernel of grouped matmuls on the CPU, and compares it with a loop over the groups
// in double.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/grouped/grouped_mm.h"
#include "tests/support/catch.h"

namespace rematch::kernels {
namespace {

constexpr float kUntouched = -77;

struct Sizes {
  std::int64_t rows, columns, depth;
  std::vector<std::int32_t> ends;
};

template <typename T>
constexpr Element kElementOf = Element::kFloat32;
template <>
constexpr Element kElementOf<__nv_bfloat16> = Element::kBFloat16;

template <typename T>
std::vector<T> random_values(std::int64_t size) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<T> values;
  for (std::int64_t i = 0; i < size; ++i) values.push_back(T(normal(generator)));
  return values;
}

double as_double(float value) { return value; }
double as_double(__nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); }

// Row-major or column-major; every row or column has two elements more than it needs.
GroupedMatrix layout(std::int64_t rows, std::int64_t columns, bool column_major) {
  if (column_major) return {(rows + 2) * columns, 1, rows + 2};
  return {rows * (columns + 2), columns + 2, 1};
}

std::int64_t space(std::int64_t groups, std::int64_t rows, std::int64_t columns) {
  return groups * (rows + 2) * (columns + 2);
}

// The same for a matrix that all groups share.
GroupedMatrix shared_layout(std::int64_t rows, std::int64_t columns, bool column_major) {
  GroupedMatrix layout_of_group = layout(rows, columns, column_major);
  layout_of_group.group = 0;
  return layout_of_group;
}

template <typename T>
void check_product(const Sizes& sizes, bool divides_depth, bool column_major) {
  const auto groups = static_cast<std::int64_t>(sizes.ends.size());
  const auto [rows, columns, depth, ends] = sizes;
  auto a = random_values<T>(space(1, rows, depth));
  auto b = random_values<T>(space(groups, depth, columns));
  std::vector<T> out(space(groups, rows, columns), T(kUntouched));
  const auto of_b = divides_depth ? shared_layout : layout;
  const auto of_out = divides_depth ? layout : shared_layout;
  const GroupedMatmul op{kElementOf<T>,
                         divides_depth,
                         groups,
                         rows,
                         columns,
                         depth,
                         ends.data(),
                         a.data(),
                         shared_layout(rows, depth, column_major),
                         b.data(),
                         of_b(depth, columns, column_major),
                         out.data(),
                         of_out(rows, columns, column_major)};
  REQUIRE(cuda::run(op, nullptr) == 0);
  std::vector<double> expected(out.size(), kUntouched);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t begin = group == 0 ? 0 : sizes.ends[group - 1];
    const std::int64_t end = sizes.ends[group];
    for (std::int64_t row = divides_depth ? 0 : begin; row < (divides_depth ? sizes.rows : end);
         ++row) {
      for (std::int64_t column = 0; column < sizes.columns; ++column) {
        double sum = 0;
        for (std::int64_t k = divides_depth ? begin : 0; k < (divides_depth ? end : sizes.depth);
             ++k) {
          sum += as_double(a[row * op.of_a.row + k * op.of_a.column]) *
                 as_double(b[group * op.of_b.group + k * op.of_b.row + column * op.of_b.column]);
        }
        expected[group * op.of_out.group + row * op.of_out.row + column * op.of_out.column] = sum;
      }
    }
  }
  const double tolerance = sizeof(T) == 2 ? 1.0 / 128 : 1e-5;
  double worst = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    worst =
        std::max(worst, std::abs(as_double(out[i]) - expected[i]) / (1 + std::abs(expected[i])));
  }
  CHECK(worst <= tolerance);
}

// Groups that are empty, narrower than a tile, equal to a tile, and wider. The last rows belong to
// no group.
TEMPLATE_TEST_CASE("the CUDA kernel of grouped matmuls multiplies the rows of each group", "",
                   float, __nv_bfloat16) {
  for (const bool column_major : {false, true}) {
    CAPTURE(column_major);
    check_product<TestType>({230, 70, 33, {0, 3, 67, 67, 220}}, false, column_major);
    check_product<TestType>({64, 5, 16, {64}}, false, column_major);
    check_product<TestType>({9, 130, 3, {0, 9, 9}}, false, column_major);
  }
}

TEMPLATE_TEST_CASE("the CUDA kernel of grouped matmuls divides the depth among groups", "", float,
                   __nv_bfloat16) {
  for (const bool column_major : {false, true}) {
    CAPTURE(column_major);
    check_product<TestType>({70, 40, 120, {0, 17, 17, 115}}, true, column_major);
    check_product<TestType>({64, 64, 16, {16}}, true, column_major);
  }
}

TEST_CASE("a grouped matmul without rows, columns or groups launches nothing") {
  for (const Sizes& sizes : {Sizes{0, 4, 4, {0}}, Sizes{4, 0, 4, {4}}, Sizes{4, 4, 4, {}}}) {
    GroupedMatmul op{};
    op.num_groups = static_cast<std::int64_t>(sizes.ends.size());
    op.rows = sizes.rows;
    op.columns = sizes.columns;
    CHECK(cuda::run(op, nullptr) == 0);
  }
}

}  // namespace
}  // namespace rematch::kernels
