#include <algorithm>

#include "policies/base/format.h"
#include "policies/trace/compiled_graph.h"
#include "reports/render/tables/front_table.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

// Returns text such as "0.8 GiB more than the exact front at this step time, 1.1 % slower at this
// peak", or text that the plan is on the front.
std::string distance_words(const FrontRecord& record) {
  const SimplePoint& simple = *record.simple;
  if (simple.more_peak.count <= 0 && simple.more_time.count() <= 0) return "on the exact front";
  const nanoseconds best = predicted_step(record.front, simple.point.step_time - simple.more_time);
  const nanoseconds own = predicted_step(record.front, simple.point);
  const double slowdown = static_cast<double>((own - best).count()) /
                          static_cast<double>(std::max<std::int64_t>(best.count(), 1));
  return format_bytes(simple.more_peak) + " more than the exact front at this step time, " +
         format_percent(slowdown) + " slower at this peak";
}

std::string next_line(const FrontRecord& record, const FrontFiles& files) {
  const std::string point = (files.front.empty() ? "front.json" : files.front) + "#simple";
  if (files.front.empty()) {
    return "Next: add -o front.json to store both as plans: " + describe_command(point, files) +
           " shows every op, " + run_command(record, point, files) + " runs it.";
  }
  const std::string run =
      record.is_estimate_of_ranks() ? "" : ", " + run_command(record, point, files) + " runs it";
  return "Next: " + describe_command(point, files) + " shows every op" + run + ".";
}

}  // namespace

std::string schedule_words(Schedule schedule, const FrontRecord& record) {
  if (is_compiled_graph(record.dimensions)) {
    return std::string(to_string(schedule)) +
           "; rematch.partitioner chooses the order of recompute in the compiled graph itself";
  }
  return schedule == Schedule::kWholeRegion
             ? "whole_region: recomputes a region at once, like torch.utils.checkpoint and the "
               "trainers that use it"
             : "on_demand: recomputes each tensor when backward needs it; only rematch's engine "
               "supports this";
}

table::Row simple_row(const FrontRecord& record) {
  const SimplePoint& simple = *record.simple;
  return point_row(record, "simple", simple.point,
                   {distance_words(record) + " (whole_region)", short_saves(simple.point)});
}

std::string simple_to_text(const FrontRecord& record, std::size_t width, const FrontFiles& files) {
  const auto line = [width](const std::string& words) {
    return words.empty() ? "" : table::format_line(words, TableFormat::kText, width);
  };
  const SimplePoint& simple = *record.simple;
  table::Grid grid = empty_points_grid(record);
  grid.rows.push_back(point_row(record, "none", record.front.reference(), {}));
  grid.rows.push_back(simple_row(record));
  if (const auto lead = lead_point(record)) {
    grid.rows.push_back(point_row(record, std::to_string(*lead), record.front.points[*lead],
                                  {"the best point of the exact front that fits, " +
                                   std::string(to_string(record.front.schedule))}));
  }
  return line(setting_words(record)) + "\n" + line("Plan: " + simple.point.saves + ".") +
         line("Schedule: " + schedule_words(Schedule::kWholeRegion, record) + ".") + "\n" +
         table::format_grid(grid, TableFormat::kText, width) + "\n" +
         line(next_line(record, files));
}

}  // namespace rematch
