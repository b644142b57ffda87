// Measures how close the fused ops' CUDA kernels come to the card's memory bandwidth. A kernel's
// bandwidth is the least number of bytes that it must move (kernels/README.md), divided by the time
// between two CUDA events.
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/clocks.h"
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
#include "policies/predict/device/device_sheet.h"
#include "tests/support/cuda.h"

namespace rematch::kernels {
namespace {

constexpr auto kBf16 = Element::kBFloat16;
constexpr auto kFloat32 = Element::kFloat32;
constexpr int kLaunches = 20;  // number of launches between two events
constexpr int kSamples = 5;
const c10::Device kDevice(c10::kCUDA, 0);

// More bytes than any card's cache holds. Launches cycle through copies of the tensors. Together
// the copies exceed this size, so that each launch reads from memory.
constexpr double kMoreThanCaches = 256 << 20;
constexpr int kMaxCopies = 16;

struct Timed {
  std::string name;
  double least_bytes = 0;
  std::vector<std::function<int()>> copies;  // one launch for each copy of the tensors
};

// Owns tensors of random numbers. Zeros would switch fewer transistors, so the card would draw less
// power and keep higher clocks than in training.
class Workspace {
 public:
  void* of(c10::ScalarType dtype, std::int64_t size) {
    return keep(at::randn({size}, at::TensorOptions().device(kDevice).dtype(dtype)));
  }
  void* bf16(std::int64_t size) { return of(at::kBFloat16, size); }
  void* f32(std::int64_t size) { return of(at::kFloat, size); }
  std::int64_t* below(std::int64_t limit, std::int64_t size) {
    const auto options = at::TensorOptions().device(kDevice).dtype(at::kLong);
    return static_cast<std::int64_t*>(keep(at::randint(limit, {size}, options)));
  }

 private:
  void* keep(at::Tensor tensor) {
    tensors_.push_back(std::move(tensor));
    return tensors_.back().mutable_data_ptr();
  }

  std::vector<at::Tensor> tensors_;
};

// Rows of `width` elements. In a model, the rows are tokens.
struct Shape {
  std::int64_t rows, width;

  std::int64_t size() const { return rows * width; }
  std::string words() const { return std::to_string(rows) + " x " + std::to_string(width); }
};

// Each call of `launch` allocates new tensors and returns the arguments of a kernel launch. `bytes`
// is the number of bytes moved per element of x, from the table in kernels/README.md.
template <class Launch>
Timed timed(const std::string& name, const Shape& shape, double bytes, const Launch& launch) {
  Timed kernel{name + " " + shape.words(), bytes * static_cast<double>(shape.size()), {}};
  const int num_copies =
      std::min(kMaxCopies, 1 + static_cast<int>(kMoreThanCaches / kernel.least_bytes));
  for (int copy = 0; copy < num_copies; ++copy) {
    kernel.copies.emplace_back([arguments = launch()] { return cuda::run(arguments, nullptr); });
  }
  return kernel;
}

RmsNorm rms_norm(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  return {kBf16,
          rows,
          width,
          width,
          1e-5,
          memory.bf16(shape.size()),
          memory.bf16(width),
          memory.bf16(shape.size())};
}

// Uses the dtypes of models/layers: inputs are float32, as the preceding norm returns them, and the
// result is bfloat16 for the following matmul.
Modulate modulate(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  return {kFloat32,
          kBf16,
          1,
          rows,
          width,
          width,
          width,
          memory.f32(shape.size()),
          memory.f32(width),
          memory.f32(width),
          memory.bf16(shape.size())};
}

void* partial_sums(Workspace& memory, const Shape& shape) {
  return memory.f32(2 * num_row_blocks(shape.rows) * shape.width);
}

std::vector<Timed> silu_muls(Workspace& memory, const Shape& shape) {
  const std::int64_t size = shape.size();
  const auto bf16 = [&memory, size] { return memory.bf16(size); };
  return {timed("silu_mul", shape, 6,
                [&] {
                  return SiluMul{kBf16, size, bf16(), bf16(), bf16()};
                }),
          timed("silu_mul backward", shape, 10, [&] {
            return SiluMulBackward{kBf16, size, bf16(), bf16(), bf16(), bf16(), bf16()};
          })};
}

// The gate and the up of a row are neighbours, as a packed weight returns them.
std::vector<Timed> packed_silu_muls(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  const std::int64_t size = shape.size();
  const auto gate = [&memory, size] { return static_cast<char*>(memory.bf16(2 * size)); };
  const std::int64_t to_up = width * 2;  // bytes
  return {timed("packed_silu_mul", shape, 6,
                [&, width = width] {
                  char* const x = gate();
                  return SiluMul{kBf16, size, x, x + to_up, memory.bf16(size), width};
                }),
          timed("packed_silu_mul backward", shape, 10, [&, width = width] {
            char* const x = gate();
            char* const grad_x = gate();
            return SiluMulBackward{kBf16,     size,   memory.bf16(size), x,
                                   x + to_up, grad_x, grad_x + to_up,    width};
          })};
}

// Returns the launches of the norm and the rotary embedding of a DiT's queries and keys.
std::vector<Timed> rotated_norms(Workspace& memory, const Shape& shape, std::int64_t heads) {
  const auto [rows, width] = shape;
  const std::int64_t size = shape.size();
  const std::int64_t pairs = width / heads / 2;
  const auto norm = [&, rows = rows, width = width] {
    return RmsNormRope{kBf16,
                       rows,
                       rows,
                       width,
                       pairs,
                       width,
                       1e-6,
                       memory.bf16(size),
                       memory.bf16(width),
                       memory.f32(rows * pairs),
                       memory.f32(rows * pairs),
                       memory.bf16(size)};
  };
  return {timed("rms_norm_rope", shape, 4, norm),
          timed("rms_norm_rope backward", shape, 6, [&, width = width] {
            return RmsNormRopeBackward{norm(),
                                       width,
                                       memory.bf16(size),
                                       memory.bf16(size),
                                       memory.bf16(width),
                                       partial_sums(memory, shape)};
          })};
}

// Returns the launches of a feed-forward's bias and GELU.
std::vector<Timed> biased_gelus(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  const auto bf16 = [&memory, &shape] { return memory.bf16(shape.size()); };
  const auto gelu = [&, rows = rows, width = width] {
    return BiasGelu{kBf16, rows, width, bf16(), memory.bf16(width), bf16()};
  };
  return {timed("bias_gelu", shape, 4, gelu), timed("bias_gelu backward", shape, 6, [&] {
            return BiasGeluBackward{gelu(), bf16(), bf16(), memory.bf16(shape.width),
                                    partial_sums(memory, shape)};
          })};
}

// Returns the launches of norm and rotary embedding, which language models and diffusion
// transformers share.
std::vector<Timed> row_kernels(Workspace& memory, const Shape& shape, std::int64_t heads) {
  const auto [rows, width] = shape;
  const std::int64_t size = shape.size();
  const std::int64_t pairs = width / heads / 2;
  return {timed("rope", shape, 4,
                [&, rows = rows, width = width] {
                  return Rope{kBf16,
                              1,
                              rows,
                              heads,
                              pairs,
                              size,
                              width,
                              2 * pairs,
                              1.0,
                              memory.bf16(size),
                              memory.f32(rows * pairs),
                              memory.f32(rows * pairs),
                              memory.bf16(size)};
                }),
          timed("rms_norm", shape, 4, [&] { return rms_norm(memory, shape); }),
          timed("rms_norm backward", shape, 6, [&, width = width] {
            return RmsNormBackward{rms_norm(memory, shape), width,
                                   memory.bf16(size),       memory.bf16(size),
                                   memory.bf16(width),      partial_sums(memory, shape)};
          })};
}

// Uses the dtypes of Wan: the residual stream is bfloat16, and the tables are float32.
LayerNorm layer_norm(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  return {kBf16,
          kFloat32,
          1,
          rows,
          width,
          width,
          width,
          1,
          1e-6,
          memory.bf16(shape.size()),
          memory.f32(width),
          memory.f32(width),
          memory.bf16(shape.size())};
}

GatedAdd gated_add(Workspace& memory, const Shape& shape) {
  const auto [rows, width] = shape;
  return {kBf16,
          kFloat32,
          1,
          rows,
          width,
          width,
          memory.bf16(shape.size()),
          memory.bf16(shape.size()),
          memory.f32(width),
          memory.bf16(shape.size())};
}

// Returns the launches of a language model's residual add with the norm that follows.
std::vector<Timed> added_norms(Workspace& memory, const Shape& shape) {
  const std::int64_t width = shape.width;
  const auto bf16 = [&memory, &shape] { return memory.bf16(shape.size()); };
  return {timed("add_rms_norm", shape, 8,
                [&] {
                  RmsNorm norm = rms_norm(memory, shape);
                  norm.branch_stride = width;
                  norm.branch = bf16();
                  norm.sum = bf16();
                  return norm;
                }),
          timed("add_rms_norm backward", shape, 8, [&] {
            return RmsNormBackward{
                rms_norm(memory, shape),     width, bf16(), bf16(), memory.bf16(width),
                partial_sums(memory, shape), width, bf16()};
          })};
}

// Returns the launches of Wan's modulated norm and gated residual.
std::vector<Timed> modulated_residuals(Workspace& memory, const Shape& shape) {
  const auto bf16 = [&memory, &shape] { return memory.bf16(shape.size()); };
  return {timed("layer_norm", shape, 4, [&] { return layer_norm(memory, shape); }),
          timed("layer_norm backward", shape, 6,
                [&] {
                  return LayerNormBackward{layer_norm(memory, shape),
                                           bf16(),
                                           bf16(),
                                           memory.f32(shape.width),
                                           memory.f32(shape.width),
                                           partial_sums(memory, shape)};
                }),
          timed("gated_add", shape, 6, [&] { return gated_add(memory, shape); }),
          timed("gated_add backward", shape, 6, [&] {
            return GatedAddBackward{gated_add(memory, shape), bf16(), bf16(),
                                    memory.f32(shape.width), partial_sums(memory, shape)};
          })};
}

std::vector<Timed> modulates(Workspace& memory, const Shape& shape) {
  return {timed("modulate", shape, 6, [&] { return modulate(memory, shape); }),
          timed("modulate backward", shape, 10, [&] {
            return ModulateBackward{modulate(memory, shape),  memory.bf16(shape.size()),
                                    memory.f32(shape.size()), memory.f32(shape.width),
                                    memory.f32(shape.width),  partial_sums(memory, shape)};
          })};
}

std::vector<Timed> cross_entropies(Workspace& memory, const Shape& logits) {
  const auto [rows, width] = logits;
  const auto sums = [&memory, rows = rows] { return memory.f32(rows); };
  return {
      timed("cross-entropy chunk", logits, 2,
            [&, rows = rows, width = width] {
              return LogitChunk{
                  kBf16,  rows,   width, 0, memory.bf16(logits.size()), memory.below(width, rows),
                  sums(), sums(), sums()};
            }),
      timed("cross-entropy chunk backward", logits, 4, [&, rows = rows, width = width] {
        return LogitChunkBackward{
            kBf16,  rows,         width, 0, memory.bf16(logits.size()), memory.below(width, rows),
            sums(), memory.f32(1)};
      })};
}

// 64 bfloat16 parameters with float32 masters and moments, which one launch updates.
std::vector<Timed> updates(Workspace& memory, const Shape& parameter) {
  const std::int64_t size = parameter.size();
  const Shape all{kMaxAdamWTensors * parameter.rows, parameter.width};
  return {timed("adamw", all, 28, [&] {
    AdamW op{kBf16, kMaxAdamWTensors, 1e-3F, 0.9F, 0.95F, 1e-8F, 0.01F, {}};
    for (AdamWTensor& tensor : op.tensors) {
      tensor = {size,
                memory.bf16(size),
                static_cast<float*>(memory.f32(size)),
                static_cast<float*>(memory.f32(size)),
                static_cast<float*>(memory.f32(size)),
                memory.bf16(size),
                static_cast<const float*>(memory.f32(1))};
    }
    return op;
  })};
}

using Group = std::function<std::vector<Timed>(Workspace&)>;

// Shapes of two models. llama3_1b runs 4 x 2,048 tokens with 32 heads, a SwiGLU width of 8,192 and
// chunks of 16,384 logits. wan_1_3b runs 31,200 tokens with 12 heads and a feed-forward width of
// 8,960.
std::vector<Group> kernels_of_models() {
  return {[](Workspace& memory) {
            return silu_muls(memory, {8192, 8192});
          },
          [](Workspace& memory) {
            return packed_silu_muls(memory, {8192, 8192});
          },
          [](Workspace& memory) {
            return row_kernels(memory, {8192, 2048}, 32);
          },
          [](Workspace& memory) {
            return added_norms(memory, {8192, 2048});
          },
          [](Workspace& memory) {
            return cross_entropies(memory, {8192, 16384});
          },
          [](Workspace& memory) {
            return row_kernels(memory, {31200, 1536}, 12);
          },
          [](Workspace& memory) {
            return modulated_residuals(memory, {31200, 1536});
          },
          [](Workspace& memory) {
            return modulates(memory, {31200, 1536});
          },
          [](Workspace& memory) {
            return rotated_norms(memory, {31200, 1536}, 12);
          },
          [](Workspace& memory) {
            return biased_gelus(memory, {31200, 8960});
          },
          [](Workspace& memory) {
            return updates(memory, {1024, 2048});
          }};
}

// Returns the shortest of several measured times, because disturbances only make a launch slower.
double seconds_of(const Timed& kernel) {
  double least = 0;
  std::size_t copy = 0;
  for (int sample = 0; sample <= kSamples; ++sample) {
    StepClock clock(kDevice);
    clock.begin();
    for (int launch = 0; launch < kLaunches; ++launch) {
      REQUIRE(kernel.copies[copy++ % kernel.copies.size()]() == 0);
    }
    clock.part_done(Phase::kForward);
    clock.end();
    const auto times = clock.by_phase();
    const double seconds = std::chrono::duration<double>(times[0]).count();
    if (sample > 0)
      least = sample == 1 ? seconds : std::min(least, seconds);  // sample 0 only
                                                                 // warms up
  }
  return least / kLaunches;
}

TEST_CASE("prints the memory bandwidth that each fused kernel reaches", "[.bandwidth]") {
  REMATCH_NEEDS_GPU();
  const auto card = cuda_device();
  const DeviceSheet* const sheet = sheet_of_card(card->name);
  for (const Group& group : kernels_of_models()) {
    Workspace memory;
    for (const Timed& kernel : group(memory)) {
      const double rate = kernel.least_bytes / seconds_of(kernel);
      std::printf("bandwidth: %s: %.0f GB/s of least bytes", kernel.name.c_str(), rate / 1e9);
      if (sheet != nullptr) {
        std::printf(", %.2f of the card's %.0f", rate / sheet->memory_bytes_per_second,
                    sheet->memory_bytes_per_second / 1e9);
      }
      std::printf("\n");
    }
  }
}

TEST_CASE("every kernel in the bandwidth table launches and is timed", "[device]") {
  REMATCH_NEEDS_CUDA();
  Workspace memory;
  std::vector<Timed> kernels = silu_muls(memory, {64, 512});
  for (auto& more : {packed_silu_muls(memory, {64, 512}), rotated_norms(memory, {64, 512}, 16),
                     biased_gelus(memory, {64, 512}), row_kernels(memory, {64, 512}, 16),
                     modulates(memory, {64, 512}), cross_entropies(memory, {64, 512}),
                     added_norms(memory, {64, 512}), modulated_residuals(memory, {64, 512}),
                     updates(memory, {8, 512})}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  CHECK(kernels.size() == 22);
  for (const Timed& kernel : kernels) {
    CAPTURE(kernel.name);
    CHECK(kernel.copies.size() == kMaxCopies);
    CHECK(seconds_of(kernel) > 0);
  }
}

// The copies must exceed a cache of 128 MiB, so that the cache cannot keep a launch's tensors until
// they are used again.
TEST_CASE("with the models' tensor shapes, the launches move more bytes than a card's cache holds",
          "[device]") {
  REMATCH_NEEDS_CUDA();
  std::vector<std::string> names;
  for (const Group& group : kernels_of_models()) {
    Workspace memory;
    for (const Timed& kernel : group(memory)) {
      CAPTURE(kernel.name);
      CHECK(kernel.least_bytes * static_cast<double>(kernel.copies.size()) > kMoreThanCaches);
      names.push_back(kernel.name);
    }
  }
  CHECK(names.size() == 25);
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
}

}  // namespace
}  // namespace rematch::kernels
