#include "reports/render/tables/compare_table.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "policies/base/format.h"
#include "policies/base/text.h"
#include "reports/render/noise.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;
using table::Alignment;
using table::kNotMeasured;

constexpr std::size_t kMaxOthers = 6;  // maximum number of names in a line

std::string cell_of(const MetricRecord& metric) {
  std::string verdict(to_string(metric.verdict));
  if (metric.metric == Metric::kStepTime) {
    if (!metric.ratio) return kNotMeasured;
    if (is_too_noisy(metric.interval)) return kTooNoisy;
    const std::string interval = metric.interval ? " " + format_interval(*metric.interval, 3) : "";
    return format_fixed(*metric.ratio, 3) + interval + " " + verdict;
  }
  if (metric.verdict == CompareVerdict::kNotMeasured) return kNotMeasured;
  const bool is_change = metric.ratio && metric.verdict != CompareVerdict::kSame &&
                         metric.verdict != CompareVerdict::kDifferent &&
                         metric.verdict != CompareVerdict::kUnsure;
  if (!is_change) return verdict;
  const std::string change = format_change(*metric.ratio - 1);
  // "<0.1 %" has no sign, so the direction is in the verdict
  return change.starts_with('<') ? change + " " + verdict : change;
}

bool has_unit(Metric metric) {
  return metric == Metric::kStepTime || metric == Metric::kPeakAllocated ||
         metric == Metric::kPeakReserved || metric == Metric::kCollectiveBytes;
}

std::string value_text(Metric metric, double value) {
  if (metric == Metric::kStepTime) return format_duration(nanoseconds(std::llround(value)));
  if (has_unit(metric)) return format_bytes({std::llround(value)});
  if (metric == Metric::kLoss) return format_fixed(value, 6);
  return format_fixed(value, std::trunc(value) == value ? 0 : 1);
}

std::string difference_text(const MetricRecord& metric) {
  const double difference = *metric.candidate - *metric.base;
  const std::string sign = difference > 0 ? "+" : "-";
  if (has_unit(metric.metric)) return sign + value_text(metric.metric, std::abs(difference));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", std::abs(difference));
  return sign + text.data();
}

// Adds the difference if both values look equal after rounding.
std::string change_text(const MetricRecord& metric) {
  const std::string base = value_text(metric.metric, *metric.base);
  const std::string candidate = value_text(metric.metric, *metric.candidate);
  return words_of(metric.metric) + " " + base + " to " + candidate +
         (base == candidate ? " (" + difference_text(metric) + ")" : "");
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
  std::vector<std::string> dimensions;
  for (const auto& [name, value] : row.dimensions) {
    dimensions.push_back(name + " " + std::to_string(value));
  }
  return row.model + " on " + row.device + ": " + joined(dimensions);
}

bool is_compared_time(const MetricRecord& metric) {
  return metric.metric == Metric::kStepTime && metric.base && metric.candidate;
}

std::string detail_of(const ComparedRow& row) {
  std::vector<std::string> parts;
  if (row.plan_differs) parts.emplace_back("the policy resolves to a different plan");
  for (const MetricRecord& metric : row.metrics) {
    if (is_difference(metric.verdict) && metric.base && metric.candidate &&
        *metric.base != *metric.candidate) {
      parts.push_back(change_text(metric));
    }
    // Leaves out notes on times, which are below the table because they concern whole reports.
    if (metric.note.empty() || is_compared_time(metric)) continue;
    parts.push_back(words_of(metric.metric) + ": " + metric.note);
  }
  for (const ExplanationRecord& explanation : row.explanations) {
    parts.push_back(words_of(explanation.metric) + ": " + explanation.sentence);
  }
  if (!row.other_differences.empty()) {
    parts.push_back("differs in " + listed(row.other_differences, kMaxOthers));
  }
  return joined(parts, "; ");
}

// Leaves out the metrics of collectives if no point has them.
bool is_left_out(const CompareRecord& record, Metric metric) {
  if (metric != Metric::kCollectives && metric != Metric::kCollectiveBytes) return false;
  return std::none_of(record.rows.begin(), record.rows.end(), [&](const ComparedRow& row) {
    return std::any_of(row.metrics.begin(), row.metrics.end(), [&](const MetricRecord& found) {
      return found.metric == metric && (found.base || found.candidate);
    });
  });
}

table::Row row_of(const CompareRecord& record, const ComparedRow& compared) {
  table::Row row{{compared.policy, std::string(to_string(compared.schedule))}, detail_of(compared)};
  for (const MetricRecord& metric : compared.metrics) {
    if (!is_left_out(record, metric.metric)) row.cells.push_back(cell_of(metric));
  }
  return row;
}

table::Grid empty_grid(const CompareRecord& record) {
  table::Grid grid{{{"policy", Alignment::kLeft}, {"schedule", Alignment::kLeft}}};
  for (const FloorRecord& floor : record.floors) {
    if (is_left_out(record, floor.metric)) continue;
    const bool is_of_cuda =
        floor.metric == Metric::kPeakReserved || floor.metric == Metric::kKernelCount;
    grid.columns.push_back({words_of(floor.metric), Alignment::kRight, is_of_cuda ? 1 : 0});
  }
  return grid;
}

std::string status_text(const std::optional<PointStatus>& status) {
  return status ? std::string(to_string(*status)) : "absent";
}

// Explains when a step time counts as faster or slower; empty if times were not compared.
std::string floor_words(const CompareRecord& record) {
  for (const FloorRecord& floor : record.floors) {
    if (floor.metric != Metric::kStepTime) continue;
    std::string least = format_percent(floor.relative_ratio);
    if (floor.absolute > 0) {
      least += " and " + format_duration(nanoseconds(std::llround(floor.absolute)));
    }
    return "Step time: ratio of medians with its 95 % interval over process rounds. A row is "
           "faster or slower if the difference exceeds " +
           least + "; for two equal reports the chance of such a verdict in any row is at most " +
           format_percent(record.false_alarm_ratio) + ".";
  }
  return "";
}

std::string of_rows(int part, int all) {
  return format_part(part, all) + (all == 1 ? " row" : " rows");
}

}  // namespace

std::string noise_words(const CompareRecord& record) {
  int num_times = 0;
  int num_unsure = 0;
  int num_too_noisy = 0;
  std::map<std::string, int> num_with_note;
  for (const ComparedRow& row : record.rows) {
    for (const MetricRecord& metric : row.metrics) {
      if (!is_compared_time(metric)) continue;
      ++num_times;
      if (!metric.note.empty()) ++num_with_note[metric.note];
      if (metric.verdict != CompareVerdict::kUnsure) continue;
      ++num_unsure;
      if (is_too_noisy(metric.interval)) ++num_too_noisy;
    }
  }
  std::vector<std::string> parts;
  for (const auto& [note, number] : num_with_note) {
    parts.push_back(note + " (" + of_rows(number, num_times) + ")");
  }
  if (num_unsure > 0) {
    parts.push_back(
        "unsure in " + of_rows(num_unsure, num_times) +
        (num_too_noisy == 0 ? "" : ", too noisy to measure in " + std::to_string(num_too_noisy)) +
        ": time both again on an idle machine, interleaved and with more rounds");
  }
  return parts.empty() ? "" : "Step time: " + joined(parts, "; ") + ".";
}

std::string sources_words(const CompareRecord& record) {
  const auto described = [](const SourceRecord& source, const char* side) {
    std::string words = source.file + " (" + side;
    if (source.git_commit) words += ", commit " + source.git_commit->substr(0, 12);
    if (source.git_dirty.value_or(false)) words += " with local changes";
    return words + ")";
  };
  return described(record.base, "base") + " and " + described(record.candidate, "candidate");
}

std::string words_of(Metric metric) { return as_words(short_name(metric)); }

std::string identity_words(const UncomparedPoint& point) {
  std::vector<std::string> differences;
  for (const NamedDifference& difference : point.identity_differences) {
    differences.push_back(difference.name + " " + difference.base + " in the base, " +
                          difference.candidate + " in the candidate");
  }
  return joined(differences, "; ");
}

std::vector<std::string> uncompared_lines(const CompareRecord& record) {
  std::vector<std::string> lines;
  for (const auto& [what, points] : {std::pair{"Only in the base: ", &record.missing},
                                     {"Only in the candidate: ", &record.extra},
                                     {"Failed: ", &record.failed}}) {
    for (const UncomparedPoint& point : *points) {
      lines.push_back(what + point.model + " " + point.policy + " " +
                      std::string(to_string(point.schedule)) + " (base " +
                      status_text(point.base_status) + ", candidate " +
                      status_text(point.candidate_status) + ")");
      for (const std::string& words : {point.reason, identity_words(point)}) {
        if (!words.empty()) lines.back() += ": " + words;
      }
    }
  }
  return lines;
}

CompareGrids compare_grids(const CompareRecord& record) {
  const bool shows_all = record.rows.size() <= kMaxEqualRows;
  std::size_t num_left_out = 0;
  CompareGrids compared;
  for (const ComparedRow& row : record.rows) {
    if (!shows_all && !has_difference(row)) {
      ++num_left_out;
      continue;
    }
    const std::string title = title_of(row);
    if (compared.grids.empty() || compared.grids.back().title != title) {
      compared.grids.push_back({title, empty_grid(record)});
    }
    compared.grids.back().grid.rows.push_back(row_of(record, row));
  }
  if (num_left_out > 0) {
    compared.left_out_words =
        std::to_string(num_left_out) + " rows without a difference are not shown.";
  }
  return compared;
}

std::string render_compare(const CompareRecord& record, TableFormat format, std::size_t width) {
  const CompareGrids compared = compare_grids(record);
  // In Markdown the verdict comes first, because a reader of a pull request sees the first line
  // first.
  const std::string verdict = "Verdict: " + record.verdict + ".";
  const bool leads = format == TableFormat::kMarkdown;
  std::string text = leads ? "**" + table::markdown_text(verdict) + "**\n\n" : "";
  text += table::format_line(sources_words(record), format, width) + "\n";
  for (const CompareGrid& grid : compared.grids) {
    text += table::format_line(grid.title, format, width) + "\n" +
            table::format_grid(grid.grid, format, width) + "\n";
  }
  std::vector<std::string> paragraphs = uncompared_lines(record);
  paragraphs.insert(paragraphs.begin(), compared.left_out_words);
  paragraphs.push_back(noise_words(record));
  paragraphs.push_back(floor_words(record));
  if (!leads) paragraphs.push_back(verdict);
  for (const std::string& paragraph : paragraphs) {
    if (paragraph.empty()) continue;
    text += table::format_line(paragraph, format, width);
    if (format == TableFormat::kMarkdown) text += "\n";
  }
  return text;
}

}  // namespace rematch
