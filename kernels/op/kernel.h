// Declares a fused op's kernels, for sources that see no LibTorch header: nvcc would
// take half a minute for one.
#pragma once

#include <cstdint>

// For the calls that are declared beside their kernels' arguments.
namespace at {
class Tensor;
}
namespace c10 {
enum class ScalarType : std::int8_t;
}

namespace rematch::kernels {

enum class Element : std::uint8_t { kFloat32, kBFloat16, kFloat64 };

// The rows whose sums over columns are made together, one partial sum each; fixed, so that bits do
// not depend on the number of threads.
inline constexpr std::int64_t kRowsInBlock = 32;

inline std::int64_t num_row_blocks(std::int64_t rows) {
  return (rows + kRowsInBlock - 1) / kRowsInBlock;
}

// The kernels that take `Arguments`, plain pointers and sizes. portable: vectorised with what every
// processor of the kind has. avx2, avx512: null elsewhere than on x86-64. cuda: returns a
// cudaError_t, 0 for success; null in a program that is linked without CUDA.
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

// Declares the kernels over `Arguments`: each is called run, in the namespace of what it runs on.
// NAME_cpu.cpp and NAME.cu define them.
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
