// Runs the CUDA kernels of the fused ops on the host and counts every byte that they read and
// write. Compares the bytes and the numbers of launches with formulas. Scalars per row are not
// counted.
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <ostream>
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
#include "tests/support/host_cuda/moved_bytes.h"

namespace rematch::kernels {
namespace {

using Element16 = __nv_bfloat16;

constexpr std::size_t kElementBytes = 2;
constexpr std::size_t kSumBytes = 4;
constexpr std::size_t kBatchRows = 70;  // more than kRowsInBlock
constexpr std::size_t kWidth = 304;
constexpr std::size_t kSize = kBatchRows * kWidth;
constexpr auto kBf16 = Element::kBFloat16;

struct Moved {
  std::size_t read = 0;
  std::size_t written = 0;
  int launches = 0;
  bool operator==(const Moved&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Moved& moved) {
  return out << moved.read << " read, " << moved.written << " written, " << moved.launches
             << " launches";
}

Moved moved_by(const std::function<int()>& run) {
  const Moved before{host_cuda::bytes_read, host_cuda::bytes_written, host_cuda::num_launches()};
  CHECK(run() == 0);
  return {host_cuda::bytes_read - before.read, host_cuda::bytes_written - before.written,
          host_cuda::num_launches() - before.launches};
}

// A buffer aligned to 16 bytes, as memory from CUDA's allocator is.
template <typename T>
class Buffer {
 public:
  explicit Buffer(std::size_t size) : values_(size + 16 / sizeof(T)) {}
  T* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(values_.data());
    return values_.data() + (16 - address % 16) % 16 / sizeof(T);
  }

 private:
  std::vector<T> values_;
};

std::size_t num_blocks() { return static_cast<std::size_t>(num_row_blocks(kBatchRows)); }

// Rows of kWidth have one warp each, so eight groups of a block load the same columns of a table.
constexpr std::size_t kGroups = 8;

TEST_CASE("silu_mul reads each input once and writes each output once") {
  Buffer<Element16> a(kSize), b(kSize), c(kSize), d(kSize), e(kSize);
  CHECK(moved_by([&] {
          return cuda::run(SiluMul{kBf16, kSize, a.data(), b.data(), c.data()}, nullptr);
        }) == Moved{2 * kSize * kElementBytes, kSize * kElementBytes, 1});
  CHECK(moved_by([&] {
          return cuda::run(
              SiluMulBackward{kBf16, kSize, a.data(), b.data(), c.data(), d.data(), e.data()},
              nullptr);
        }) == Moved{3 * kSize * kElementBytes, 2 * kSize * kElementBytes, 1});
}

TEST_CASE("silu_mul of packed rows moves the same bytes") {
  constexpr std::size_t kHalf = kSize / 2;
  Buffer<Element16> x(2 * kHalf), out(kHalf), grad(kHalf), grad_x(2 * kHalf);
  constexpr std::int64_t kColumns = kWidth / 2;
  CHECK(moved_by([&] {
          return cuda::run(
              SiluMul{kBf16, kHalf, x.data(), x.data() + kColumns, out.data(), kColumns}, nullptr);
        }) == Moved{2 * kHalf * kElementBytes, kHalf * kElementBytes, 1});
  CHECK(moved_by([&] {
          return cuda::run(SiluMulBackward{kBf16, kHalf, grad.data(), x.data(), x.data() + kColumns,
                                           grad_x.data(), grad_x.data() + kColumns, kColumns},
                           nullptr);
        }) == Moved{3 * kHalf * kElementBytes, 2 * kHalf * kElementBytes, 1});
}

// Cosine and sine are float32, read once for each pair of each head.
TEST_CASE("rope reads its cosine and sine tables once for each head") {
  constexpr std::size_t kPairs = 16;
  constexpr std::size_t kHeads = 4;
  constexpr std::size_t kNum = kBatchRows * kHeads * 2 * kPairs;
  Buffer<Element16> x(kNum), out(kNum);
  Buffer<float> cosine(kBatchRows * kPairs), sine(kBatchRows * kPairs);
  CHECK(moved_by([&] {
          return cuda::run(Rope{kBf16, 1, kBatchRows, kHeads, kPairs, kNum, 2 * kPairs * kHeads,
                                2 * kPairs, 1.0, x.data(), cosine.data(), sine.data(), out.data()},
                           nullptr);
        }) == Moved{kNum * kElementBytes + kNum / 2 * 2 * kSumBytes, kNum * kElementBytes, 1});
}

// Forward reads x and, for each row, the weight. Backward reads x and the gradient once, and the
// weight once for each group of threads.
TEST_CASE("rms_norm keeps rows, weights and sums in registers") {
  Buffer<Element16> x(kSize), weight(kWidth), y(kSize), grad(kSize), grad_x(kSize),
      grad_weight(kWidth);
  Buffer<float> partial(num_blocks() * kWidth);
  const RmsNorm op{kBf16, kBatchRows, kWidth, kWidth, 1e-5, x.data(), weight.data(), y.data()};
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{2 * kSize * kElementBytes, kSize * kElementBytes, 1});
  const std::size_t partials = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(RmsNormBackward{op, kWidth, grad.data(), grad_x.data(),
                                           grad_weight.data(), partial.data()},
                           nullptr);
        }) == Moved{2 * kSize * kElementBytes + num_blocks() * kGroups * kWidth * kElementBytes +
                        partials,
                    kSize * kElementBytes + partials + kWidth * kElementBytes, 2});
}

// A norm and a rotation would write the norm and read it again, in both directions.
TEST_CASE("rms_norm_rope moves each tensor once") {
  constexpr std::size_t kPairs = 8;
  constexpr std::size_t kRead = kElementBytes + kSumBytes;  // the weight, cosine and sine
  Buffer<Element16> x(kSize), weight(kWidth), y(kSize), grad(kSize), grad_x(kSize),
      grad_weight(kWidth);
  Buffer<float> cosine(kBatchRows * kPairs), sine(kBatchRows * kPairs),
      partial(num_blocks() * kWidth);
  const RmsNormRope op{kBf16, kBatchRows, kBatchRows,    kWidth,        kPairs,      kWidth,
                       1e-5,  x.data(),   weight.data(), cosine.data(), sine.data(), y.data()};
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{kSize * (kElementBytes + kRead), kSize * kElementBytes, 1});
  const std::size_t partials = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(RmsNormRopeBackward{op, kWidth, grad.data(), grad_x.data(),
                                               grad_weight.data(), partial.data()},
                           nullptr);
        }) == Moved{kSize * (3 * kElementBytes + kRead) + partials,
                    kSize * kElementBytes + partials + kWidth * kElementBytes, 2});
}

// A block of threads reads its biases once. Eager backward would read the gradient again to sum it.
TEST_CASE("bias_gelu moves each tensor once") {
  Buffer<Element16> x(kSize), bias(kWidth), y(kSize), grad(kSize), grad_x(kSize), grad_bias(kWidth);
  Buffer<float> partial(num_blocks() * kWidth);
  const BiasGelu op{kBf16, kBatchRows, kWidth, x.data(), bias.data(), y.data()};
  const std::size_t biases = num_blocks() * kWidth * kElementBytes;
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{kSize * kElementBytes + biases, kSize * kElementBytes, 1});
  const std::size_t partials = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(
              BiasGeluBackward{op, grad.data(), grad_x.data(), grad_bias.data(), partial.data()},
              nullptr);
        }) == Moved{2 * kSize * kElementBytes + biases + partials,
                    kSize * kElementBytes + partials + kWidth * kElementBytes, 2});
}

// An add and a norm would move x, branch and sum, and then sum and the norm. An add of the
// gradients would move two gradients and their sum.
TEST_CASE("add_rms_norm moves each tensor once") {
  Buffer<Element16> x(kSize), branch(kSize), weight(kWidth), y(kSize), sum(kSize), grad(kSize),
      grad_sum(kSize), grad_x(kSize), grad_weight(kWidth);
  Buffer<float> partial(num_blocks() * kWidth);
  CHECK(moved_by([&] {
          return cuda::run(RmsNorm{kBf16, kBatchRows, kWidth, kWidth, 1e-5, x.data(), weight.data(),
                                   y.data(), kWidth, branch.data(), sum.data()},
                           nullptr);
        }) == Moved{3 * kSize * kElementBytes, 2 * kSize * kElementBytes, 1});
  const std::size_t partials = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(RmsNormBackward{{kBf16, kBatchRows, kWidth, kWidth, 1e-5, sum.data(),
                                            weight.data(), nullptr},
                                           kWidth,
                                           grad.data(),
                                           grad_x.data(),
                                           grad_weight.data(),
                                           partial.data(),
                                           kWidth,
                                           grad_sum.data()},
                           nullptr);
        }) == Moved{3 * kSize * kElementBytes + num_blocks() * kGroups * kWidth * kElementBytes +
                        partials,
                    kSize * kElementBytes + partials + kWidth * kElementBytes, 2});
}

// 28 bytes for each element: the gradient is read, value and moments are read and written, and the
// parameter is written. A block also reads its parameter's step.
TEST_CASE("adamw moves each tensor once, and updates many parameters in one launch") {
  Buffer<Element16> gradient(kSize), parameter(kSize);
  Buffer<float> value(kSize), first(kSize), second(kSize);
  float step = 1;
  AdamW op{kBf16, 2, 1e-3F, 0.9F, 0.95F, 1e-8F, 0.01F, {}};
  op.tensors[0] = op.tensors[1] = {kSize,         gradient.data(),  value.data(), first.data(),
                                   second.data(), parameter.data(), &step};
  const std::size_t chunks = (kSize + 8191) / 8192;
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{2 * (kSize * (kElementBytes + 3 * kSumBytes) + chunks * kSumBytes),
              2 * kSize * (kElementBytes + 3 * kSumBytes), 1});
}

// In Wan scale and shift are float32. Forward reads them for each row, backward once for each group
// of threads.
TEST_CASE("layer_norm keeps rows, tables and sums in registers") {
  Buffer<Element16> x(kSize), y(kSize), grad(kSize), grad_x(kSize);
  Buffer<float> scale(kWidth), shift(kWidth), grad_scale(kWidth), grad_shift(kWidth),
      partial(2 * num_blocks() * kWidth);
  const LayerNorm op{
      kBf16,        Element::kFloat32, 1,       kBatchRows, kWidth, 0, 0, 1, 1e-6, x.data(),
      scale.data(), shift.data(),      y.data()};
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{kSize * (kElementBytes + 2 * kSumBytes), kSize * kElementBytes, 1});
  const std::size_t tables = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(LayerNormBackward{op, grad.data(), grad_x.data(), grad_scale.data(),
                                             grad_shift.data(), partial.data()},
                           nullptr);
        }) == Moved{2 * kSize * kElementBytes + kGroups * tables + 2 * tables,
                    kSize * kElementBytes + 2 * tables + 2 * kWidth * kSumBytes, 3});
}

// Forward reads the gate for each row, backward once for each warp. The gradient of x is the
// gradient of the result and is not moved.
TEST_CASE("gated_add moves each tensor once") {
  Buffer<Element16> x(kSize), branch(kSize), out(kSize), grad(kSize), grad_branch(kSize);
  Buffer<float> gate(kWidth), grad_gate(kWidth), partial(num_blocks() * kWidth);
  const GatedAdd op{kBf16,    Element::kFloat32, 1,           kBatchRows, kWidth, kWidth,
                    x.data(), branch.data(),     gate.data(), out.data()};
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{kSize * (2 * kElementBytes + kSumBytes), kSize * kElementBytes, 1});
  const std::size_t tables = num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(GatedAddBackward{op, grad.data(), grad_branch.data(), grad_gate.data(),
                                            partial.data()},
                           nullptr);
        }) == Moved{2 * kSize * kElementBytes + kGroups * tables + tables,
                    kSize * kElementBytes + tables + kWidth * kSumBytes, 2});
}

// Forward reads scale and shift for each row. Backward reads the scale once for each warp.
TEST_CASE("modulate keeps its sums in registers") {
  Buffer<Element16> x(kSize), shift(kWidth), scale(kWidth), out(kSize), grad(kSize), grad_x(kSize),
      grad_shift(kWidth), grad_scale(kWidth);
  Buffer<float> partial(2 * num_blocks() * kWidth);
  const Modulate op{kBf16,        kBf16,        1,         kBatchRows,
                    kWidth,       kWidth,       kWidth,    x.data(),
                    shift.data(), scale.data(), out.data()};
  CHECK(moved_by([&] { return cuda::run(op, nullptr); }) ==
        Moved{3 * kSize * kElementBytes, kSize * kElementBytes, 1});
  const std::size_t partials = 2 * num_blocks() * kWidth * kSumBytes;
  CHECK(moved_by([&] {
          return cuda::run(ModulateBackward{op, grad.data(), grad_x.data(), grad_shift.data(),
                                            grad_scale.data(), partial.data()},
                           nullptr);
        }) == Moved{2 * kSize * kElementBytes + num_blocks() * kGroups * kWidth * kElementBytes +
                        partials,
                    kSize * kElementBytes + partials + 2 * kWidth * kElementBytes, 3});
}

// The widths of the models: one warp for a row of 1,536, two for 2,048, four for 4,096, eight for
// 8,192. Rows of 8,200 do not fit into registers.
TEST_CASE("backward reads each row once at the widths of the models, and partial sums are few") {
  constexpr std::size_t kRows = 96;
  for (const std::size_t width : {1536, 2048, 4096, 8192, 8200}) {
    CAPTURE(width);
    const std::size_t size = kRows * width;
    Buffer<Element16> x(size), weight(width), grad(size), grad_x(size), grad_weight(width),
        scale(width), grad_shift(width), grad_scale(width);
    Buffer<float> partial(2 * 3 * width);
    const auto num = static_cast<std::int64_t>(width);
    const RmsNorm norm{kBf16, kRows, num, num, 1e-5, x.data(), weight.data(), nullptr};
    const Moved of_norm = moved_by([&] {
      return cuda::run(RmsNormBackward{norm, num, grad.data(), grad_x.data(), grad_weight.data(),
                                       partial.data()},
                       nullptr);
    });
    const std::size_t groups = width == 1536 ? 8 : width == 2048 ? 4 : width == 4096 ? 2 : 1;
    const std::size_t partials = 3 * width * kSumBytes;
    if (width <= 8192) {
      CHECK(of_norm ==
            Moved{2 * size * kElementBytes + 3 * groups * width * kElementBytes + partials,
                  size * kElementBytes + partials + width * kElementBytes, 2});
    } else {
      CHECK(of_norm.read > 4 * size * kElementBytes);
    }
    const Modulate modulate{kBf16, kBf16,    1,       kRows,        num,    num,
                            num,   x.data(), nullptr, scale.data(), nullptr};
    CHECK(moved_by([&] {
            return cuda::run(ModulateBackward{modulate, grad.data(), grad_x.data(),
                                              grad_shift.data(), grad_scale.data(), partial.data()},
                             nullptr);
          }) == Moved{2 * size * kElementBytes + 3 * kGroups * width * kElementBytes + 2 * partials,
                      size * kElementBytes + 2 * partials + 2 * width * kElementBytes, 3});
  }
}

// Forward reads a chunk's logits once, and the target's logit a second time. Backward replaces the
// logits in place.
TEST_CASE("cross-entropy reads the logits of a chunk once, then computes the gradients in place") {
  const std::vector<std::int64_t> target(kBatchRows, 3);
  Buffer<Element16> logits(kSize);
  Buffer<float> maximum(kBatchRows), sum(kBatchRows), target_logit(kBatchRows),
      logsumexp(kBatchRows);
  float grad_loss = 1;
  CHECK(moved_by([&] {
          return cuda::run(LogitChunk{kBf16, kBatchRows, kWidth, 0, logits.data(), target.data(),
                                      maximum.data(), sum.data(), target_logit.data()},
                           nullptr);
        }) == Moved{(kSize + kBatchRows) * kElementBytes, 0, 1});
  CHECK(moved_by([&] {
          return cuda::run(LogitChunkBackward{kBf16, kBatchRows, kWidth, 0, logits.data(),
                                              target.data(), logsumexp.data(), &grad_loss},
                           nullptr);
        }) == Moved{kSize * kElementBytes, kSize * kElementBytes, 1});
}

}  // namespace
}  // namespace rematch::kernels
