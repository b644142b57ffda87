// Stand-in for libcublasLt, written from the documented C interface, like cublas.cpp. A matrix
// product is one kernel, whose name gives the type and sizes of the operands.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "harness/dry_cuda/product.h"

namespace dry_cuda {

struct Layout {
  DataType type;
  std::uint64_t rows, columns;
  std::int32_t batch = 1;
};

constexpr std::int32_t kNoEpilogue = 1;

struct Operation {
  std::int32_t transposes_a = 0;
  std::int32_t epilogue = kNoEpilogue;
};

// Layout of cublasLtMatmulHeuristicResult_t.
struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96);

// Attributes of operations and of matrix layouts.
constexpr int kTransposesA = 3;
constexpr int kEpilogue = 7;
constexpr int kBatch = 5;

void copy_if(bool wanted, const void* value, std::size_t bytes, std::int32_t& to) {
  if (wanted && bytes == sizeof to) std::memcpy(&to, value, sizeof to);
}

}  // namespace dry_cuda

extern "C" {

using dry_cuda::copy_if;
using dry_cuda::Heuristic;
using dry_cuda::Layout;
using dry_cuda::Operation;
using Matrix = const void*;
using Scalar = const void*;

std::size_t cublasLtGetVersion() { return 130100; }

int cublasLtMatmulDescCreate(Operation** made, int, int) {
  *made = new Operation;
  return 0;
}
int cublasLtMatmulDescDestroy(Operation* made) {
  delete made;
  return 0;
}
int cublasLtMatmulDescSetAttribute(Operation* made, int which, const void* value,
                                   std::size_t bytes) {
  copy_if(which == dry_cuda::kTransposesA, value, bytes, made->transposes_a);
  copy_if(which == dry_cuda::kEpilogue, value, bytes, made->epilogue);
  return 0;
}

int cublasLtMatmulPreferenceCreate(int** made) {
  *made = new int{};
  return 0;
}
int cublasLtMatmulPreferenceDestroy(int* made) {
  delete made;
  return 0;
}
int cublasLtMatmulPreferenceSetAttribute(int*, int, const void*, std::size_t) { return 0; }

int cublasLtMatrixLayoutCreate(Layout** made, dry_cuda::DataType type, std::uint64_t rows,
                               std::uint64_t columns, std::int64_t) {
  *made = new Layout{type, rows, columns};
  return 0;
}
int cublasLtMatrixLayoutDestroy(Layout* made) {
  delete made;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Layout* made, int which, const void* value,
                                     std::size_t bytes) {
  copy_if(which == dry_cuda::kBatch, value, bytes, made->batch);
  return 0;
}

int cublasLtMatmulAlgoGetHeuristic(void*, Operation*, Layout*, Layout*, Layout*, Layout*, int*,
                                   int wanted, Heuristic* results, int* found) {
  *found = wanted > 0 ? 1 : 0;
  if (wanted > 0) results[0] = {};
  return 0;
}

int cublasLtMatmul(void*, Operation* operation, Scalar, Matrix, Layout* a, Matrix, Layout*, Scalar,
                   Matrix, Layout*, void*, Layout* d, const void*, void*, std::size_t,
                   void* stream) {
  std::string kind = "gemm_lt";
  if (operation->epilogue != dry_cuda::kNoEpilogue) {
    kind += "_epilogue" + std::to_string(operation->epilogue);
  }
  const std::uint64_t inner = operation->transposes_a != 0 ? a->rows : a->columns;
  return dry_cuda::launch_product(
      kind.c_str(), stream, a->type,
      {static_cast<std::int64_t>(d->rows), static_cast<std::int64_t>(d->columns),
       static_cast<std::int64_t>(inner), a->batch});
}

}  // extern "C"
