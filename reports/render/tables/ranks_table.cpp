#include "reports/render/tables/ranks_table.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "policies/base/format.h"
#include "reports/record/amount_of.h"
#include "reports/render/tables/grid.h"

namespace rematch {
namespace {

using table::Alignment;
using table::bytes_cell;
using table::Grid;

std::set<std::string> kinds_in(const PolicyComparison& comparison) {
  std::set<std::string> kinds;
  for (const ComparedPoint& compared : comparison.points) {
    if (!compared.point->ranks) continue;
    for (const auto& in_phase : compared.point->ranks->collectives) {
      for (const auto& [kind, count] : in_phase) kinds.insert(kind);
    }
  }
  return kinds;
}

std::string executed_cell(const RanksRecord& ranks, const std::string& kind) {
  const auto in_step = [&](std::int64_t issued) {
    return format_per_step(issued, ranks.counted_steps);
  };
  const auto of = [&](Phase phase) { return amount_of(ranks.collectives, phase, kind); };
  return in_step(of(Phase::kForward)) + "/" + in_step(of(Phase::kRecompute)) + "/" +
         in_step(of(Phase::kBackward) + of(Phase::kOptimizer));
}

Bytes moved_in_step(const RanksRecord& ranks) {
  std::int64_t total = 0;
  for (const auto& in_phase : ranks.collective_bytes) {
    for (const auto& [kind, bytes] : in_phase) total += bytes;
  }
  return Bytes{total / std::max(1, ranks.counted_steps)};
}

std::string peaks_cell(const PointRecord& point) {
  const RanksRecord& ranks = *point.ranks;
  if (const auto rank = point.identity.pretended_rank) {
    return "rank " + std::to_string(*rank) + " alone";
  }
  std::vector<Bytes> peaks;
  for (const RankRecord& rank : ranks.ranks) {
    if (rank.peak_allocated) peaks.push_back(*rank.peak_allocated);
  }
  if (peaks.empty()) return table::kNotMeasured;
  const auto [least, most] = std::minmax_element(peaks.begin(), peaks.end());
  if (*least == *most) return "all " + format_bytes(*most);
  return format_bytes(*least) + " to " + format_bytes(*most) + " (rank " +
         std::to_string(ranks.worst_rank) + ")";
}

}  // namespace

ExplainedGrid ranks_grid(const PolicyComparison& comparison) {
  const std::set<std::string> kinds = kinds_in(comparison);
  Grid grid{{{"policy", Alignment::kLeft}, {"schedule", Alignment::kLeft}}};
  for (const std::string& kind : kinds) grid.columns.push_back({kind});
  grid.columns.push_back({"moved"});
  grid.columns.push_back({"peaks of ranks", Alignment::kLeft});
  for (const ComparedPoint& compared : comparison.points) {
    const PointRecord& point = *compared.point;
    if (!point.ranks) continue;
    table::Row row{{point.policy, std::string(to_string(point.identity.schedule))}, ""};
    for (const std::string& kind : kinds) row.cells.push_back(executed_cell(*point.ranks, kind));
    row.cells.push_back(bytes_cell(moved_in_step(*point.ranks)));
    row.cells.push_back(peaks_cell(point));
    grid.rows.push_back(std::move(row));
  }
  return {grid,
          "Collectives: issued per step by each rank in forward/recompute/backward; backward "
          "includes the gradient sums that follow it. Moved: the bytes of all collectives of a "
          "step; a collective counts its input or its output on a rank, whichever is larger."};
}

namespace {

const HostRecord* host_of(const ComparedPoint& compared) {
  const PointRecord& point = *compared.point;
  return point.memory && point.memory->host ? &*point.memory->host : nullptr;
}

bool has_times(const PolicyComparison& comparison) {
  return std::any_of(comparison.points.begin(), comparison.points.end(),
                     [](const ComparedPoint& compared) {
                       const HostRecord* host = host_of(compared);
                       return host != nullptr && (host->hidden_time || host->exposed_time);
                     });
}

}  // namespace

ExplainedGrid host_grid(const PolicyComparison& comparison) {
  Grid grid{{{"policy", Alignment::kLeft},
             {"schedule", Alignment::kLeft},
             {"host peak"},
             {"copied out"},
             {"copied back"}}};
  const bool times = has_times(comparison);
  if (times) {
    grid.columns.push_back({"hidden"});
    grid.columns.push_back({"exposed"});
  }
  for (const ComparedPoint& compared : comparison.points) {
    const HostRecord* host = host_of(compared);
    if (host == nullptr) continue;
    const PointRecord& point = *compared.point;
    table::Row row{
        {point.policy, std::string(to_string(point.identity.schedule)), bytes_cell(host->peak),
         bytes_cell(host->copied_out), bytes_cell(host->copied_back)},
        ""};
    if (times) {
      row.cells.push_back(table::duration_cell(host->hidden_time));
      row.cells.push_back(table::duration_cell(host->exposed_time));
    }
    grid.rows.push_back(std::move(row));
  }
  std::string words =
      "Host peak: peak bytes of host memory that offloaded tensors take. Copied out, copied back: "
      "bytes per step from the device to the host, and back.";
  if (times) {
    words +=
        " Hidden, exposed: copy time that overlaps compute, and copy time that compute waits for.";
  }
  return {grid, words};
}

}  // namespace rematch
