#include "reports/render/pages/page.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "policies/base/format.h"
#include "policies/base/hashing.h"
#include "policies/base/text.h"
#include "policies/trace/compiled_graph.h"
#include "reports/render/charts/builders.h"
#include "reports/render/markup.h"
#include "reports/render/pages/parts.h"
#include "reports/render/styles.h"
#include "reports/render/tables/front_table.h"
#include "reports/render/tables/report_table.h"

namespace rematch {
namespace {

using page::Part;
using page::Tile;

constexpr const char* kProvenanceAnchor = "made";
constexpr const char* kProvenanceHeading = "Machine, settings and command";

// One part of the page, with its row in the table of contents.
struct Section {
  std::string anchor;
  std::string heading;  // includes the file's name if there are several files
  std::string facts;    // a line of facts; may be empty
  Part part;
};

std::string last_parts(const std::string& path, int num_parts) {
  std::size_t from = path.size();
  for (int part = 0; part < num_parts && from != 0 && from != std::string::npos; ++part) {
    from = path.find_last_of('/', from - 1);
  }
  return from == std::string::npos ? path : path.substr(from + 1);
}

// Returns the file's name, and as much of its path as is needed to distinguish it from other files.
std::string short_name(const std::string& path, const std::vector<std::string>& paths) {
  constexpr int kMaxParts = 8;
  for (int num_parts = 1;; ++num_parts) {
    std::string name = last_parts(path, num_parts);
    if (num_parts == kMaxParts ||
        std::none_of(paths.begin(), paths.end(), [&](const std::string& other) {
          return other != path && last_parts(other, num_parts) == name;
        })) {
      return name;
    }
  }
}

// The records of one page, with short names for their files.
struct Sources {
  const std::vector<NamedReport>& reports;
  const std::vector<NamedCompare>& compares;
  const std::vector<NamedFront>& fronts;
  std::map<std::string, std::string> short_names = {};  // the key is the path that the user gave

  void find_short_names() {
    std::vector<std::string> paths;
    for (const auto& source : reports) paths.push_back(source.name);
    for (const auto& source : compares) paths.push_back(source.name);
    for (const auto& source : fronts) paths.push_back(source.name);
    for (const std::string& path : paths) short_names[path] = short_name(path, paths);
  }
  std::string titled(const std::string& heading, const std::string& file) const {
    const bool is_alone = reports.size() + compares.size() + fronts.size() == 1;
    return is_alone ? heading : heading + ": " + short_names.at(file);
  }
};

// Splits the title into a heading such as "wan_small on cpu", and the dimensions and settings.
std::pair<std::string, std::string> heading_and_facts(const PolicyComparison& comparison) {
  const std::size_t colon = comparison.title.find(": ");
  return {comparison.title.substr(0, colon), comparison.title.substr(colon + 2)};
}

std::string facts_of(const FrontRecord& record) {
  std::string facts;
  for (const auto& [name, value] : record.dimensions) {
    if (name != kCompiledGraph) facts += name + " " + std::to_string(value) + ", ";
  }
  facts += record.dtype + compiled_graph_words(record.dimensions) + ", " +
           std::string(to_string(record.front.schedule)) + "; " +
           std::string(to_string(record.time_source)) + " op times; " + plans_words(record.front);
  return facts + ranks_words(record);
}

// Maximum number of comparisons in a sweep that have parts of their own on the page. In a larger
// sweep, only the overview shows their tables.
constexpr std::size_t kMaxParts = 6;

std::string sweep_heading(const SweepModel& model) {
  std::string heading = model.heading;
  for (std::size_t index = 0; index < model.axes.size(); ++index) {
    heading += (index == 0                       ? " by "
                : index + 1 == model.axes.size() ? " and "
                                                 : ", ") +
               model.axes[index].name;
  }
  return heading;
}

// Returns the values of the sweep's axes at this comparison, such as "tokens 8, batch 1"; "" if
// nothing varies.
std::string place_words(const std::vector<SweepModel>& models, const PolicyComparison& comparison) {
  for (const SweepModel& model : models) {
    for (const SweepShape& shape : model.shapes) {
      if (shape.comparison == &comparison && !model.axes.empty()) return shape_words(model, shape);
    }
  }
  return "";
}

void add_report(const Sources& sources, const NamedReport& source, std::vector<Section>& sections) {
  const std::vector<PolicyComparison> comparisons = compare_policies(source.report);
  const std::vector<SweepModel> models = sweep_models(source.report, comparisons);
  const bool has_parts = comparisons.size() <= kMaxParts;
  const std::size_t num_overviews = is_sweep(models) ? models.size() : 0;
  const std::size_t first_part = sections.size() + num_overviews;
  for (std::size_t index = 0; index < num_overviews; ++index) {
    const SweepModel& model = models[index];
    const std::string anchor = "m" + std::to_string(sections.size());
    std::vector<std::string> anchors;
    for (const SweepShape& shape : model.shapes) {
      const auto place = static_cast<std::size_t>(shape.comparison - comparisons.data());
      if (has_parts) anchors.push_back("s" + std::to_string(first_part + place));
    }
    sections.push_back({anchor, sources.titled(sweep_heading(model), source.name), model.common,
                        page::sweep_part(model, anchor, std::move(anchors))});
  }
  if (num_overviews > 0 && !has_parts) return;
  const bool is_part_of_sweep = num_overviews > 0;
  for (const PolicyComparison& comparison : comparisons) {
    const auto [heading, facts] = heading_and_facts(comparison);
    const std::string place = is_part_of_sweep ? place_words(models, comparison) : "";
    const std::string anchor = "s" + std::to_string(sections.size());
    sections.push_back(
        {anchor, sources.titled(heading + (place.empty() ? "" : ", " + place), source.name), facts,
         page::comparison_part(comparison, source.report.provenance.environment, anchor)});
  }
}

// Adds a part for each comparison that occurs in several reports, with one chart of the points of
// all these reports.
void add_overlays(const Sources& sources, std::vector<Section>& sections) {
  if (sources.reports.size() < 2) return;
  std::vector<std::vector<PolicyComparison>> all;
  std::vector<std::string> titles;
  for (const NamedReport& source : sources.reports) {
    for (const PolicyComparison& each : all.emplace_back(compare_policies(source.report))) {
      if (std::find(titles.begin(), titles.end(), each.title) == titles.end()) {
        titles.push_back(each.title);
      }
    }
  }
  for (const std::string& title : titles) {
    std::vector<chart::OverlaidPoints> overlaid;
    const PolicyComparison* first = nullptr;
    for (std::size_t index = 0; index < all.size(); ++index) {
      for (const PolicyComparison& each : all[index]) {
        if (each.title != title) continue;
        if (first == nullptr) first = &each;
        overlaid.push_back({sources.short_names.at(sources.reports[index].name), &each.points});
      }
    }
    const chart::Plane plane = chart::overlaid_points(overlaid);
    if (overlaid.size() < 2 || plane.is_empty()) continue;
    const auto [heading, facts] = heading_and_facts(*first);
    Part part;
    part.figures = {{"Step time against peak memory",
                     "Lower left is better. Each colour is a report; vertical bars are 95 % "
                     "intervals of the median step time.",
                     page::picture(draw(plane))}};
    sections.push_back({"o" + std::to_string(sections.size()), heading + ", reports together",
                        facts, std::move(part)});
  }
}

std::vector<Section> sections_of(const Sources& sources) {
  std::vector<Section> sections;
  const auto add = [&](const char* kind, const std::string& heading, const std::string& facts,
                       Part part) {
    sections.push_back({kind + std::to_string(sections.size()), heading, facts, std::move(part)});
  };
  for (const auto& [name, record] : sources.compares) {
    add("c", "Compared: " + sources.short_names.at(name), "", page::compare_part(record));
  }
  for (const auto& [name, record] : sources.fronts) {
    add("f", sources.titled(record.model + " on " + record.device + ", searched", name),
        sources.short_names.at(name) + ": " + facts_of(record),
        page::front_part(record, name, "f" + std::to_string(sections.size())));
  }
  add_overlays(sources, sections);
  for (const NamedReport& source : sources.reports) add_report(sources, source, sections);
  return sections;
}

// Lists every machine of the reports once.
std::string machines_of(const std::vector<NamedReport>& reports) {
  std::vector<std::string> machines;
  for (const NamedReport& source : reports) {
    std::string text = machine_words(source.report.provenance.environment);
    if (text.empty()) text = "unknown machine";
    if (std::find(machines.begin(), machines.end(), text) == machines.end()) {
      machines.push_back(text);
    }
  }
  return joined(machines, "; ");
}

// Returns a table of contents with a row for each part, and a column for each key figure. Empty if
// there is only one part.
std::string contents(const std::vector<Section>& sections, bool has_provenance) {
  if (sections.size() < 2) return "";
  table::Grid grid{{{"contents", table::Alignment::kLeft}}};
  std::vector<std::string> names;
  for (const Section& section : sections) {
    for (const Tile& tile : section.part.tiles) {
      if (std::find(names.begin(), names.end(), tile.name) != names.end()) continue;
      names.push_back(tile.name);
      grid.columns.push_back({tile.name});
    }
  }
  for (const Section& section : sections) {
    table::Row row{{section.heading}, section.part.verdict};
    row.anchor = section.anchor;
    for (const std::string& name : names) {
      const auto& tiles = section.part.tiles;
      const auto tile = std::find_if(tiles.begin(), tiles.end(),
                                     [&](const Tile& other) { return other.name == name; });
      row.cells.push_back(tile == tiles.end() ? table::kNotMeasured : tile->value);
    }
    grid.rows.push_back(std::move(row));
  }
  if (has_provenance) {
    table::Row row{std::vector<std::string>(grid.columns.size(), ""), ""};
    row.cells.front() = kProvenanceHeading;
    row.anchor = kProvenanceAnchor;
    grid.rows.push_back(std::move(row));
  }
  return "<nav aria-label=\"Contents\"><figure>" +
         page::grid(grid, page::CellTitles::kBesideOnNarrow) + "</figure></nav>\n";
}

// Returns markup for the machine, the versions of its software, and the command that reproduces the
// measurement. Machine and versions are folded.
std::string provenance(const Provenance& made, const std::string& name) {
  const Environment& machine = made.environment;
  std::string facts;
  const auto add = [&facts](const char* fact, const std::optional<std::string>& value) {
    if (!value || value->empty()) return;
    facts.append("<dt>").append(fact).append("</dt><dd>").append(escape_markup(*value));
    facts += "</dd>\n";
  };
  const auto bytes = [](const std::optional<Bytes>& value) {
    return value ? std::optional(format_bytes(*value)) : std::nullopt;
  };
  add("Device", machine.device);
  add("Device memory", bytes(machine.device_memory));
  add("CPU", machine.cpu_model);
  if (machine.threads) add("Threads", std::to_string(*machine.threads));
  add("Host memory", bytes(machine.host_memory));
  add("LibTorch", machine.libtorch_version);
  add("Driver", machine.driver);
  add("CUDA", machine.cuda_runtime);
  add("Allocator", machine.allocator);
  add("Math mode", machine.math_mode);
  add("System", machine.os);
  add("Execution", made.execution);
  add("Version of rematch", made.tool_version);
  const bool is_dirty = made.git_dirty.value_or(false);
  if (made.git_commit) add("Commit", *made.git_commit + (is_dirty ? ", with local changes" : ""));
  add("Fingerprint", fingerprint(machine).substr(0, 16));
  std::string text = "<figure><h3>" + escape_markup(name) +
                     "</h3>\n<details><summary>Machine and versions</summary>\n<dl>\n" + facts +
                     "</dl></details>\n";
  if (!made.reproduce.empty()) {
    text +=
        "<p class=\"after\">Reproduce with:</p><pre>" + escape_markup(made.reproduce) + "</pre>\n";
  }
  return text + "</figure>\n";
}

// Returns the commit, the day and the command of a search, as far as the file contains them.
std::string provenance(const FrontRecord& record, const std::string& name) {
  std::string facts = record.date.empty() ? "" : "Searched on " + record.date + " ";
  if (record.git_commit) {
    facts += (facts.empty() ? "Searched by commit " : "by commit ") + *record.git_commit +
             (record.git_dirty.value_or(false) ? ", with local changes" : "");
  }
  if (facts.empty() && record.reproduce.empty()) return "";
  std::string text =
      "<figure><h3>" + escape_markup(name) + "</h3>\n" + page::paragraph("after", facts);
  if (!record.reproduce.empty()) {
    text += "<p class=\"after\">Reproduce with:</p><pre>" + escape_markup(record.reproduce) +
            "</pre>\n";
  }
  return text + "</figure>\n";
}

std::string page_script() { return std::string(embedded_scripts().front().second); }

std::string in_base64(const std::string& hex) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  // 6 hex digits are 3 bytes, or 4 digits of base64
  constexpr std::size_t kHexOfGroup = 6;
  std::string text;
  for (std::size_t at = 0; at < hex.size(); at += kHexOfGroup) {
    const std::string part = hex.substr(at, kHexOfGroup);
    const std::size_t num_bytes = part.size() / 2;
    const auto bits = std::stoul(part + std::string(kHexOfGroup - part.size(), '0'), nullptr, 16);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += digit <= num_bytes ? kDigits[(bits >> (18 - 6 * digit)) & 63] : '=';
    }
  }
  return text;
}

std::string head(const std::string& title) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      // Allows no external resources, and no script except the page's own, because a report may
      // contain any text.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:; script-src 'sha256-";
  text += in_base64(sha256_hex(page_script())) + "'\">\n<link rel=\"icon\" href=\"data:,\">\n";
  text.append("<title>").append(escape_markup(title)).append("</title>\n<style>\n");
  text.append(chart::picture_styles()).append(embedded_styles().back().second);
  return text + "</style>\n</head>\n";
}

}  // namespace

std::string render_page(const std::vector<NamedReport>& reports,
                        const std::vector<NamedCompare>& compares,
                        const std::vector<NamedFront>& fronts) {
  Sources sources{reports, compares, fronts};
  sources.find_short_names();
  const std::vector<Section> sections = sections_of(sources);
  // Uses only the first parts, so that the title fits into a browser's tab.
  constexpr std::size_t kMaxInTitle = 3;
  std::vector<std::string> headings;
  for (const Section& section : sections) {
    if (headings.size() < kMaxInTitle) headings.push_back(section.heading);
  }
  std::string made;
  for (const NamedReport& source : reports) {
    made += provenance(source.report.provenance, sources.short_names.at(source.name));
  }
  for (const auto& [name, record] : fronts)
    made += provenance(record, sources.short_names.at(name));
  const bool is_compare = !compares.empty() && reports.empty() && fronts.empty();
  std::string page = head("Activation checkpointing" + std::string(headings.empty() ? "" : ": ") +
                          joined(headings)) +
                     "<body>\n<main>\n<h1>" +
                     (is_compare ? "What differs between reports" : "Which activations to keep") +
                     "</h1>\n" + page::paragraph("lead", machines_of(reports)) +
                     contents(sections, !made.empty());
  if (sections.empty()) page += page::paragraph("", "The report has no points.");
  for (const auto& [anchor, heading, facts, part] : sections) {
    page += "<section id=\"" + anchor + "\">\n<h2>" + escape_markup(heading) + "</h2>\n" +
            page::paragraph("facts", facts) + page::part(part, anchor) + "</section>\n";
  }
  if (!made.empty()) {
    page += std::string("<h2 id=\"") + kProvenanceAnchor + "\">" + kProvenanceHeading + "</h2>\n" +
            made;
  }
  return page + "</main>\n<script>" + page_script() + "</script>\n</body>\n</html>\n";
}

}  // namespace rematch
