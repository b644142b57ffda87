// Stand-in for libcublas, written from cuBLAS's documented C interface, because cuBLAS is a
// download of 423 MB. A matrix product is one kernel, whose name gives the type and sizes of the
// operands. Each function declares only the parameters up to the last one that it reads.
#include <cstddef>
#include <cstdint>

#include "harness/dry_cuda/dry_cuda.h"
#include "harness/dry_cuda/product.h"

namespace dry_cuda {

struct Handle {
  void* stream = nullptr;
  int pointer_mode = 0;
  int math_mode = 0;
};

}  // namespace dry_cuda

extern "C" {

using dry_cuda::DataType;
using dry_cuda::Handle;
using dry_cuda::launch_product;
using Matrix = const void*;
using Scalar = const void*;

int cublasCreate_v2(Handle** handle) {
  if (const int code = dry_cuda_planted("cublasCreate_v2")) return code;
  *handle = new Handle;
  return 0;
}
int cublasDestroy_v2(Handle* handle) {
  delete handle;
  return 0;
}
int cublasSetStream_v2(Handle* handle, void* stream) {
  handle->stream = stream;
  return 0;
}
int cublasSetWorkspace_v2(Handle*, void*, std::size_t) { return 0; }
int cublasGetPointerMode_v2(Handle* handle, int* mode) {
  *mode = handle->pointer_mode;
  return 0;
}
int cublasSetPointerMode_v2(Handle* handle, int mode) {
  handle->pointer_mode = mode;
  return 0;
}
int cublasGetMathMode(Handle* handle, int* mode) {
  *mode = handle->math_mode;
  return 0;
}
int cublasSetMathMode(Handle* handle, int mode) {
  handle->math_mode = mode;
  return 0;
}

#define DRY_PRODUCTS(letter, type)                                                              \
  int cublas##letter##gemm_v2(Handle* handle, int, int, int m, int n, int k) {                  \
    return launch_product("gemm", handle->stream, type, {m, n, k, 1});                          \
  }                                                                                             \
  int cublas##letter##gemmStridedBatched(Handle* handle, int, int, int m, int n, int k, Scalar, \
                                         Matrix, int, std::int64_t, Matrix, int, std::int64_t,  \
                                         Scalar, void*, int, std::int64_t, int batch) {         \
    return launch_product("gemm", handle->stream, type, {m, n, k, batch});                      \
  }                                                                                             \
  int cublas##letter##gemv_v2(Handle* handle, int, int m, int n) {                              \
    return launch_product("gemv", handle->stream, type, {m, 1, n, 1});                          \
  }
DRY_PRODUCTS(S, DataType::kFloat32)
DRY_PRODUCTS(D, DataType::kFloat64)
DRY_PRODUCTS(C, DataType::kComplex64)
DRY_PRODUCTS(Z, DataType::kComplex128)
#undef DRY_PRODUCTS

int cublasSdot_v2(Handle* handle, int n) {
  return launch_product("dot", handle->stream, DataType::kFloat32, {1, 1, n, 1});
}
int cublasDdot_v2(Handle* handle, int n) {
  return launch_product("dot", handle->stream, DataType::kFloat64, {1, 1, n, 1});
}
int cublasDotEx(Handle* handle, int n, const void*, DataType type) {
  return launch_product("dot", handle->stream, type, {1, 1, n, 1});
}
int cublasSgemmEx(Handle* handle, int, int, int m, int n, int k, Scalar, Matrix, DataType type) {
  return launch_product("gemm", handle->stream, type, {m, n, k, 1});
}
int cublasGemmEx(Handle* handle, int, int, int m, int n, int k, Scalar, Matrix, DataType type) {
  return launch_product("gemm", handle->stream, type, {m, n, k, 1});
}
int cublasGemmStridedBatchedEx(Handle* handle, int, int, int m, int n, int k, Scalar, Matrix,
                               DataType type, int, std::int64_t, Matrix, int, int, std::int64_t,
                               Scalar, void*, int, int, std::int64_t, int batch) {
  return launch_product("gemm", handle->stream, type, {m, n, k, batch});
}

}  // extern "C"
