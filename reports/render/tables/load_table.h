// Which batch, or number of tokens, has the highest throughput on a device: the loads that were
// tried, as a table and a sentence.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "policies/base/bytes.h"
#include "policies/search/front/largest_load.h"
#include "reports/render/tables/grid.h"

namespace rematch {

// The fastest plan within the budget of one load.
struct LoadAnswer {
  double tokens_per_second = 0;  // of one batch: of a rank, or of the ranks that share it
  std::chrono::nanoseconds step_time{};
  Bytes peak;
  std::int64_t num_recomputed = 0;
  std::string saves;
};

struct LoadQuestion {
  std::string model;
  std::string device;
  Bytes budget;
  int world = 1;          // ranks
  int num_batches = 1;    // that they train on side by side, each of so many tokens
  std::string dimension;  // "batch"
  std::int64_t most = 0;  // that was asked for
};

// Empty if no load fits.
std::string loads_to_text(const LoadQuestion& question, const LargestLoad& found,
                          const std::map<std::int64_t, LoadAnswer>& answers, TableFormat format,
                          std::size_t width);

}  // namespace rematch
