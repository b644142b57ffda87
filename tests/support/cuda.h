// For tests that need a CUDA device: where there is none they end, say why, and count as skipped.
#pragma once

#include <cstdlib>
#include <variant>

#include "harness/measure/cuda_device.h"
#include "harness/training/device.h"
#include "tests/support/catch.h"

// Tagged [device]: a test of what the host does, which needs no value that a kernel makes. Runs on
// the dry device too.
#define REMATCH_NEEDS_CUDA()                                                         \
  if (const auto usable = ::rematch::usable_device("cuda");                          \
      std::holds_alternative<::rematch::Rejected>(usable)) {                         \
    WARN(std::get<::rematch::Rejected>(usable).message << "\ndevice test: skipped"); \
    return;                                                                          \
  }                                                                                  \
  static_assert(true)

// Tagged [gpu]: a test of values. cuBLAS repeats its bits only with a workspace of fixed size.
#define REMATCH_NEEDS_GPU()                                       \
  REMATCH_NEEDS_CUDA();                                           \
  if (::rematch::on_dry_device()) {                               \
    WARN("the dry device computes no values\ngpu test: skipped"); \
    return;                                                       \
  }                                                               \
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0)
