// Runs the CUDA kernels of the fused ops on the CPU, thread by thread, and compares their results
// with formulas in double. Covers accesses of 16 bytes and of single elements.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/fused/adamw.h"
#include "kernels/fused/bias_gelu.h"
#include "kernels/fused/gated_add.h"
#include "kernels/fused/layer_norm.h"
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/fused/modulate.h"
#include "kernels/fused/rms_norm.h"
#include "kernels/fused/rms_norm_rope.h"
#include "kernels/fused/rope.h"
#include "kernels/fused/silu_mul.h"
#include "tests/support/catch.h"

namespace rematch::kernels {
namespace {

template <typename T>
struct Type;
template <>
struct Type<float> {
  static constexpr Element kElement = Element::kFloat32;
  static constexpr double kTolerance = 2e-5;
  using Sum = float;
};
template <>
struct Type<double> {
  static constexpr Element kElement = Element::kFloat64;
  static constexpr double kTolerance = 1e-12;
  using Sum = double;
};
template <>
struct Type<__nv_bfloat16> {
  static constexpr Element kElement = Element::kBFloat16;
  static constexpr double kTolerance = 1.0 / 128;  // bfloat16 has 8 bits of precision
  using Sum = float;
};

double number(double value) { return value; }
double number(__nv_bfloat16 value) { return static_cast<double>(__bfloat162float(value)); }

// An array that begins at a multiple of 16 bytes or, if shifted, one element later.
template <typename T>
class Elements {
 public:
  explicit Elements(std::size_t size, bool shifted = false)
      : shift_(shifted ? 1 : 0), values_(size + 1) {}
  T* data() { return values_.data() + shift_; }
  double at(std::size_t index) const { return number(values_[shift_ + index]); }
  std::size_t size() const { return values_.size() - 1; }

 private:
  std::size_t shift_;
  std::vector<T> values_;
};

template <typename T>
Elements<T> random_elements(std::size_t size, bool shifted = false) {
  static std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  Elements<T> made(size, shifted);
  for (std::size_t i = 0; i < size; ++i) made.data()[i] = T(normal(generator));
  return made;
}

// Returns the largest deviation from the formula, divided by the type's tolerance.
template <typename T, typename Formula>
double worst(const Elements<T>& found, const Formula& formula) {
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = formula(i);
    most = std::max(most, std::abs(found.at(i) - expected) / (1 + std::abs(expected)));
    if (std::isnan(found.at(i))) return std::numeric_limits<double>::infinity();
  }
  return most / Type<T>::kTolerance;
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEMPLATE_TEST_CASE("the CUDA kernels of silu_mul compute the right values", "", float, double,
                   __nv_bfloat16) {
  for (const auto& [size, shifted] :
       std::vector<std::pair<std::size_t, bool>>{{4000, false}, {4000, true}, {301, false}}) {
    CAPTURE(size, shifted);
    auto gate = random_elements<TestType>(size, shifted);
    auto up = random_elements<TestType>(size);
    auto grad = random_elements<TestType>(size);
    Elements<TestType> out(size), grad_gate(size), grad_up(size);
    const auto num = static_cast<std::int64_t>(size);
    const Element element = Type<TestType>::kElement;
    CHECK(cuda::run(SiluMul{element, num, gate.data(), up.data(), out.data()}, nullptr) == 0);
    CHECK(worst(out, [&](std::size_t i) { return gate.at(i) * sigmoid(gate.at(i)) * up.at(i); }) <=
          1);
    CHECK(cuda::run(SiluMulBackward{element, num, grad.data(), gate.data(), up.data(),
                                    grad_gate.data(), grad_up.data()},
                    nullptr) == 0);
    CHECK(worst(grad_up,
                [&](std::size_t i) { return grad.at(i) * gate.at(i) * sigmoid(gate.at(i)); }) <= 1);
    CHECK(worst(grad_gate, [&](std::size_t i) {
            const double s = sigmoid(gate.at(i));
            return grad.at(i) * up.at(i) * s * (1 + gate.at(i) * (1 - s));
          }) <= 1);
  }
}

// Rows of 2 * width elements hold the gate, then the up.
TEMPLATE_TEST_CASE("the CUDA kernels of silu_mul accept packed rows", "", float, double,
                   __nv_bfloat16) {
  constexpr std::size_t kRows = 9;
  for (const std::size_t width : {64, 13}) {
    CAPTURE(width);
    const std::size_t size = kRows * width;
    auto x = random_elements<TestType>(2 * size);
    auto grad = random_elements<TestType>(size);
    Elements<TestType> out(size), grad_x(2 * size);
    const auto gate = [&](std::size_t i) { return x.at(i / width * 2 * width + i % width); };
    const auto up = [&](std::size_t i) { return x.at((i / width * 2 + 1) * width + i % width); };
    const Element element = Type<TestType>::kElement;
    const auto num = static_cast<std::int64_t>(size);
    const auto columns = static_cast<std::int64_t>(width);
    CHECK(cuda::run(SiluMul{element, num, x.data(), x.data() + width, out.data(), columns},
                    nullptr) == 0);
    CHECK(worst(out, [&](std::size_t i) { return gate(i) * sigmoid(gate(i)) * up(i); }) <= 1);
    CHECK(cuda::run(SiluMulBackward{element, num, grad.data(), x.data(), x.data() + width,
                                    grad_x.data(), grad_x.data() + width, columns},
                    nullptr) == 0);
    CHECK(worst(grad_x, [&](std::size_t place) {
            const std::size_t row = place / (2 * width);
            const std::size_t column = place % (2 * width);
            const std::size_t i = row * width + column % width;
            const double s = sigmoid(gate(i));
            if (column >= width) return grad.at(i) * gate(i) * s;
            return grad.at(i) * up(i) * s * (1 + gate(i) * (1 - s));
          }) <= 1);
  }
}

// Two batches of three tokens. The heads of x are two head widths apart, as in a packed projection.
TEMPLATE_TEST_CASE("the CUDA kernel of rope rotates each pair", "", float, double, __nv_bfloat16) {
  using Sum = typename Type<TestType>::Sum;
  constexpr std::int64_t kTokens = 3;
  constexpr std::int64_t kHeads = 5;
  for (const std::int64_t pairs : {64, 9}) {
    for (const double direction : {1.0, -1.0}) {
      CAPTURE(pairs, direction);
      const std::int64_t width = 2 * pairs;
      const std::int64_t token_stride = kHeads * 2 * width;
      auto x = random_elements<TestType>(static_cast<std::size_t>(2 * kTokens * token_stride));
      auto cosine = random_elements<Sum>(static_cast<std::size_t>(kTokens * pairs));
      auto sine = random_elements<Sum>(static_cast<std::size_t>(kTokens * pairs));
      Elements<TestType> out(static_cast<std::size_t>(2 * kTokens * kHeads * width));
      CHECK(cuda::run(Rope{Type<TestType>::kElement, 2, kTokens, kHeads, pairs,
                           kTokens * token_stride, token_stride, 2 * width, direction, x.data(),
                           cosine.data(), sine.data(), out.data()},
                      nullptr) == 0);
      CHECK(worst(out, [&](std::size_t i) {
              const auto index = static_cast<std::int64_t>(i);
              const std::int64_t row = index / (kHeads * width);
              const std::int64_t head = index / width % kHeads;
              const std::int64_t pair = index % width / 2;
              const auto first =
                  static_cast<std::size_t>(row * token_stride + head * 2 * width + 2 * pair);
              const auto angle = static_cast<std::size_t>(row % kTokens * pairs + pair);
              const double c = cosine.at(angle);
              const double s = sine.at(angle) * direction;
              return index % 2 == 0 ? x.at(first) * c - x.at(first + 1) * s
                                    : x.at(first) * s + x.at(first + 1) * c;
            }) <= 1);
    }
  }
}

// More than kRowsInBlock rows, with gaps between them. Depending on the width, a thread makes one,
// two or three accesses per row, or too many to keep its elements in registers.
TEMPLATE_TEST_CASE("the CUDA kernels of rms_norm compute the right values", "", float, double,
                   __nv_bfloat16) {
  using Sum = typename Type<TestType>::Sum;
  constexpr std::size_t kRows = 70;
  for (const std::size_t width : {304, 301, 2056, 5000, 1101}) {
    for (const bool weighted : {true, false}) {
      CAPTURE(width, weighted);
      const std::size_t stride = width + 8;
      const auto columns = static_cast<std::int64_t>(width);
      auto x = random_elements<TestType>(kRows * stride);
      auto weight = random_elements<TestType>(width);
      auto grad = random_elements<TestType>(kRows * stride);
      Elements<TestType> y(kRows * width), grad_x(kRows * width), grad_weight(width);
      Elements<Sum> partial(static_cast<std::size_t>(num_row_blocks(kRows)) * width);
      const RmsNorm op{Type<TestType>::kElement,           kRows,   columns,
                       static_cast<std::int64_t>(stride),  1e-5,    x.data(),
                       weighted ? weight.data() : nullptr, y.data()};
      CHECK(cuda::run(op, nullptr) == 0);
      const auto w = [&](std::size_t column) { return weighted ? weight.at(column) : 1.0; };
      std::vector<double> r(kRows), mean(kRows);
      for (std::size_t row = 0; row < kRows; ++row) {
        double squares = 0;
        double products = 0;
        for (std::size_t i = row * stride; i < row * stride + width; ++i) {
          squares += x.at(i) * x.at(i);
          products += grad.at(i) * w(i - row * stride) * x.at(i);
        }
        r[row] = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
        mean[row] = products / static_cast<double>(width);
      }
      CHECK(worst(y, [&](std::size_t i) {
              return x.at(i / width * stride + i % width) * r[i / width] * w(i % width);
            }) <= 1);
      CHECK(cuda::run(RmsNormBackward{op, static_cast<std::int64_t>(stride), grad.data(),
                                      grad_x.data(), grad_weight.data(), partial.data()},
                      nullptr) == 0);
      CHECK(worst(grad_x, [&](std::size_t i) {
              const std::size_t row = i / width;
              const std::size_t at = row * stride + i % width;
              return r[row] * grad.at(at) * w(i % width) -
                     x.at(at) * r[row] * r[row] * r[row] * mean[row];
            }) <= 1);
      CHECK(worst(grad_weight, [&](std::size_t column) {
              double sum = 0;
              for (std::size_t row = 0; row < kRows; ++row) {
                sum += grad.at(row * stride + column) * x.at(row * stride + column) * r[row];
              }
              return sum;
            }) <= 1);
    }
  }
}

TEMPLATE_TEST_CASE("the CUDA kernels of bias_gelu compute the right values", "", float, double,
                   __nv_bfloat16) {
  using Sum = typename Type<TestType>::Sum;
  constexpr std::size_t kRows = 70;
  for (const std::size_t width : {304, 301, 2600}) {
    CAPTURE(width);
    auto x = random_elements<TestType>(kRows * width);
    auto bias = random_elements<TestType>(width);
    auto grad = random_elements<TestType>(kRows * width);
    Elements<TestType> y(kRows * width), grad_x(kRows * width), grad_bias(width);
    Elements<Sum> partial(static_cast<std::size_t>(num_row_blocks(kRows)) * width);
    const BiasGelu op{Type<TestType>::kElement,
                      kRows,
                      static_cast<std::int64_t>(width),
                      x.data(),
                      bias.data(),
                      y.data()};
    CHECK(cuda::run(op, nullptr) == 0);
    // tanh of sqrt(2 / pi) * (v + 0.044715 v^3), and its derivative with respect to v
    const double slope = std::sqrt(2 / 3.14159265358979323846);
    const auto value = [&](std::size_t i) { return x.at(i) + bias.at(i % width); };
    const auto tanh_of = [&](double v) { return std::tanh(slope * (v + 0.044715 * v * v * v)); };
    CHECK(worst(y, [&](std::size_t i) { return value(i) / 2 * (1 + tanh_of(value(i))); }) <= 1);
    CHECK(cuda::run(
              BiasGeluBackward{op, grad.data(), grad_x.data(), grad_bias.data(), partial.data()},
              nullptr) == 0);
    const auto gradient = [&](std::size_t i) {
      const double v = value(i);
      const double t = tanh_of(v);
      return grad.at(i) * ((1 + t) / 2 + v / 2 * (1 - t * t) * slope * (1 + 3 * 0.044715 * v * v));
    };
    CHECK(worst(grad_x, gradient) <= 1);
    CHECK(worst(grad_bias, [&](std::size_t column) {
            double sum = 0;
            for (std::size_t row = 0; row < kRows; ++row) sum += gradient(row * width + column);
            return sum;
          }) <= 1);
  }
}

// Two batches of 35 tokens, with gaps between the rows. Depending on the width, a thread makes one
// or two steps per row, or too many to keep its elements in registers.
TEMPLATE_TEST_CASE("the CUDA kernels of rms_norm_rope compute the right values", "", float, double,
                   __nv_bfloat16) {
  using Sum = typename Type<TestType>::Sum;
  constexpr std::size_t kTokens = 35;
  constexpr std::size_t kRows = 2 * kTokens;
  for (const auto& [heads, pairs] :
       std::vector<std::pair<std::size_t, std::size_t>>{{2, 64}, {3, 7}, {19, 64}, {1, 2500}}) {
    CAPTURE(heads, pairs);
    const std::size_t width = heads * 2 * pairs;
    const std::size_t stride = width + 8;
    auto x = random_elements<TestType>(kRows * stride);
    auto weight = random_elements<TestType>(width);
    auto grad = random_elements<TestType>(kRows * stride);
    auto cosine = random_elements<Sum>(kTokens * pairs);
    auto sine = random_elements<Sum>(kTokens * pairs);
    Elements<TestType> y(kRows * width), grad_x(kRows * width), grad_weight(width);
    Elements<Sum> partial(static_cast<std::size_t>(num_row_blocks(kRows)) * width);
    const RmsNormRope op{Type<TestType>::kElement,
                         kRows,
                         kTokens,
                         static_cast<std::int64_t>(width),
                         static_cast<std::int64_t>(pairs),
                         static_cast<std::int64_t>(stride),
                         1e-5,
                         x.data(),
                         weight.data(),
                         cosine.data(),
                         sine.data(),
                         y.data()};
    CHECK(cuda::run(op, nullptr) == 0);
    // Element `column` of a row that is rotated forward, or back if `direction` is -1.
    const auto turned = [&, pairs = pairs](std::size_t row, std::size_t column, double direction,
                                           const auto& at) {
      const std::size_t angle = row % kTokens * pairs + column % (2 * pairs) / 2;
      const double s = sine.at(angle) * direction;
      const std::size_t even = column / 2 * 2;
      return column % 2 == 0 ? at(even) * cosine.at(angle) - at(even + 1) * s
                             : at(even) * s + at(even + 1) * cosine.at(angle);
    };
    const auto g = [&](std::size_t row, std::size_t column) {
      return turned(row, column, -1, [&](std::size_t i) { return grad.at(row * stride + i); });
    };
    std::vector<double> r(kRows), mean(kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      double squares = 0;
      double products = 0;
      for (std::size_t i = 0; i < width; ++i) {
        squares += x.at(row * stride + i) * x.at(row * stride + i);
        products += g(row, i) * weight.at(i) * x.at(row * stride + i);
      }
      r[row] = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
      mean[row] = products / static_cast<double>(width);
    }
    CHECK(worst(y, [&](std::size_t i) {
            const std::size_t row = i / width;
            return turned(row, i % width, 1, [&](std::size_t column) {
              return x.at(row * stride + column) * r[row] * weight.at(column);
            });
          }) <= 1);
    CHECK(cuda::run(RmsNormRopeBackward{op, static_cast<std::int64_t>(stride), grad.data(),
                                        grad_x.data(), grad_weight.data(), partial.data()},
                    nullptr) == 0);
    CHECK(worst(grad_x, [&](std::size_t i) {
            const std::size_t row = i / width;
            const std::size_t column = i % width;
            return r[row] * g(row, column) * weight.at(column) -
                   x.at(row * stride + column) * r[row] * r[row] * r[row] * mean[row];
          }) <= 1);
    CHECK(worst(grad_weight, [&](std::size_t column) {
            double sum = 0;
            for (std::size_t row = 0; row < kRows; ++row) {
              sum += g(row, column) * x.at(row * stride + column) * r[row];
            }
            return sum;
          }) <= 1);
  }
}

// The sum is stored in the type of x before its norm is taken. Backward adds the gradient of the
// sum to the gradient of the norm.
TEMPLATE_TEST_CASE("the CUDA kernels of add_rms_norm compute the right values", "", float, double,
                   __nv_bfloat16) {
  using Sum = typename Type<TestType>::Sum;
  constexpr std::size_t kRows = 40;
  for (const std::size_t width : {304, 301, 2056, 5000, 1101}) {
    CAPTURE(width);
    const std::size_t stride = width + 8;
    const auto columns = static_cast<std::int64_t>(width);
    const auto step = static_cast<std::int64_t>(stride);
    auto x = random_elements<TestType>(kRows * stride);
    auto branch = random_elements<TestType>(kRows * width);
    auto weight = random_elements<TestType>(width);
    auto grad = random_elements<TestType>(kRows * width);
    auto grad_sum = random_elements<TestType>(kRows * stride);
    Elements<TestType> y(kRows * width), sum(kRows * width), grad_x(kRows * width),
        grad_weight(width);
    Elements<Sum> partial(static_cast<std::size_t>(num_row_blocks(kRows)) * width);
    const Element element = Type<TestType>::kElement;
    CHECK(cuda::run(RmsNorm{element, kRows, columns, step, 1e-5, x.data(), weight.data(), y.data(),
                            columns, branch.data(), sum.data()},
                    nullptr) == 0);
    CHECK(worst(sum, [&](std::size_t i) {
            return x.at(i / width * stride + i % width) + branch.at(i);
          }) <= 1);
    std::vector<double> r(kRows), mean(kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      double squares = 0;
      double products = 0;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        squares += sum.at(i) * sum.at(i);
        products += grad.at(i) * weight.at(i % width) * sum.at(i);
      }
      r[row] = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
      mean[row] = products / static_cast<double>(width);
    }
    CHECK(worst(y, [&](std::size_t i) {
            return sum.at(i) * r[i / width] * weight.at(i % width);
          }) <= 1);
    CHECK(cuda::run(RmsNormBackward{{element, kRows, columns, columns, 1e-5, sum.data(),
                                     weight.data(), nullptr},
                                    columns,
                                    grad.data(),
                                    grad_x.data(),
                                    grad_weight.data(),
                                    partial.data(),
                                    step,
                                    grad_sum.data()},
                    nullptr) == 0);
    CHECK(worst(grad_x, [&](std::size_t i) {
            const std::size_t row = i / width;
            return r[row] * grad.at(i) * weight.at(i % width) -
                   sum.at(i) * r[row] * r[row] * r[row] * mean[row] +
                   grad_sum.at(row * stride + i % width);
          }) <= 1);
    CHECK(worst(grad_weight, [&](std::size_t column) {
            double total = 0;
            for (std::size_t row = 0; row < kRows; ++row) {
              total += grad.at(row * width + column) * sum.at(row * width + column) * r[row];
            }
            return total;
          }) <= 1);
  }
}

// Three parameters: one of several chunks, one that ends inside an access, and one that is its own
// value.
template <typename G>
void check_adamw(bool shifted) {
  CAPTURE(shifted);
  AdamW op{Type<G>::kElement, 0, 1e-2F, 0.9F, 0.95F, 1e-8F, 0.01F, {}};
  float step = 3;
  struct Arrays {
    Elements<G> gradient;
    Elements<float> value, first, second, value_before, first_before, second_before;
    Elements<__nv_bfloat16> parameter;
  };
  std::vector<Arrays> all;
  all.reserve(3);
  for (const std::size_t size : {std::size_t{20'000}, std::size_t{301}, std::size_t{64}}) {
    const auto value = random_elements<float>(size, shifted);
    const auto first = random_elements<float>(size);
    auto second = random_elements<float>(size);
    for (std::size_t i = 0; i < size; ++i) second.data()[i] = std::abs(second.data()[i]);
    all.push_back({random_elements<G>(size), value, first, second, value, first, second,
                   Elements<__nv_bfloat16>(size)});
    Arrays& each = all.back();
    op.tensors[op.num++] = {static_cast<std::int64_t>(size),
                            each.gradient.data(),
                            each.value.data(),
                            each.first.data(),
                            each.second.data(),
                            size == 64 ? nullptr : each.parameter.data(),
                            &step};
  }
  CHECK(cuda::run(op, nullptr) == 0);
  for (const Arrays& each : all) {
    const auto first = [&](std::size_t i) {
      return 0.9 * each.first_before.at(i) + 0.1 * each.gradient.at(i);
    };
    const auto second = [&](std::size_t i) {
      return 0.95 * each.second_before.at(i) + 0.05 * each.gradient.at(i) * each.gradient.at(i);
    };
    const auto value = [&](std::size_t i) {
      const double size = std::sqrt(second(i) / (1 - std::pow(0.95, 3))) + 1e-8;
      return each.value_before.at(i) * (1 - 1e-2 * 0.01) -
             1e-2 * first(i) / (1 - std::pow(0.9, 3)) / size;
    };
    CHECK(worst(each.first, first) <= 1);
    CHECK(worst(each.second, second) <= 1);
    CHECK(worst(each.value, value) <= 1);
    if (each.parameter.size() != 64) CHECK(worst(each.parameter, value) <= 1);
  }
}

TEST_CASE("the CUDA kernel of adamw updates every parameter of its table") {
  for (const bool shifted : {false, true}) {
    check_adamw<float>(shifted);
    check_adamw<__nv_bfloat16>(shifted);
  }
}

// Two batches of more than kRowsInBlock rows. T is the type of x, U the type of the table.
constexpr std::size_t kTables = 2;
constexpr std::size_t kTableRows = 40;

// Adds up term(i) over the elements i of the table's column, for a table of one row per batch.
template <typename Term>
double column_sum(std::size_t at, std::size_t width, const Term& term) {
  double sum = 0;
  for (std::size_t row = 0; row < kTableRows; ++row) {
    sum += term((at / width * kTableRows + row) * width + at % width);
  }
  return sum;
}

template <typename T, typename U>
void check_gated_add(std::size_t width) {
  using Sum = typename Type<T>::Sum;
  CAPTURE(width);
  const std::size_t size = kTables * kTableRows * width;
  const auto columns = static_cast<std::int64_t>(width);
  auto x = random_elements<T>(size);
  auto branch = random_elements<T>(size);
  auto gate = random_elements<U>(kTables * width);
  auto grad = random_elements<T>(size);
  Elements<T> out(size), grad_branch(size);
  Elements<U> grad_gate(kTables * width);
  Elements<Sum> partial(kTables * static_cast<std::size_t>(num_row_blocks(kTableRows)) * width);
  const GatedAdd op{Type<T>::kElement, Type<U>::kElement, kTables,       kTableRows,  columns,
                    columns,           x.data(),          branch.data(), gate.data(), out.data()};
  const auto table = [&](std::size_t i) { return i / (kTableRows * width) * width + i % width; };
  CHECK(cuda::run(op, nullptr) == 0);
  CHECK(worst(out, [&](std::size_t i) { return x.at(i) + branch.at(i) * gate.at(table(i)); }) <= 1);
  CHECK(cuda::run(
            GatedAddBackward{op, grad.data(), grad_branch.data(), grad_gate.data(), partial.data()},
            nullptr) == 0);
  CHECK(worst(grad_branch, [&](std::size_t i) { return grad.at(i) * gate.at(table(i)); }) <= 1);
  CHECK(worst(grad_gate, [&](std::size_t at) {
          return column_sum(at, width, [&](std::size_t i) { return grad.at(i) * branch.at(i); });
        }) <= 1);
}

TEST_CASE("the CUDA kernels of gated_add compute the right values") {
  for (const std::size_t width : {std::size_t{304}, std::size_t{301}}) {
    check_gated_add<float, float>(width);
    check_gated_add<double, double>(width);
    check_gated_add<__nv_bfloat16, __nv_bfloat16>(width);
    check_gated_add<__nv_bfloat16, float>(width);
  }
}

template <typename T, typename U>
void check_layer_norm(std::size_t width, double offset) {
  using Sum = typename Type<T>::Sum;
  CAPTURE(width, offset);
  const std::size_t size = kTables * kTableRows * width;
  const auto columns = static_cast<std::int64_t>(width);
  auto x = random_elements<T>(size);
  auto scale = random_elements<U>(kTables * width);
  auto shift = random_elements<U>(kTables * width);
  auto grad = random_elements<T>(size);
  Elements<T> y(size), grad_x(size);
  Elements<U> grad_scale(kTables * width), grad_shift(kTables * width);
  Elements<Sum> partial(2 * kTables * static_cast<std::size_t>(num_row_blocks(kTableRows)) * width);
  const LayerNorm op{Type<T>::kElement, Type<U>::kElement, kTables, kTableRows, columns,
                     columns,           columns,           offset,  1e-6,       x.data(),
                     scale.data(),      shift.data(),      y.data()};
  const auto table = [&](std::size_t i) { return i / (kTableRows * width) * width + i % width; };
  const auto weighted = [&](std::size_t i) { return grad.at(i) * (offset + scale.at(table(i))); };
  std::vector<double> mean(kTables * kTableRows), r = mean, mean_weighted = mean, slope = mean;
  const auto normalised = [&](std::size_t i) { return (x.at(i) - mean[i / width]) * r[i / width]; };
  const auto n = static_cast<double>(width);
  for (std::size_t row = 0; row < mean.size(); ++row) {
    double squares = 0;
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) mean[row] += x.at(i) / n;
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      squares += (x.at(i) - mean[row]) * (x.at(i) - mean[row]);
    }
    r[row] = 1 / std::sqrt(squares / n + 1e-6);
    for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
      mean_weighted[row] += weighted(i) / n;
      slope[row] += weighted(i) * normalised(i) / n;
    }
  }
  CHECK(cuda::run(op, nullptr) == 0);
  CHECK(worst(y, [&](std::size_t i) {
          return normalised(i) * (offset + scale.at(table(i))) + shift.at(table(i));
        }) <= 1);
  CHECK(cuda::run(LayerNormBackward{op, grad.data(), grad_x.data(), grad_scale.data(),
                                    grad_shift.data(), partial.data()},
                  nullptr) == 0);
  CHECK(worst(grad_x, [&](std::size_t i) {
          const std::size_t row = i / width;
          return r[row] * (weighted(i) - mean_weighted[row] - normalised(i) * slope[row]);
        }) <= 1);
  CHECK(worst(grad_scale, [&](std::size_t at) {
          return column_sum(at, width, [&](std::size_t i) { return grad.at(i) * normalised(i); });
        }) <= 1);
  CHECK(worst(grad_shift, [&](std::size_t at) {
          return column_sum(at, width, [&](std::size_t i) { return grad.at(i); });
        }) <= 1);
}

// Depending on the width, a thread makes one, two or three accesses per row, or too many to keep
// its elements in registers.
TEST_CASE("the CUDA kernels of layer_norm compute the right values") {
  for (const std::size_t width : {304, 301, 2056, 5000, 1101}) {
    check_layer_norm<float, float>(width, 1);
    check_layer_norm<double, double>(width, 0);
    check_layer_norm<__nv_bfloat16, __nv_bfloat16>(width, 0);
    check_layer_norm<__nv_bfloat16, float>(width, 1);
  }
}

template <typename T, typename U>
void check_modulate(std::size_t width) {
  using Sum = typename Type<T>::Sum;
  CAPTURE(width);
  constexpr std::size_t kBatch = 2;
  constexpr std::size_t kRows = 70;
  const std::size_t size = kBatch * kRows * width;
  const auto columns = static_cast<std::int64_t>(width);
  auto x = random_elements<T>(size);
  auto shift = random_elements<T>(kBatch * width);
  auto scale = random_elements<T>(kBatch * width);
  auto grad = random_elements<U>(size);
  Elements<U> out(size);
  Elements<T> grad_x(size), grad_shift(kBatch * width), grad_scale(kBatch * width);
  Elements<Sum> partial(2 * kBatch * static_cast<std::size_t>(num_row_blocks(kRows)) * width);
  const Modulate op{Type<T>::kElement, Type<U>::kElement, kBatch,    kRows,
                    columns,           columns,           columns,   x.data(),
                    shift.data(),      scale.data(),      out.data()};
  const auto batch_of = [&](std::size_t i) { return i / (kRows * width); };
  CHECK(cuda::run(op, nullptr) == 0);
  CHECK(worst(out, [&](std::size_t i) {
          const std::size_t at = batch_of(i) * width + i % width;
          return x.at(i) * (1 + scale.at(at)) + shift.at(at);
        }) <= 1);
  CHECK(cuda::run(ModulateBackward{op, grad.data(), grad_x.data(), grad_shift.data(),
                                   grad_scale.data(), partial.data()},
                  nullptr) == 0);
  CHECK(worst(grad_x, [&](std::size_t i) {
          return grad.at(i) * (1 + scale.at(batch_of(i) * width + i % width));
        }) <= 1);
  const auto sum_of = [&](std::size_t at, const auto& term) {
    double sum = 0;
    for (std::size_t row = 0; row < kRows; ++row) {
      sum += term((at / width * kRows + row) * width + at % width);
    }
    return sum;
  };
  CHECK(worst(grad_shift, [&](std::size_t at) {
          return sum_of(at, [&](std::size_t i) { return grad.at(i); });
        }) <= 1);
  CHECK(worst(grad_scale, [&](std::size_t at) {
          return sum_of(at, [&](std::size_t i) { return grad.at(i) * x.at(i); });
        }) <= 1);
}

TEST_CASE("the CUDA kernels of modulate compute the right values") {
  for (const std::size_t width : {std::size_t{304}, std::size_t{301}}) {
    check_modulate<float, float>(width);
    check_modulate<double, double>(width);
    check_modulate<__nv_bfloat16, __nv_bfloat16>(width);
    check_modulate<float, __nv_bfloat16>(width);
  }
}

// The 900 classes are split into 600 and 300, or into 601 and 299. Rows of 601 and 299 elements
// cannot be read in whole vectors.
TEMPLATE_TEST_CASE("the CUDA kernels of cross-entropy compute the right values in chunks", "",
                   float, double) {
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kClasses = 900;
  const std::int64_t target[kRows] = {0, 599, 600, 601, 899};
  for (const std::size_t first_chunk : {std::size_t{600}, std::size_t{601}}) {
    CAPTURE(first_chunk);
    Elements<TestType> maximum(kRows), sum(kRows), target_logit(kRows), logsumexp(kRows);
    for (std::size_t row = 0; row < kRows; ++row) {
      maximum.data()[row] = -std::numeric_limits<TestType>::infinity();
    }
    std::vector<Elements<TestType>> chunks;
    std::size_t first = 0;
    for (const std::size_t width : {first_chunk, kClasses - first_chunk}) {
      chunks.push_back(random_elements<TestType>(kRows * width));
      CHECK(cuda::run(LogitChunk{Type<TestType>::kElement, kRows, static_cast<std::int64_t>(width),
                                 static_cast<std::int64_t>(first), chunks.back().data(), target,
                                 maximum.data(), sum.data(), target_logit.data()},
                      nullptr) == 0);
      first += width;
    }
    const auto logit = [&](std::size_t row, std::size_t of) {
      return of < first_chunk ? chunks[0].at(row * first_chunk + of)
                              : chunks[1].at(row * (kClasses - first_chunk) + of - first_chunk);
    };
    const auto sum_of_exp = [&](std::size_t row) {
      double all = 0;
      for (std::size_t of = 0; of < kClasses; ++of) all += std::exp(logit(row, of));
      return all;
    };
    for (std::size_t row = 0; row < kRows; ++row) {
      const double expected = std::log(sum_of_exp(row));
      CHECK(std::abs(maximum.at(row) + std::log(sum.at(row)) - expected) < 1e-5);
      CHECK(target_logit.at(row) == logit(row, static_cast<std::size_t>(target[row])));
      logsumexp.data()[row] = static_cast<TestType>(expected);
    }
    const Elements<TestType> before = chunks[0];
    TestType grad_loss = 3;
    CHECK(cuda::run(LogitChunkBackward{Type<TestType>::kElement, kRows,
                                       static_cast<std::int64_t>(first_chunk), 0, chunks[0].data(),
                                       target, logsumexp.data(), &grad_loss},
                    nullptr) == 0);
    CHECK(worst(chunks[0], [&](std::size_t i) {
            const std::size_t row = i / first_chunk;
            const bool is_target = static_cast<std::int64_t>(i % first_chunk) == target[row];
            const double probability = std::exp(before.at(i) - logsumexp.at(row));
            return (probability - (is_target ? 1 : 0)) * 3 / static_cast<double>(kRows);
          }) <= 1);
  }
}

}  // namespace
}  // namespace rematch::kernels
