// Expert parallelism: every rank sends each of its rows to the rank of the row's expert, and
// receives the results. On meta the routing is unknown: this rank is assumed to send the same
// number of rows to every rank, and to receive as many as it sends, multiplied by the spec's
// routing skew.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/preset/parallel.h"

namespace rematch {

class ExpertExchange {
 public:
  // Rank r of ep holds experts r * L to (r + 1) * L - 1, where L = experts / ranks.
  explicit ExpertExchange(const ModelSpec& spec);

  bool is_split() const { return axis_.is_split(); }

  // The rows that this rank's experts process.
  struct Rows {
    at::Tensor x_MD;        // sorted by expert
    at::Tensor row_ends_L;  // int32: where each expert's rows end
    at::Tensor places_M;    // for each received row, its index in x_MD
    // number of rows sent to, and received from, each rank
    std::vector<std::int64_t> sent, received;
  };
  // x_RD holds this rank's rows, sorted by expert. counts_E holds the number of rows of each
  // expert, as int32. The host waits until it knows how many rows each rank sends and receives,
  // because the collective needs these sizes.
  Rows to_experts(const at::Tensor& x_RD, const at::Tensor& counts_E) const;
  // Returns the results [R, D] in the order of the rows that this rank sent. y_MD holds the
  // experts' results for rows.x_MD.
  at::Tensor from_experts(at::Tensor y_MD, const Rows& rows) const;

 private:
  // Returns the number of rows for each rank, which is the sum of counts_E over that rank's
  // experts. On meta, returns equal parts of `assumed_total`.
  std::vector<std::int64_t> rows_by_rank(const at::Tensor& counts_E,
                                         std::int64_t assumed_total) const;

  RankAxis axis_;
  std::int64_t num_local_;
  std::int64_t skew_percent_;
};

}  // namespace rematch
