#include <array>
#include <fstream>
#include <optional>
#include <string_view>

#include "harness/cli/commands.h"
#include "harness/cli/files/input_files.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/search/front/front_json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/charts/chart.h"
#include "reports/render/pages/page.h"
#include "reports/render/tables/compare_table.h"
#include "reports/render/tables/csv.h"
#include "reports/render/tables/front_table.h"
#include "reports/render/tables/report_table.h"

namespace rematch {
namespace {

struct RenderFlags : OutputFlags {
  explicit RenderFlags(CLI::App& app) {
    app.add_option("reports", files,
                   "Reports, fronts of rematch search, and records of rematch compare");
    add_output_flags(app, "File to write (default: stdout)");
    app.add_option("--svg", chart,
                   "Draw one chart as SVG: " + joined(chart::chart_names()) +
                       "; for a compare record, a metric such as step_time");
    app.add_flag("--markdown", markdown, "Write the tables as Markdown instead of a page");
    app.add_flag("--csv", csv,
                 "Write CSV: a line for each point, or for each compared metric; column names "
                 "include units");
  }
  std::vector<std::string> files;
  std::string chart;
  bool markdown = false;
  bool csv = false;
};

struct Inputs {
  std::vector<NamedReport> reports;
  std::vector<NamedCompare> compares;
  std::vector<NamedFront> fronts;
};

// Returns whether the file begins like a report. Reads only the first bytes, because reports can be
// large.
bool begins_as_report(const std::string& file) {
  std::array<char, 64> start{};
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), start.size());
  return std::string_view(start.data(), static_cast<std::size_t>(stream.gcount()))
             .find("\"rematch.report/") != std::string_view::npos;
}

// Reads each file according to its schema. Adds the file's name to error messages that name only a
// key.
Inputs read_inputs(const std::vector<std::string>& files) {
  Inputs inputs;
  for (const std::string& file : files) {
    if (begins_as_report(file)) {
      inputs.reports.push_back({file, require_readable(file, [&] { return read_report(file); })});
      continue;
    }
    require_json_file(file, [&](const Json& json) {
      const std::string schema = JsonField(json).at("schema").string();
      if (schema.starts_with("rematch.compare/")) {
        inputs.compares.push_back({file, compare_from_json(json)});
      } else if (schema.starts_with("rematch.front/")) {
        inputs.fronts.push_back({file, front_from_json(json)});
      } else {
        inputs.reports.push_back({file, report_from_json(json)});
      }
    });
  }
  return inputs;
}

std::string as_markdown(const Inputs& inputs) {
  std::string text;
  for (const NamedCompare& source : inputs.compares) {
    text += (text.empty() ? "" : "\n") + render_compare(source.record, TableFormat::kMarkdown);
  }
  for (const NamedFront& source : inputs.fronts) {
    text += (text.empty() ? "" : "\n") +
            front_to_text(source.record, TableFormat::kMarkdown, 0,
                          {source.name, is_preset(source.record.model) ? "" : "TRACE"});
  }
  for (const NamedReport& source : inputs.reports) {
    text += (text.empty() ? "" : "\n") + render_table(source.report, TableFormat::kMarkdown);
  }
  return text;
}

std::string as_csv(const Inputs& inputs) {
  const int num_kinds = (inputs.reports.empty() ? 0 : 1) + (inputs.compares.empty() ? 0 : 1) +
                        (inputs.fronts.empty() ? 0 : 1);
  if (num_kinds > 1) {
    throw UsageError(
        "reports, compare records and fronts have different columns; call --csv once for each "
        "kind");
  }
  if (!inputs.fronts.empty()) return render_csv(inputs.fronts);
  return inputs.compares.empty() ? render_csv(inputs.reports) : render_csv(inputs.compares);
}

// Draws a report. Throws UsageError for a report with several comparisons, because one picture
// cannot show several models.
chart::Picture draw_report(const NamedReport& source, const std::string& chart) {
  const Report& report = source.report;
  const std::vector<PolicyComparison> comparisons = compare_policies(report);
  if (comparisons.size() != 1) {
    throw UsageError(source.name + " has " + std::to_string(comparisons.size()) +
                     " models or shapes; --svg needs a report of one model and one shape");
  }
  return require(chart::draw_chart(chart, comparisons.front(), report.provenance.environment));
}

// Draws one file as SVG. Throws UsageError if several files are given.
std::string as_svg(const Inputs& inputs, const std::string& chart) {
  const std::size_t num_files =
      inputs.reports.size() + inputs.compares.size() + inputs.fronts.size();
  if (num_files != 1) {
    throw UsageError("--svg draws one file, not " + std::to_string(num_files) +
                     "; call it once for each");
  }
  if (!inputs.reports.empty()) return to_svg_file(draw_report(inputs.reports.front(), chart));
  return to_svg_file(require(inputs.fronts.empty()
                                 ? chart::draw_chart(chart, inputs.compares.front().record)
                                 : chart::draw_chart(chart, inputs.fronts.front().record)));
}

std::string as_asked(const RenderFlags& flags, const Inputs& inputs) {
  if (flags.markdown) return as_markdown(inputs);
  if (flags.csv) return as_csv(inputs);
  if (!flags.chart.empty()) return as_svg(inputs, flags.chart);
  return render_page(inputs.reports, inputs.compares, inputs.fronts);
}

std::string_view kind_to_write(const RenderFlags& flags) {
  if (flags.markdown || flags.csv) return file_kind::kText;
  return flags.chart.empty() ? file_kind::kPage : file_kind::kPicture;
}

ExitCode run(const RenderFlags& flags) {
  if (flags.files.empty()) {
    throw UsageError("no report given: rematch render report.json -o report.html");
  }
  const int formats =
      (flags.markdown ? 1 : 0) + (flags.csv ? 1 : 0) + (flags.chart.empty() ? 0 : 1);
  if (formats > 1) throw UsageError("give one of --svg, --markdown and --csv, or none for HTML");
  const OutputFile output(flags.request({kind_to_write(flags)}, flags.files));
  const std::string text = as_asked(flags, read_inputs(flags.files));
  write_output(flags.output, text);
  return ExitCode::kOk;
}

}  // namespace

void add_render(CLI::App& app, Action& action) {
  add_command<RenderFlags>(
      app, action, "render",
      "Renders reports as one HTML page with charts, or as SVG, Markdown or CSV", run,
      "The page is one file: it loads nothing, needs no script, and follows the reader's light or\n"
      "dark color scheme. For a sweep it shows each policy against the axes, and what failed and "
      "why.\n"
      "\n"
      "Examples:\n"
      "  rematch render results/llama_small_cpu.json results/wan_small_cpu.json -o index.html\n"
      "  rematch render front.json -o front.html\n"
      "  rematch sweep merge results/wan -o wan.json; rematch render wan.json -o wan.html\n"
      "  rematch render report.json --svg front -o front.svg\n"
      "  rematch render compared.json --svg peak_allocated -o peaks.svg\n"
      "  rematch render report.json --markdown >>pull_request.md\n"
      "  rematch render report.json --csv | column -s, -t");
}

}  // namespace rematch
