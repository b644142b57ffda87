// For tests that need a GPU: where there is none they end, say why, and count as skipped.
#pragma once

#include <cstdlib>
#include <variant>

#include "harness/run/device.h"
#include "tests/support/catch.h"

#define REMATCH_NEEDS_CUDA()                                                      \
  if (const auto usable = ::rematch::usable_device("cuda");                       \
      std::holds_alternative<::rematch::Rejected>(usable)) {                      \
    WARN(std::get<::rematch::Rejected>(usable).message << "\ngpu test: skipped"); \
    return;                                                                       \
  }                                                                               \
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0)
