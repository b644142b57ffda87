// Shapes: R rows that this rank routes, M rows that this rank's experts receive, D dim, E experts,
// L experts of one rank, n ranks.
#include "models/language/expert_exchange.h"

#include <ATen/ops/cumsum.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/sum.h>

#include <optional>
#include <utility>

#include "kernels/collectives/collectives.h"
#include "models/layers/collectives.h"
#include "models/preset/routing.h"

namespace rematch {
namespace {

// Uses a stable sort, so that the rows of one expert stay in the order of the ranks that sent them.
constexpr std::optional<bool> kKeepRankOrder = true;

std::vector<std::int64_t> equal_parts(std::int64_t total, std::int64_t size) {
  std::vector<std::int64_t> parts(size, total / size);
  for (std::int64_t rank = 0; rank < total % size; ++rank) ++parts[rank];
  return parts;
}

// Returns, for each received row, the index of its expert among this rank's experts. Rows arrive
// grouped by rank, and by expert within a rank.
at::Tensor expert_of_rows(const at::Tensor& counts_nL, std::int64_t num_rows) {
  const at::Tensor ends_E = at::cumsum(counts_nL.view(-1), 0, at::kLong);
  // numbers the rows with ones and cumsum; arange would allocate memory on a real device, but none
  // on meta
  at::Tensor places_M = at::ones({num_rows}, ends_E.options());
  places_M = at::cumsum(places_M, 0);
  places_M = places_M.unsqueeze(1);
  const at::Tensor is_past_ME = at::gt(places_M, ends_E);
  const at::Tensor run_M = at::sum(is_past_ME, /*dim=*/1);
  return at::remainder(run_M, counts_nL.size(1));
}

}  // namespace

ExpertExchange::ExpertExchange(const ModelSpec& spec)
    : axis_(rank_axis(spec, "ep")),
      num_local_(spec.at("experts") / axis_.size),
      skew_percent_(routing_skew_percent(spec)) {}

std::vector<std::int64_t> ExpertExchange::rows_by_rank(const at::Tensor& counts_E,
                                                       std::int64_t assumed_total) const {
  at::Tensor rows_n = at::sum(counts_E.view({axis_.size, num_local_}), /*dim=*/1);
  if (rows_n.is_meta()) return equal_parts(assumed_total, axis_.size);
  rows_n = rows_n.to(at::kCPU);
  const auto* rows = rows_n.const_data_ptr<std::int64_t>();
  return {rows, rows + axis_.size};
}

ExpertExchange::Rows ExpertExchange::to_experts(const at::Tensor& x_RD,
                                                const at::Tensor& counts_E) const {
  const std::vector<std::int64_t> even(axis_.size, num_local_);
  const at::Tensor received_E = collectives::all_to_all(counts_E, even, even, axis_.name);
  Rows rows;
  rows.sent = rows_by_rank(counts_E, x_RD.size(0));
  rows.received = rows_by_rank(received_E, assumed_rows(x_RD.size(0), skew_percent_));
  rows.x_MD = exchange(x_RD, rows.received, rows.sent, axis_);
  const at::Tensor counts_nL = received_E.view({axis_.size, num_local_});
  at::Tensor order_M = expert_of_rows(counts_nL, rows.x_MD.size(0));
  order_M = std::get<1>(at::sort(order_M, kKeepRankOrder, /*dim=*/0));
  rows.places_M = std::get<1>(at::sort(order_M, kKeepRankOrder, /*dim=*/0));
  rows.x_MD = at::index_select(rows.x_MD, 0, order_M);
  const at::Tensor counts_L = at::sum(counts_nL, /*dim=*/0);
  rows.row_ends_L = at::cumsum(counts_L, 0, at::kInt);
  return rows;
}

at::Tensor ExpertExchange::from_experts(at::Tensor y_MD, const Rows& rows) const {
  y_MD = at::index_select(y_MD, 0, rows.places_M);
  return exchange(std::move(y_MD), rows.sent, rows.received, axis_);
}

}  // namespace rematch
