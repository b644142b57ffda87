#include "reports/render/table.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "reports/render/comparison.h"
#include "reports/render/format.h"
#include "reports/render/row.h"

namespace rematch {
namespace {

constexpr std::string_view kDetailIndent = "    ";

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < columns().size(); ++column) {
    std::size_t width = columns()[column].title.size();
    for (const Row& row : rows) width = std::max(width, row.cells[column].size());
    widths.push_back(width);
  }
  return widths;
}

constexpr std::size_t kWideGap = 2;
constexpr std::size_t kNarrowGap = 1;

struct Layout {
  std::vector<std::size_t> widths;
  std::vector<bool> shown;  // the others are told in the detail line
  std::size_t gap = kWideGap;

  std::size_t total() const {
    std::size_t sum = 0;
    for (std::size_t column = 0; column < widths.size(); ++column) {
      if (shown[column]) sum += widths[column] + (sum == 0 ? 0 : gap);
    }
    return sum;
  }
};

Layout choose_layout(const std::vector<Row>& rows, std::size_t width) {
  Layout layout{widths_of(rows), std::vector<bool>(columns().size(), true)};
  for (int yields = 3; yields > 0 && layout.total() > width; --yields) {
    for (std::size_t column = 0; column < columns().size(); ++column) {
      if (columns()[column].yields == yields) layout.shown[column] = false;
    }
  }
  if (layout.total() > width) layout.gap = kNarrowGap;
  return layout;
}

std::string pad(const std::string& text, std::size_t width, Alignment alignment) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return alignment == Alignment::kLeft ? text + space : space + text;
}

std::string text_line(const std::vector<std::string>& cells, const Layout& layout) {
  std::string line;
  for (std::size_t column = 0; column < cells.size(); ++column) {
    if (!layout.shown[column]) continue;
    if (!line.empty()) line.append(layout.gap, ' ');
    line += pad(cells[column], layout.widths[column], columns()[column].alignment);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string wrapped(const std::string& text, std::string_view indent, std::size_t width) {
  std::string lines;
  for (const std::string& line : wrap(text, width - indent.size())) {
    lines.append(indent).append(line).append("\n");
  }
  return lines;
}

std::vector<std::string> titles() {
  std::vector<std::string> names;
  for (const Column& column : columns()) names.push_back(column.title);
  return names;
}

std::string text_table(const std::vector<Row>& rows, std::size_t width) {
  const Layout layout = choose_layout(rows, width);
  std::string text = text_line(titles(), layout);
  for (const Row& row : rows) {
    text += text_line(row.cells, layout);
    std::string detail = row.detail;
    for (std::size_t column = 0; column < row.cells.size(); ++column) {
      if (layout.shown[column] || row.cells[column] == kNotMeasured) continue;
      detail += "; " + columns()[column].title + " " + row.cells[column];
    }
    text += wrapped(detail, kDetailIndent, width);
  }
  return text;
}

std::string markdown_line(const std::vector<std::string>& cells, const std::string& last) {
  std::string line = "|";
  for (const std::string& cell : cells) line.append(" ").append(cell).append(" |");
  return line + " " + last + " |\n";
}

// A `|` would end the cell.
std::string markdown_cell(const std::string& text) {
  std::string cell;
  for (const char letter : text) {
    if (letter == '|') cell += '\\';
    cell += letter;
  }
  return cell;
}

std::string markdown_table(const std::vector<Row>& rows) {
  std::string text = markdown_line(titles(), "verdict");
  text += "|";
  for (const Column& column : columns()) {
    text += column.alignment == Alignment::kLeft ? " --- |" : " ---: |";
  }
  text += " --- |\n";
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& cell : row.cells) cells.push_back(markdown_cell(cell));
    text += markdown_line(cells, markdown_cell(row.detail));
  }
  return text;
}

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

}  // namespace

std::string render_table(const Report& report, TableFormat format, std::size_t width) {
  const bool is_text = format == TableFormat::kText;
  std::string text;
  for (const Comparison& comparison : compare_policies(report)) {
    std::vector<Row> rows;
    for (const ComparedPoint& compared : comparison.points) rows.push_back(make_row(compared));
    text += is_text ? wrapped(comparison.title, "", width)
                    : std::string("**").append(comparison.title).append("**\n");
    text += "\n";
    text += is_text ? text_table(rows, width) : markdown_table(rows);
    text += "\n";
  }
  if (report.points.empty()) text += "The report has no points.\n\n";
  for (const std::string& paragraph : footer(report)) {
    text += is_text ? wrapped(paragraph, "", width) : paragraph + "\n\n";
  }
  // Not wrapped: it is there to be copied.
  if (!report.provenance.reproduce.empty()) {
    const std::string quote = is_text ? "" : "`";
    text.append("Make it again: ").append(quote).append(report.provenance.reproduce);
    text.append(quote).append("\n");
  }
  return text;
}

}  // namespace rematch
