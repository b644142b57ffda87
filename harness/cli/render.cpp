#include <optional>

#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "harness/cli/require.h"
#include "policies/trace/file.h"
#include "reports/record/record_json.h"
#include "reports/render/charts/chart.h"
#include "reports/render/compare_table.h"
#include "reports/render/csv.h"
#include "reports/render/page.h"
#include "reports/render/table.h"

namespace rematch {
namespace {

struct Flags {
  std::vector<std::string> files;
  std::string output;
  std::string chart;
  bool markdown = false;
  bool csv = false;
};

struct Inputs {
  std::vector<NamedReport> reports;
  std::vector<NamedCompare> compares;
};

// By what each file says it is. The reader's message names the key; the file is added here.
Inputs read_inputs(const std::vector<std::string>& files) {
  Inputs inputs;
  for (const std::string& file : files) {
    try {
      const Json json = require_json_file(file);
      if (JsonField(json).at("schema").string().starts_with("rematch.compare/")) {
        inputs.compares.push_back({file, compare_from_json(json)});
      } else {
        inputs.reports.push_back({file, report_from_json(json)});
      }
    } catch (const FormatError& error) {
      const std::string message = error.what();
      throw UsageError(message.find(file) == std::string::npos ? file + ": " + message : message);
    }
  }
  return inputs;
}

std::string as_markdown(const Inputs& inputs) {
  std::string text;
  for (const NamedCompare& source : inputs.compares) {
    text += (text.empty() ? "" : "\n") + render_compare(source.record, TableFormat::kMarkdown);
  }
  for (const NamedReport& source : inputs.reports) {
    text += (text.empty() ? "" : "\n") + render_table(source.report, TableFormat::kMarkdown);
  }
  return text;
}

void require_no_compares(const Inputs& inputs, const char* flag) {
  if (inputs.compares.empty()) return;
  throw UsageError(inputs.compares.front().name + " is a compare record; " + flag +
                   " takes reports");
}

// One picture a file; comparisons of several models would not fit into one.
std::string as_svg(const std::vector<NamedReport>& reports, const std::string& chart) {
  if (reports.size() != 1) {
    throw UsageError("--svg draws one report, not " + std::to_string(reports.size()) +
                     "; call it once for each");
  }
  const Report& report = reports.front().report;
  const std::vector<Comparison> comparisons = compare_policies(report);
  if (comparisons.size() != 1) {
    throw UsageError(reports.front().name + " has " + std::to_string(comparisons.size()) +
                     " models or shapes; --svg draws a report with one");
  }
  return to_svg_file(
      require(draw_chart(chart, comparisons.front(), report.provenance.environment)));
}

std::string as_asked(const Flags& flags, const Inputs& inputs) {
  if (flags.markdown) return as_markdown(inputs);
  if (flags.csv) {
    require_no_compares(inputs, "--csv");
    return render_csv(inputs.reports);
  }
  if (!flags.chart.empty()) {
    require_no_compares(inputs, "--svg");
    return as_svg(inputs.reports, flags.chart);
  }
  return render_page(inputs.reports, inputs.compares);
}

ExitCode run(const Flags& flags) {
  if (flags.files.empty()) {
    throw UsageError("no report given: rematch render report.json -o report.html");
  }
  const int formats =
      (flags.markdown ? 1 : 0) + (flags.csv ? 1 : 0) + (flags.chart.empty() ? 0 : 1);
  if (formats > 1) throw UsageError("give one of --svg, --markdown and --csv, or none for HTML");
  require_writable(flags.output);
  const std::string text = as_asked(flags, read_inputs(flags.files));
  if (flags.output.empty()) {
    print(text);
  } else {
    write_file_atomically(flags.output, text);
  }
  return ExitCode::kOk;
}

}  // namespace

void add_render(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "render", "Reports as one HTML page with charts, or as SVG, markdown or CSV");
  auto flags = std::make_shared<Flags>();
  command->add_option("reports", flags->files, "Report files, and records of rematch compare");
  command->add_option("-o,--output", flags->output, "File to write; without it, stdout");
  std::string charts;
  for (const std::string& name : chart_names()) charts += (charts.empty() ? "" : ", ") + name;
  command->add_option("--svg", flags->chart, "One chart as SVG: " + charts);
  command->add_flag("--markdown", flags->markdown, "The tables as markdown");
  command->add_flag("--csv", flags->csv, "One line a point, units in the column names");
  command->footer(
      "The page is one file: it loads nothing, needs no script, and follows the reader's light or\n"
      "dark surroundings.\n"
      "\n"
      "Examples:\n"
      "  rematch render results/llama_small_cpu.json results/wan_small_cpu.json -o index.html\n"
      "  rematch render report.json --svg front -o front.svg\n"
      "  rematch render report.json --markdown >>pull_request.md\n"
      "  rematch render report.json --csv | column -s, -t");
  command->callback([&action, flags] { action = [flags] { return run(*flags); }; });
}

}  // namespace rematch
