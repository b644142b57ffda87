#include "reports/render/table.h"

#include <string_view>
#include <vector>

#include "reports/render/comparison.h"
#include "reports/render/format.h"
#include "reports/render/grid.h"
#include "reports/render/row.h"

namespace rematch {
namespace {

std::string failures_line(const Report& report) {
  std::string names;
  std::size_t failed = 0;
  for (const PointRecord& point : report.points) {
    if (point.status == PointStatus::kOk) continue;
    ++failed;
    names += (names.empty() ? "" : ", ") + point.policy + " " +
             std::string(to_string(point.identity.schedule)) + " (" +
             std::string(to_string(point.status)) + ")";
  }
  if (failed == 0) return "";
  return std::to_string(failed) + " of " + std::to_string(report.points.size()) +
         " points did not finish: " + names + ".";
}

std::string machine_of(const Environment& environment) {
  std::string machine;
  if (environment.cpu_model) machine.append(": ").append(*environment.cpu_model);
  if (environment.threads) {
    machine.append(machine.empty() ? ": " : ", ").append(std::to_string(*environment.threads));
    machine += *environment.threads == 1 ? " thread" : " threads";
  }
  return machine;
}

std::vector<std::string> footer(const Report& report) {
  std::vector<std::string> paragraphs = {
      "Attention and matmul: executed per step in forward/recompute/backward. Peak: bytes that "
      "tensors hold at op boundaries, parameters included. Step / none: ratio of median step "
      "times with its 95 % interval.",
      "Counts, bytes and equal bits hold on any machine; times hold for this machine and this "
      "shape" +
          machine_of(report.provenance.environment) + "."};
  const std::string failures = failures_line(report);
  if (!failures.empty()) paragraphs.push_back(failures);
  return paragraphs;
}

// As code, unless it holds what would end that, or could be taken for HTML.
std::string reproduce_line(const std::string& command, TableFormat format) {
  if (format == TableFormat::kText) return command;
  if (command.find_first_of("`<\n\r") != std::string::npos) return markdown_text(command);
  return "`" + command + "`";
}

}  // namespace

std::string render_table(const Report& report, TableFormat format, std::size_t width) {
  const bool is_text = format == TableFormat::kText;
  std::string text;
  for (const Comparison& comparison : compare_policies(report)) {
    Grid grid{columns()};
    for (const ComparedPoint& compared : comparison.points) {
      grid.rows.push_back(make_row(compared));
    }
    text += is_text ? format_line(comparison.title, format, width)
                    : "**" + markdown_text(comparison.title) + "**\n";
    text += "\n";
    text += format_grid(grid, format, width) + "\n";
  }
  if (report.points.empty()) text += "The report has no points.\n\n";
  for (const std::string& paragraph : footer(report)) {
    text += format_line(paragraph, format, width) + (is_text ? "" : "\n");
  }
  // Not wrapped: it is there to be copied.
  if (!report.provenance.reproduce.empty()) {
    text.append("Make it again: ").append(reproduce_line(report.provenance.reproduce, format));
    text += "\n";
  }
  return text;
}

}  // namespace rematch
