#include "reports/render/charts/chart.h"

#include <algorithm>

#include "policies/base/text.h"
#include "reports/render/charts/builders.h"
#include "reports/render/tables/compare_table.h"
#include "reports/render/tables/front_table.h"

namespace rematch::chart {
namespace {

using Drawn = std::variant<Picture, Rejected>;
using Points = std::vector<ComparedPoint>;

template <class Chart>
Drawn drawn(const Chart& chart, const std::string& why_empty) {
  return chart.is_empty() ? Drawn(Rejected{why_empty}) : draw(chart);
}

struct NamedChart {
  std::string name;
  std::string source;  // name of the data that the chart needs, for an error message
  std::function<Drawn(const Points&, const std::string& why_empty)> draw;
};

template <class Build>
NamedChart named(const char* name, const char* source, Build build) {
  return {name, source, [build](const Points& points, const std::string& why_empty) {
            return drawn(build(points), why_empty);
          }};
}

std::vector<NamedChart> charts_of(const std::optional<Bytes>& limit) {
  const auto count = [](OpClass op_class) {
    return [op_class](const Points& points) { return op_counts(points, op_class); };
  };
  return {named("front", "point with a peak and a step time",
                [limit](const Points& points) { return measured_front(points, limit); }),
          named("memory", "memory timeline", memory_timelines),
          named("attention", "op counts", count(OpClass::kAttentionForward)),
          named("matmul", "op counts", count(OpClass::kMatmul)),
          named("holders", "peaks", peak_holders),
          named("time", "times of phases", phase_times),
          named("ratio", "ratios of step times", step_ratios),
          named("loss", "losses", losses)};
}

}  // namespace

std::vector<std::string> chart_names() {
  std::vector<std::string> names;
  for (const NamedChart& chart : charts_of({})) names.push_back(chart.name);
  return names;
}

std::optional<Bytes> memory_limit(const PolicyComparison& comparison,
                                  const Environment& environment) {
  const bool is_on_cpu = comparison.points.front().point->device == "cpu";
  return is_on_cpu ? environment.host_memory : environment.device_memory;
}

Drawn draw_chart(const std::string& name, const PolicyComparison& comparison,
                 const Environment& environment) {
  for (const NamedChart& chart : charts_of(memory_limit(comparison, environment))) {
    if (chart.name != name) continue;
    return chart.draw(comparison.points,
                      "the report has no " + chart.source +
                          "; measure it with rematch run, or draw another chart");
  }
  return Rejected{"there is no chart '" + name + "'" + did_you_mean(name, chart_names())};
}

Drawn draw_chart(const std::string& name, const CompareRecord& record) {
  std::vector<std::string> names;
  for (const Metric metric : kAll<Metric>) names.emplace_back(short_name(metric));
  const std::optional<Metric> metric = metric_from_name(name);
  if (!metric) {
    return Rejected{"a compare record has no chart '" + name + "'" + did_you_mean(name, names) +
                    "; its charts are " + joined(names)};
  }
  return drawn(metric_ratios(record, *metric),
               "the compare record has no ratio of " + words_of(*metric) +
                   "; both reports must have measured it, and the base must not be 0");
}

Drawn draw_chart(const std::string& name, const FrontRecord& record) {
  if (name == "front") return draw(searched_front(record, every_point(record.front)));
  return Rejected{"a searched front has no chart '" + name + "'; write --svg front"};
}

}  // namespace rematch::chart
