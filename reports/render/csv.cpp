#include "reports/render/csv.h"

#include <functional>
#include <optional>

#include "reports/record/holder.h"
#include "reports/render/charts/chart_point.h"
#include "reports/render/comparison.h"
#include "reports/render/csv_cell.h"

namespace rematch {
namespace {

struct Line {
  const NamedReport* source;
  const ChartPoint* charted;
  const PointRecord& point() const { return charted->point(); }
};

struct CsvColumn {
  std::string name;
  std::function<std::string(const Line&)> cell;
};

std::string number(const std::optional<Bytes>& bytes) {
  return bytes ? std::to_string(bytes->count) : "";
}

std::string number(const std::optional<std::chrono::nanoseconds>& time) {
  return time ? std::to_string(time->count()) : "";
}

std::string yes_or_no(const std::optional<bool>& value) {
  return value ? (*value ? "true" : "false") : "";
}

template <class Get>
CsvColumn of_memory(const char* name, Get get) {
  return {name, [get](const Line& line) {
            return line.point().memory ? get(*line.point().memory) : std::string();
          }};
}

template <class Get>
CsvColumn of_time(const char* name, Get get) {
  return {name, [get](const Line& line) {
            return line.point().time ? get(*line.point().time) : std::string();
          }};
}

template <class Get>
CsvColumn of_parity(const char* name, Get get) {
  return {name, [get](const Line& line) {
            return line.point().parity ? get(*line.point().parity) : std::string();
          }};
}

CsvColumn count_column(Phase phase, OpClass op_class) {
  return {std::string(to_string(phase)) + "_" + std::string(to_string(op_class)) + "_count",
          [phase, op_class](const Line& line) -> std::string {
            if (!line.point().counts) return "";
            const auto& classes = line.point().counts->by_class[static_cast<std::size_t>(phase)];
            const auto found = classes.find(op_class);
            return std::to_string(found == classes.end() ? 0 : found->second);
          }};
}

std::vector<CsvColumn> identity_columns() {
  return {
      {"report", [](const Line& line) { return csv_text(line.source->name); }},
      {"model", [](const Line& line) { return csv_text(line.point().identity.model); }},
      {"device", [](const Line& line) { return csv_text(line.point().device); }},
      {"policy", [](const Line& line) { return csv_text(line.point().policy); }},
      {"schedule",
       [](const Line& line) { return std::string(to_string(line.point().identity.schedule)); }},
      {"status", [](const Line& line) { return std::string(to_string(line.point().status)); }},
      {"reason", [](const Line& line) { return csv_text(line.point().reason); }},
      {"key", [](const Line& line) { return point_key(line.point().identity); }},
      {"plan_sha256", [](const Line& line) { return csv_text(line.point().identity.plan_sha256); }},
      {"on_front", [](const Line& line) { return yes_or_no(line.charted->on_front); }},
      {"verdict", [](const Line& line) { return csv_text(line.charted->compared->verdict.text); }}};
}

void add_memory_columns(std::vector<CsvColumn>& columns) {
  using Memory = MemoryRecord;
  columns.push_back(
      of_memory("peak_allocated_bytes", [](const Memory& m) { return number(m.peak_allocated); }));
  columns.push_back(of_memory("predicted_peak_allocated_bytes",
                              [](const Memory& m) { return number(m.predicted_peak_allocated); }));
  columns.push_back(
      of_memory("peak_transient_bytes", [](const Memory& m) { return number(m.peak_transient); }));
  columns.push_back(
      of_memory("peak_reserved_bytes", [](const Memory& m) { return number(m.peak_reserved); }));
  columns.push_back(of_memory("peak_phase", [](const Memory& m) {
    return m.peak_phase ? std::string(to_string(*m.peak_phase)) : std::string();
  }));
  columns.push_back(
      of_memory("peak_scope", [](const Memory& m) { return csv_text(m.peak_scope); }));
  columns.push_back(
      of_memory("after_forward_bytes", [](const Memory& m) { return number(m.after_forward); }));
  columns.push_back(
      of_memory("parameter_bytes", [](const Memory& m) { return number(m.parameter); }));
  for (const Holder holder : kHolders) {
    CsvColumn column = of_memory("", [holder](const Memory& m) {
      const auto found = m.holders_at_peak.find(holder);
      return found == m.holders_at_peak.end() ? std::string() : number(found->second);
    });
    column.name = "peak_" + std::string(to_string(holder)) + "_bytes";
    columns.push_back(std::move(column));
  }
}

void add_time_columns(std::vector<CsvColumn>& columns) {
  using Time = TimeRecord;
  columns.push_back(of_time("step_median_ns", [](const Time& t) { return number(t.step_median); }));
  columns.push_back(of_time("step_interval_low_ns", [](const Time& t) {
    return t.step_interval ? number((*t.step_interval)[0]) : std::string();
  }));
  columns.push_back(of_time("step_interval_high_ns", [](const Time& t) {
    return t.step_interval ? number((*t.step_interval)[1]) : std::string();
  }));
  columns.push_back(of_time("step_reference", [](const Time& t) {
    return t.ratio ? csv_text(t.ratio->reference) : std::string();
  }));
  columns.push_back(of_time("step_ratio", [](const Time& t) {
    return t.ratio ? csv_number(t.ratio->ratio) : std::string();
  }));
  columns.push_back(of_time("step_ratio_low", [](const Time& t) {
    return t.ratio && t.ratio->interval ? csv_number((*t.ratio->interval)[0]) : std::string();
  }));
  columns.push_back(of_time("step_ratio_high", [](const Time& t) {
    return t.ratio && t.ratio->interval ? csv_number((*t.ratio->interval)[1]) : std::string();
  }));
  columns.push_back(of_time("step_verdict", [](const Time& t) {
    return t.ratio ? csv_text(t.ratio->verdict) : std::string();
  }));
  columns.push_back(of_time("time_quality", [](const Time& t) {
    return t.quality ? csv_text(t.quality->verdict) : std::string();
  }));
}

void add_proof_columns(std::vector<CsvColumn>& columns) {
  columns.push_back({"counted_steps", [](const Line& line) {
                       return line.point().counts
                                  ? std::to_string(line.point().counts->counted_steps)
                                  : std::string();
                     }});
  for (const Phase phase : {Phase::kForward, Phase::kRecompute}) {
    columns.push_back(count_column(phase, OpClass::kAttentionForward));
  }
  columns.push_back(count_column(Phase::kBackward, OpClass::kAttentionBackward));
  for (const Phase phase : {Phase::kForward, Phase::kRecompute, Phase::kBackward}) {
    columns.push_back(count_column(phase, OpClass::kMatmul));
  }
  columns.push_back({"counts_equal_prediction", [](const Line& line) {
                       return line.point().effect
                                  ? yes_or_no(line.point().effect->counts_equal_prediction)
                                  : std::string();
                     }});
  columns.push_back(
      of_parity("parity_reference", [](const ParityRecord& p) { return csv_text(p.reference); }));
  columns.push_back(of_parity("loss_bits_equal",
                              [](const ParityRecord& p) { return yes_or_no(p.loss_bits_equal); }));
  columns.push_back(of_parity("gradient_bits_equal", [](const ParityRecord& p) {
    return yes_or_no(p.gradient_bits_equal);
  }));
}

std::vector<CsvColumn> all_columns() {
  std::vector<CsvColumn> columns = identity_columns();
  add_memory_columns(columns);
  add_time_columns(columns);
  add_proof_columns(columns);
  return columns;
}

}  // namespace

std::string render_csv(const std::vector<NamedReport>& reports) {
  const std::vector<CsvColumn> columns = all_columns();
  std::string text;
  for (const CsvColumn& column : columns) text += (text.empty() ? "" : ",") + column.name;
  text += "\r\n";
  for (const NamedReport& source : reports) {
    for (const Comparison& comparison : compare_policies(source.report)) {
      for (const ChartPoint& charted : chart_points_of(comparison)) {
        const Line line{&source, &charted};
        std::string row;
        for (const CsvColumn& column : columns) {
          if (&column != &columns.front()) row += ",";
          row += column.cell(line);
        }
        text += row + "\r\n";
      }
    }
  }
  return text;
}

}  // namespace rematch
