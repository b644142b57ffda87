// Experts split over ranks: every rank routes its own rows, sends each to the rank of its expert
// and gets the results back. On meta, where routing is unknown, ranks get equal parts.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "models/preset/parallel.h"

namespace rematch {

class ExpertExchange {
 public:
  // Rank r of the axis has experts r * L to (r + 1) * L - 1 of num_experts = L * ranks.
  ExpertExchange(RankAxis axis, std::int64_t num_experts)
      : axis_(std::move(axis)), num_local_(num_experts / axis_.size) {}

  bool is_split() const { return axis_.is_split(); }

  // The rows that this rank's experts work on.
  struct Rows {
    at::Tensor x_MD;                           // by expert
    at::Tensor row_ends_L;                     // int32: where the rows of each expert end
    at::Tensor places_M;                       // of the rows as they came, among x_MD's
    std::vector<std::int64_t> sent, received;  // by rank
  };
  // x_RD: this rank's rows by expert; counts_E: how many each expert gets of them, int32. Reads the
  // counts of ranks on the host.
  Rows to_experts(const at::Tensor& x_RD, const at::Tensor& counts_E) const;
  // y_MD, the experts' results for rows.x_MD, as the rows that this rank sent: [R, D].
  at::Tensor from_experts(at::Tensor y_MD, const Rows& rows) const;

 private:
  // How many rows of each rank there are: sums of counts_E over a rank's experts.
  std::vector<std::int64_t> rows_by_rank(const at::Tensor& counts_E, std::int64_t total) const;

  RankAxis axis_;
  std::int64_t num_local_;
};

}  // namespace rematch
