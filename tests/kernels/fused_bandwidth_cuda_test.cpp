// How near the CUDA kernels of the fused ops come to the card's memory bandwidth: the least bytes
// that any kernel moves (kernels/README.md), over the time between the device's events.
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "harness/measure/clocks.h"
#include "kernels/fused/linear_cross_entropy.h"
#include "kernels/fused/modulate.h"
#include "kernels/fused/rms_norm.h"
#include "kernels/fused/rope.h"
#include "kernels/fused/silu_mul.h"
#include "policies/predict/device/device_sheet.h"
#include "tests/support/cuda.h"

namespace rematch::kernels {
namespace {

constexpr auto kBf16 = Element::kBFloat16;
constexpr int kLaunches = 20;  // between two events
constexpr int kSamples = 5;
const c10::Device kDevice(c10::kCUDA, 0);

struct Timed {
  std::string name;
  double least_bytes = 0;
  std::function<int()> run;
};

// Tensors of random sizes are not worth it: contents do not change a kernel's time.
class Workspace {
 public:
  void* of(c10::ScalarType dtype, std::int64_t size) {
    tensors_.push_back(at::zeros({size}, at::TensorOptions().device(kDevice).dtype(dtype)));
    return tensors_.back().mutable_data_ptr();
  }
  void* bf16(std::int64_t size) { return of(at::kBFloat16, size); }
  void* f32(std::int64_t size) { return of(at::kFloat, size); }

 private:
  std::vector<at::Tensor> tensors_;
};

// Rows of `width` elements; bytes as in the README's table, for each of x's elements.
std::vector<Timed> timed_kernels(Workspace& memory, std::int64_t rows, std::int64_t width) {
  const std::int64_t size = rows * width;
  const std::int64_t partials = 2 * num_row_blocks(rows) * width;
  constexpr std::int64_t kHeads = 16;
  const std::int64_t pairs = width / kHeads / 2;
  void* const x = memory.bf16(size);
  void* const y = memory.bf16(size);
  void* const z = memory.bf16(size);
  void* const grad_x = memory.bf16(size);
  void* const grad_y = memory.bf16(size);
  void* const row = memory.bf16(width);
  void* const grad_row = memory.bf16(width);
  void* const other_grad_row = memory.bf16(width);
  void* const partial = memory.f32(partials);
  void* const cosine = memory.f32(rows * pairs);
  void* const sine = memory.f32(rows * pairs);
  void* const row_sums = memory.f32(4 * rows);
  auto* const sums = static_cast<float*>(row_sums);
  auto* const target = static_cast<std::int64_t*>(memory.of(at::kLong, rows));
  const RmsNorm rms{kBf16, rows, width, width, 1e-5, x, row, y};
  const Modulate modulate{kBf16, kBf16, 1, rows, width, width, width, x, row, row, y};
  const auto timed = [size](const char* name, double bytes, auto arguments) {
    return Timed{name, bytes * static_cast<double>(size),
                 [arguments] { return cuda::run(arguments, nullptr); }};
  };
  return {
      timed("silu_mul", 6, SiluMul{kBf16, size, x, y, z}),
      timed("silu_mul backward", 10, SiluMulBackward{kBf16, size, z, x, y, grad_x, grad_y}),
      timed("rope", 4,
            Rope{kBf16, 1, rows, kHeads, pairs, size, width, 2 * pairs, 1.0, x, cosine, sine, y}),
      timed("rms_norm", 4, rms),
      timed("rms_norm backward", 6, RmsNormBackward{rms, width, grad_y, grad_x, grad_row, partial}),
      timed("modulate", 4, modulate),
      timed("modulate backward", 6,
            ModulateBackward{modulate, grad_y, grad_x, grad_row, other_grad_row, partial}),
      timed("cross-entropy chunk", 2,
            LogitChunk{kBf16, rows, width, 0, x, target, sums, sums + rows, sums + 2 * rows}),
      timed("cross-entropy chunk backward", 4,
            LogitChunkBackward{kBf16, rows, width, 0, x, target, sums, sums + 3 * rows})};
}

// The quickest: bandwidth is what the card can do.
double seconds_of(const Timed& kernel) {
  double least = 0;
  for (int sample = 0; sample <= kSamples; ++sample) {
    StepClock clock(kDevice);
    clock.begin();
    for (int launch = 0; launch < kLaunches; ++launch) REQUIRE(kernel.run() == 0);
    clock.end();
    const double seconds = std::chrono::duration<double>(clock.parts().front()).count();
    if (sample > 0) least = sample == 1 ? seconds : std::min(least, seconds);  // 0: warming up
  }
  return least / kLaunches;
}

// 16,384 rows of 4,096: 128 MiB a tensor, more than any card's cache holds.
TEST_CASE("the fused kernels' share of the card's bandwidth", "[.bandwidth]") {
  REMATCH_NEEDS_GPU();
  const auto card = cuda_device();
  const DeviceSheet* const sheet = sheet_of_card(card->name);
  Workspace memory;
  for (const Timed& kernel : timed_kernels(memory, 16384, 4096)) {
    const double rate = kernel.least_bytes / seconds_of(kernel);
    std::printf("bandwidth: %s: %.0f GB/s of least bytes", kernel.name.c_str(), rate / 1e9);
    if (sheet != nullptr) {
      std::printf(", %.2f of the card's %.0f", rate / sheet->memory_bytes_per_second,
                  sheet->memory_bytes_per_second / 1e9);
    }
    std::printf("\n");
  }
}

TEST_CASE("every kernel whose bandwidth is measured launches and is timed", "[device]") {
  REMATCH_NEEDS_CUDA();
  Workspace memory;
  const std::vector<Timed> kernels = timed_kernels(memory, 64, 512);
  CHECK(kernels.size() == 9);
  for (const Timed& kernel : kernels) {
    CAPTURE(kernel.name);
    CHECK(seconds_of(kernel) > 0);
  }
}

}  // namespace
}  // namespace rematch::kernels
