// Declares a fused op's kernels, for sources that include no LibTorch header. nvcc would take half
// a minute to compile such a header.
#pragma once

#include <cstdint>

// Forward declarations for the headers fused/NAME.h. These headers declare the functions of the ops
// and the arguments of the kernels.
namespace at {
class Tensor;
}
namespace c10 {
enum class ScalarType : std::int8_t;
}

namespace rematch::kernels {

enum class Element : std::uint8_t { kFloat32, kBFloat16, kFloat64 };

// The number of rows that share one partial sum for each column. The number is fixed, so that the
// bits of a sum do not depend on the number of threads.
inline constexpr std::int64_t kRowsInBlock = 32;

inline std::int64_t num_row_blocks(std::int64_t rows) {
  return (rows + kRowsInBlock - 1) / kRowsInBlock;
}

// The kernels that take `Arguments`, which are plain pointers and sizes.
// - `portable` runs on every processor of the architecture.
// - `avx2` and `avx512` are null except on x86-64.
// - `cuda` returns a cudaError_t, 0 for success. It is null in a program that is linked without
// CUDA.
template <typename Arguments>
struct Kernels {
  void (*portable)(const Arguments&);
  void (*avx2)(const Arguments&);
  void (*avx512)(const Arguments&);
  int (*cuda)(const Arguments&, void* stream);
};

}  // namespace rematch::kernels

#if defined(__x86_64__)
#define REMATCH_ON_X86(kernel) kernel
#else
#define REMATCH_ON_X86(kernel) nullptr
#endif

// Declares the kernels for `Arguments`. Every kernel is a function `run` in a namespace that is
// named after its target. NAME_cpu.cpp and NAME.cu define the kernels.
#define REMATCH_KERNELS(Arguments)                                                             \
  namespace portable {                                                                         \
  void run(const Arguments& op);                                                               \
  }                                                                                            \
  namespace avx2 {                                                                             \
  void run(const Arguments& op);                                                               \
  }                                                                                            \
  namespace avx512 {                                                                           \
  void run(const Arguments& op);                                                               \
  }                                                                                            \
  namespace cuda {                                                                             \
  [[gnu::weak]] int run(const Arguments& op, void* stream);                                    \
  }                                                                                            \
  inline Kernels<Arguments> kernels_of(const Arguments&) {                                     \
    return {portable::run, REMATCH_ON_X86(avx2::run), REMATCH_ON_X86(avx512::run), cuda::run}; \
  }
