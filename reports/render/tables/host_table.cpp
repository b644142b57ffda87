#include "reports/render/tables/host_table.h"

#include <algorithm>

#include "reports/render/tables/cells.h"

namespace rematch {
namespace {

const HostRecord* host_of(const ComparedPoint& compared) {
  const PointRecord& point = *compared.point;
  return point.memory && point.memory->host ? &*point.memory->host : nullptr;
}

bool has_times(const Comparison& comparison) {
  return std::any_of(comparison.points.begin(), comparison.points.end(),
                     [](const ComparedPoint& compared) {
                       const HostRecord* host = host_of(compared);
                       return host != nullptr && (host->hidden_time || host->exposed_time);
                     });
}

}  // namespace

table::Grid host_grid(const Comparison& comparison) {
  using table::Alignment;
  table::Grid grid{{{"policy", Alignment::kLeft},
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
    table::Row row{{point.policy, std::string(to_string(point.identity.schedule)),
                    table::bytes_cell(host->peak), table::bytes_cell(host->copied_out),
                    table::bytes_cell(host->copied_back)},
                   ""};
    if (times) {
      row.cells.push_back(table::duration_cell(host->hidden_time));
      row.cells.push_back(table::duration_cell(host->exposed_time));
    }
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

std::string host_words(const Comparison& comparison) {
  const bool any = std::any_of(comparison.points.begin(), comparison.points.end(),
                               [](const ComparedPoint& each) { return host_of(each) != nullptr; });
  if (!any) return "";
  std::string words =
      "Host peak: most bytes of host memory that offloaded tensors take at once. Copied out, "
      "copied "
      "back: per step, from the device and to it.";
  if (has_times(comparison)) {
    words += " Hidden, exposed: time of these copies beside compute, and with compute waiting.";
  }
  return words;
}

}  // namespace rematch
