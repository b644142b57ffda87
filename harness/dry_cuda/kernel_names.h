// Looks up the kernels that the dry device has recorded, by parts of their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/dry_cuda/dry_cuda.h"

namespace dry_cuda {

inline std::vector<DryCudaRecord> records() {
  std::vector<DryCudaRecord> all;
  for (std::size_t index = 0; index < dry_cuda_size(); ++index) {
    all.push_back(*dry_cuda_record(index));
  }
  return all;
}

// Mangled names contain the function's name verbatim.
inline std::int64_t num_kernels(std::string_view part) {
  std::int64_t count = 0;
  for (const DryCudaRecord& record : records()) {
    const bool fits = std::string_view(record.name).find(part) != std::string_view::npos;
    if (record.kind == DRY_CUDA_KERNEL && fits) ++count;
  }
  return count;
}

inline std::set<std::uint64_t> launching_threads() {
  std::set<std::uint64_t> threads;
  for (const DryCudaRecord& record : records()) threads.insert(record.thread);
  return threads;
}

}  // namespace dry_cuda
