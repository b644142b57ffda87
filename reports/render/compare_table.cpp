#include "reports/render/compare_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>

#include "policies/trace/joined.h"
#include "reports/render/format.h"

namespace rematch {
namespace {

constexpr std::size_t kMostOthers = 6;  // names in a line

std::string change_of(const MetricRecord& metric) {
  if (metric.ratio) return format_change(*metric.ratio - 1);
  return std::string(to_string(metric.verdict));
}

std::string time_cell(const MetricRecord& metric) {
  if (!metric.ratio) return kNotMeasured;
  std::string cell = format_fixed(*metric.ratio, 3);
  if (metric.interval) {
    cell += " [" + format_fixed((*metric.interval)[0], 3) + " " +
            format_fixed((*metric.interval)[1], 3) + "]";
  }
  return cell.append(" ").append(to_string(metric.verdict));
}

std::string exact_cell(const MetricRecord& metric) {
  switch (metric.verdict) {
    case CompareVerdict::kNotMeasured:
      return kNotMeasured;
    case CompareVerdict::kSame:
      return "same";
    case CompareVerdict::kDifferent:
      return "different";
    case CompareVerdict::kUnsure:
      return "unsure";
    default:
      return change_of(metric);
  }
}

std::string value_text(const MetricRecord& metric, double value) {
  switch (metric.metric) {
    case Metric::kStepTime:
      return format_duration(std::chrono::nanoseconds(std::llround(value)));
    case Metric::kPeakAllocated:
    case Metric::kPeakReserved:
      return format_bytes({std::llround(value)});
    case Metric::kLoss:
      return format_fixed(value, 6);
    default:
      return format_fixed(value, std::trunc(value) == value ? 0 : 1);
  }
}

std::string difference_text(const MetricRecord& metric) {
  const double difference = *metric.candidate - *metric.base;
  const std::string sign = difference > 0 ? "+" : "-";
  const bool has_unit = metric.metric == Metric::kStepTime ||
                        metric.metric == Metric::kPeakAllocated ||
                        metric.metric == Metric::kPeakReserved;
  if (has_unit) return sign + value_text(metric, std::abs(difference));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", std::abs(difference));
  return sign + text.data();
}

// Where rounding would show one value twice, the difference too.
std::string change_text(const MetricRecord& metric) {
  const std::string base = value_text(metric, *metric.base);
  const std::string candidate = value_text(metric, *metric.candidate);
  std::string text(short_name(metric.metric));
  text.append(" ").append(base).append(" to ").append(candidate);
  if (base == candidate) text.append(" (").append(difference_text(metric)).append(")");
  return text;
}

bool is_difference(CompareVerdict verdict) {
  return verdict != CompareVerdict::kSame && verdict != CompareVerdict::kUnsure &&
         verdict != CompareVerdict::kNotMeasured;
}

bool has_difference(const ComparedRow& row) {
  return row.plan_differs || !row.other_differences.empty() ||
         std::any_of(row.metrics.begin(), row.metrics.end(),
                     [](const MetricRecord& metric) { return is_difference(metric.verdict); });
}

std::string title_of(const ComparedRow& row) {
  std::string title = row.model + " on " + row.device + ":";
  for (const auto& [name, value] : row.dimensions) {
    title.append(title.ends_with(':') ? " " : ", ").append(name);
    title.append(" ").append(std::to_string(value));
  }
  return title;
}

std::string others_of(const ComparedRow& row) {
  const std::size_t shown = std::min(row.other_differences.size(), kMostOthers);
  const std::vector<std::string> names(
      row.other_differences.begin(),
      row.other_differences.begin() + static_cast<std::ptrdiff_t>(shown));
  const std::size_t left = row.other_differences.size() - shown;
  return "differs in " + joined(names) + (left > 0 ? " and " + std::to_string(left) + " more" : "");
}

std::string detail_of(const ComparedRow& row) {
  std::vector<std::string> parts;
  if (row.plan_differs) parts.emplace_back("the policy resolves to another plan");
  for (const MetricRecord& metric : row.metrics) {
    if (is_difference(metric.verdict) && metric.base && metric.candidate &&
        *metric.base != *metric.candidate) {
      parts.push_back(change_text(metric));
    }
    if (!metric.note.empty()) {
      parts.push_back(std::string(short_name(metric.metric)) + " " + metric.note);
    }
  }
  for (const ExplanationRecord& explanation : row.explanations) {
    parts.push_back(std::string(short_name(explanation.metric)) + ": " + explanation.sentence);
  }
  if (!row.other_differences.empty()) parts.push_back(others_of(row));
  return joined(parts, "; ");
}

Grid grid_of(const CompareRecord& record) {
  Grid grid;
  grid.columns = {{"policy", Alignment::kLeft, 0}, {"schedule", Alignment::kLeft, 0}};
  for (const FloorRecord& floor : record.floors) {
    const bool time = floor.metric == Metric::kStepTime;
    const bool cuda_alone =
        floor.metric == Metric::kPeakReserved || floor.metric == Metric::kKernelCount;
    grid.columns.push_back({time ? "step time" : std::string(short_name(floor.metric)),
                            Alignment::kRight, cuda_alone ? 1 : 0});
  }
  return grid;
}

Row make_row(const ComparedRow& compared) {
  Row row;
  row.cells = {compared.policy, std::string(to_string(compared.schedule))};
  for (const MetricRecord& metric : compared.metrics) {
    row.cells.push_back(metric.metric == Metric::kStepTime ? time_cell(metric)
                                                           : exact_cell(metric));
  }
  row.detail = detail_of(compared);
  return row;
}

std::string status_text(const std::optional<PointStatus>& status) {
  return status ? std::string(to_string(*status)) : "not there";
}

void list(std::string_view what, const std::vector<UncomparedPoint>& points,
          std::vector<std::string>& paragraphs) {
  for (const UncomparedPoint& point : points) {
    std::string line(what);
    line += ": " + point.model + " " + point.policy + " " + std::string(to_string(point.schedule)) +
            " (base " + status_text(point.base_status) + ", candidate " +
            status_text(point.candidate_status) + ")";
    if (!point.reason.empty()) line += ": " + point.reason;
    if (const std::string words = identity_words(point); !words.empty()) line += ": " + words;
    paragraphs.push_back(std::move(line));
  }
}

std::string floor_text(const CompareRecord& record) {
  for (const FloorRecord& floor : record.floors) {
    if (floor.metric != Metric::kStepTime) continue;
    std::string text =
        "Step time: ratio of medians with its 95 % interval over process blocks. "
        "Faster or slower is said where the difference passes " +
        format_percent(floor.relative_ratio);
    if (floor.absolute > 0) {
      text += " and " + format_duration(std::chrono::nanoseconds(std::llround(floor.absolute)));
    }
    return text + "; two equal reports get one such verdict, in any row, at most " +
           format_percent(record.false_alarm_ratio) + " of the time.";
  }
  return "";
}

std::vector<std::string> footer(const CompareRecord& record, std::size_t left_out) {
  std::vector<std::string> paragraphs;
  if (left_out > 0) {
    paragraphs.push_back(std::to_string(left_out) + " rows without a difference are not shown.");
  }
  list("Missing", record.missing, paragraphs);
  list("Extra", record.extra, paragraphs);
  list("Failed", record.failed, paragraphs);
  const std::string floor = floor_text(record);
  if (!floor.empty()) paragraphs.push_back(floor);
  paragraphs.push_back("Verdict: " + record.verdict + ".");
  return paragraphs;
}

}  // namespace

std::string identity_words(const UncomparedPoint& point) {
  std::string words;
  for (const NamedDifference& difference : point.identity_differences) {
    words += (words.empty() ? "" : "; ") + difference.name + " " + difference.base +
             " in the base, " + difference.candidate + " in the candidate";
  }
  return words;
}

CompareGrids compare_grids(const CompareRecord& record) {
  const bool all = record.rows.size() <= kMostEqualRows;
  CompareGrids compared;
  for (const ComparedRow& row : record.rows) {
    if (!all && !has_difference(row)) {
      ++compared.left_out;
      continue;
    }
    const std::string title = title_of(row);
    if (compared.grids.empty() || compared.grids.back().title != title) {
      compared.grids.push_back({title, grid_of(record)});
    }
    compared.grids.back().grid.rows.push_back(make_row(row));
  }
  return compared;
}

std::string render_compare(const CompareRecord& record, TableFormat format, std::size_t width) {
  std::string text =
      format_line(record.base.file + " (base) and " + record.candidate.file, format, width) + "\n";
  const CompareGrids compared = compare_grids(record);
  for (const CompareGrid& grid : compared.grids) {
    text += format_line(grid.title, format, width) + "\n" + format_grid(grid.grid, format, width) +
            "\n";
  }
  for (const std::string& paragraph : footer(record, compared.left_out)) {
    text += format_line(paragraph, format, width);
    if (format == TableFormat::kMarkdown) text += "\n";
  }
  return text;
}

}  // namespace rematch
