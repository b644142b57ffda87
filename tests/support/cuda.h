// Macros for tests that need a CUDA device. Without a device the test returns, prints the reason,
// and counts as skipped.
#pragma once

#include <cstdlib>
#include <variant>

#include "harness/measure/cuda_device.h"
#include "harness/training/device.h"
#include "policies/base/rejected.h"
#include "tests/support/catch.h"

// For tests tagged [device], which check host code and need no value that a kernel computes. They
// also run on the dry device.
#define REMATCH_NEEDS_CUDA()                                                         \
  if (const auto usable = ::rematch::usable_device("cuda");                          \
      std::holds_alternative<::rematch::Rejected>(usable)) {                         \
    WARN(std::get<::rematch::Rejected>(usable).message << "\ndevice test: skipped"); \
    return;                                                                          \
  }                                                                                  \
  static_assert(true)

// For tests tagged [gpu], which check values. cuBLAS is deterministic only with a workspace of
// fixed size.
#define REMATCH_NEEDS_GPU()                                       \
  REMATCH_NEEDS_CUDA();                                           \
  if (::rematch::on_dry_device()) {                               \
    WARN("the dry device computes no values\ngpu test: skipped"); \
    return;                                                       \
  }                                                               \
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0)
