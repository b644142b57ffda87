#include "reports/render/tables/csv.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/record/amount_of.h"
#include "reports/record/point.h"
#include "reports/render/comparison.h"
#include "reports/render/tables/compare_table.h"

namespace rematch {
namespace {

std::string cell_of(std::string text) {
  if (!text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string::npos) {
    text.insert(text.begin(), '\'');
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char letter : text) {
    if (letter == '"') cell += '"';
    cell += letter;
  }
  return cell + "\"";
}

std::string cell_of(std::string_view text) { return cell_of(std::string(text)); }
std::string cell_of(bool value) { return value ? "true" : "false"; }
std::string cell_of(int value) { return std::to_string(value); }
std::string cell_of(std::int64_t value) { return std::to_string(value); }
std::string cell_of(std::uint64_t value) { return std::to_string(value); }
std::string cell_of(Phase phase) { return std::string(to_string(phase)); }
std::string cell_of(double value) {
  return Json(value).dump();
}  // the shortest text that converts back to the same number
std::string cell_of(Bytes value) { return std::to_string(value.count); }
std::string cell_of(std::chrono::nanoseconds value) { return std::to_string(value.count()); }

template <class T>
requires requires(const T& value) { cell_of(value); }
std::string cell_of(const std::optional<T>& value) { return value ? cell_of(*value) : ""; }

template <class T>
std::optional<T> end_of(const std::optional<std::array<T, 2>>& interval, std::size_t end) {
  return interval ? std::optional(interval->at(end)) : std::nullopt;
}

// The cells of a line and the names of their columns.
class Line {
 public:
  template <class T>
  void add(std::string name, const T& value) {
    names_.push_back(cell_of(std::move(name)));
    cells_.push_back(cell_of(value));
  }
  std::string names() const { return joined(names_, ",") + "\r\n"; }
  std::string cells() const { return joined(cells_, ",") + "\r\n"; }

 private:
  std::vector<std::string> names_;
  std::vector<std::string> cells_;
};

// Names that occur in any point. Each name has a column.
using Names = std::set<std::string>;

void collect(const std::map<std::string, std::int64_t>& dimensions, Names& names) {
  for (const auto& [name, value] : dimensions) names.insert(name);
}

void add_dimensions(Line& line, const std::map<std::string, std::int64_t>& dimensions,
                    const Names& names) {
  for (const std::string& name : names) {
    const auto found = dimensions.find(name);
    line.add(name, found == dimensions.end() ? std::nullopt : std::optional(found->second));
  }
}

// Adds a cell for each field that has a column. If the record is missing, the cells are empty.
template <HasFields Record>
void add_fields(Line& line, const Record* record) {
  const Record absent;
  visit_fields(record == nullptr ? absent : *record, [&](const Field& field, const auto& member) {
    if (field.column == nullptr) return;
    const std::string column = field.column;
    const std::size_t end = column.find('*');
    if constexpr (requires { end_of(member, 0); }) {
      line.add(std::string(column).replace(end, 1, "low"), end_of(member, 0));
      line.add(std::string(column).replace(end, 1, "high"), end_of(member, 1));
    } else if constexpr (requires { cell_of(member); }) {
      if (record == nullptr) {
        line.add(column, std::string_view());
      } else {
        line.add(column, member);
      }
    }
  });
}

template <HasFields Record>
void add_fields(Line& line, const std::optional<Record>& record) {
  add_fields(line, record ? &*record : nullptr);
}

void add_memory(Line& line, const PointRecord& point) {
  add_fields(line, point.memory);
  for (const Holder holder : kAll<Holder>) {
    std::optional<Bytes> bytes;
    if (point.memory) {
      const auto found = point.memory->holders_at_peak.find(holder);
      if (found != point.memory->holders_at_peak.end()) bytes = found->second;
    }
    line.add("peak_" + std::string(to_string(holder)) + "_bytes", bytes);
  }
}

void add_time(Line& line, const PointRecord& point) {
  const TimeRecord not_measured;
  const TimeRecord& time = point.time ? *point.time : not_measured;
  add_fields(line, &time);
  add_fields(line, time.ratio);
  line.add("model_flops_utilization_ratio", point.model_flops_utilization);
  add_fields(line, time.quality);
}

void add_counts(Line& line, const PointRecord& point) {
  line.add("counted_steps",
           point.counts ? std::optional<std::int64_t>(point.counts->counted_steps) : std::nullopt);
  for (const auto& [phase, op_class] : {std::pair{Phase::kForward, OpClass::kAttentionForward},
                                        {Phase::kRecompute, OpClass::kAttentionForward},
                                        {Phase::kBackward, OpClass::kAttentionBackward},
                                        {Phase::kForward, OpClass::kMatmul},
                                        {Phase::kRecompute, OpClass::kMatmul},
                                        {Phase::kBackward, OpClass::kMatmul}}) {
    std::optional<std::int64_t> count;
    if (point.counts) count = amount_of(point.counts->by_class, phase, op_class);
    line.add(std::string(to_string(phase)) + "_" + std::string(to_string(op_class)) + "_count",
             count);
  }
}

Line line_of(const std::string& report, const Provenance& made, const ComparedPoint& compared,
             const Names& dimensions) {
  const PointRecord& point = *compared.point;
  Line line;
  line.add("report", report);
  line.add("git_commit", made.git_commit);
  line.add("git_dirty", made.git_dirty);
  line.add("model", point.identity.model);
  line.add("device", point.device);
  line.add("policy", point.policy);
  line.add("schedule", to_string(point.identity.schedule));
  add_dimensions(line, point.identity.dimensions, dimensions);
  add_fields(line, &point.identity);
  line.add("status", to_string(point.status));
  line.add("reason", point.reason);
  line.add("key", point_key(point.identity));
  line.add("plan_sha256", point.identity.plan_sha256);
  line.add("on_front", compared.is_on_front);
  line.add("verdict", compared.verdict.text);
  add_memory(line, point);
  add_time(line, point);
  add_counts(line, point);
  add_fields(line, point.effect);
  add_fields(line, point.parity);
  return line;
}

// `metric` is null for a point that could not be compared.
Line line_of(const NamedCompare& source, const ComparedRow& row, const MetricRecord* metric,
             const Names& dimensions, const std::string& verdict, const std::string& note) {
  Line line;
  line.add("comparison", source.name);
  line.add("base_report", source.record.base.file);
  line.add("candidate_report", source.record.candidate.file);
  line.add("base_git_commit", source.record.base.git_commit);
  line.add("candidate_git_commit", source.record.candidate.git_commit);
  line.add("model", row.model);
  line.add("device", row.device);
  add_dimensions(line, row.dimensions, dimensions);
  add_fields(line, &row);
  line.add("policy", row.policy);
  line.add("schedule", to_string(row.schedule));
  line.add("metric", metric == nullptr ? "" : to_string(metric->metric));
  add_fields(line, metric);
  line.add("verdict", verdict);
  line.add("note", note);
  return line;
}

Line line_of(const NamedCompare& source, const UncomparedPoint& point, const Names& dimensions,
             const char* verdict) {
  ComparedRow row;
  row.model = point.model;
  row.policy = point.policy;
  row.schedule = point.schedule;
  const std::string words = identity_words(point);
  const std::string between = point.reason.empty() || words.empty() ? "" : "; ";
  return line_of(source, row, nullptr, dimensions, verdict, point.reason + between + words);
}

void add_measured(Line& line, const FrontPoint& point) {
  const MeasuredFigures not_run{.status = ""};
  const MeasuredFigures& measured = point.measured ? *point.measured : not_run;
  line.add("status", measured.status);
  line.add("reason", measured.reason);
  line.add("measured_peak_allocated_bytes", measured.peak);
  line.add("measured_step_median_ns", measured.step_time);
  line.add("measured_step_interval_low_ns", end_of(measured.step_interval, 0));
  line.add("measured_step_interval_high_ns", end_of(measured.step_interval, 1));
  line.add("lost_to", measured.lost_to);
}

// `name` is the number of a point of the front, or the policy of a baseline.
Line line_of(const NamedFront& source, const FrontPoint& point, const std::string& name,
             const char* kind, const Names& dimensions) {
  const FrontRecord& record = source.record;
  Line line;
  line.add("front", source.name);
  line.add("git_commit", record.git_commit);
  line.add("git_dirty", record.git_dirty);
  line.add("model", record.model);
  line.add("device", record.device);
  line.add("schedule", to_string(record.front.schedule));
  add_dimensions(line, record.dimensions, dimensions);
  line.add("dtype", record.dtype);
  line.add("ops", record.ops);
  line.add("world", record.world);
  line.add("time_source", to_string(record.time_source));
  line.add("kind", std::string_view(kind));
  line.add("point", name);
  line.add("predicted_peak_allocated_bytes", point.figures.peak);
  line.add("peak_phase", to_string(point.figures.peak_phase));
  line.add("peak_scope", point.figures.peak_place);
  line.add("predicted_step_ns", predicted_step(record.front, point));
  line.add("predicted_step_bound_ns", predicted_step(record.front, point.step_time_bound));
  line.add("profiled_step_ns", point.step_time);
  line.add("recomputed_ops_count", static_cast<std::int64_t>(point.figures.num_recomputed));
  line.add("keeps", point.saves);
  add_measured(line, point);
  return line;
}

}  // namespace

std::string render_csv(const std::vector<NamedReport>& reports) {
  Names dimensions;
  for (const NamedReport& source : reports) {
    for (const PointRecord& point : source.report.points) {
      collect(point.identity.dimensions, dimensions);
    }
  }
  const PointRecord no_point;
  std::string text = line_of("", {}, {.point = &no_point}, dimensions).names();
  for (const NamedReport& source : reports) {
    for (const PolicyComparison& comparison : compare_policies(source.report)) {
      for (const ComparedPoint& compared : comparison.points) {
        text += line_of(source.name, source.report.provenance, compared, dimensions).cells();
      }
    }
  }
  return text;
}

std::string render_csv(const std::vector<NamedCompare>& compares) {
  Names dimensions;
  for (const NamedCompare& source : compares) {
    for (const ComparedRow& row : source.record.rows) collect(row.dimensions, dimensions);
  }
  std::string text = line_of({}, ComparedRow{}, nullptr, dimensions, "", "").names();
  for (const NamedCompare& source : compares) {
    const CompareRecord& record = source.record;
    for (const ComparedRow& row : record.rows) {
      for (const MetricRecord& metric : row.metrics) {
        const std::string verdict(to_string(metric.verdict));
        text += line_of(source, row, &metric, dimensions, verdict, metric.note).cells();
      }
    }
    for (const auto& [points, verdict] : {std::pair{&record.missing, "missing"},
                                          {&record.extra, "extra"},
                                          {&record.failed, "failed"}}) {
      for (const UncomparedPoint& point : *points) {
        text += line_of(source, point, dimensions, verdict).cells();
      }
    }
  }
  return text;
}

std::string render_csv(const std::vector<NamedFront>& fronts) {
  Names dimensions;
  for (const NamedFront& source : fronts) collect(source.record.dimensions, dimensions);
  std::string text = line_of(NamedFront{}, FrontPoint{}, "", "", dimensions).names();
  for (const NamedFront& source : fronts) {
    const Front& front = source.record.front;
    for (std::size_t index = 0; index < front.points.size(); ++index) {
      const std::string name = std::to_string(index);
      text += line_of(source, front.points[index], name, "point", dimensions).cells();
    }
    for (const Baseline& baseline : front.baselines) {
      const FrontPoint& point = baseline.point;
      text += line_of(source, point, point.plan.policy, "baseline", dimensions).cells();
    }
  }
  return text;
}

}  // namespace rematch
