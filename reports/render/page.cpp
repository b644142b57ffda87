#include "reports/render/page.h"

#include <algorithm>

#include "reports/render/comparison.h"
#include "reports/render/format.h"
#include "reports/render/markup.h"
#include "reports/render/page_compare.h"
#include "reports/render/page_front.h"
#include "reports/render/page_section.h"
#include "reports/render/page_table.h"
#include "reports/render/style.h"
#include "reports/render/svg.h"

namespace rematch {
namespace {

struct Section {
  const NamedReport* source = nullptr;
  Comparison comparison;
  std::string anchor;
};

std::vector<Section> sections_of(const std::vector<NamedReport>& reports) {
  std::vector<Section> sections;
  for (const NamedReport& source : reports) {
    for (Comparison& comparison : compare_policies(source.report)) {
      sections.push_back({&source, std::move(comparison), "s" + std::to_string(sections.size())});
    }
  }
  return sections;
}

// "wan_small on cpu", without the dimensions that follow in the title.
std::string heading_of(const Comparison& comparison) {
  const PointRecord& point = *comparison.points.front().point;
  return point.identity.model + " on " + point.device;
}

// The dimensions and settings alone.
std::string facts_of(const Comparison& comparison) {
  const std::string heading = heading_of(comparison) + ": ";
  return comparison.title.starts_with(heading) ? comparison.title.substr(heading.size())
                                               : comparison.title;
}

std::string heading_of(const NamedFront& front) {
  return front.record.model + " on " + front.record.device + ", searched";
}

std::string facts_of(const NamedFront& front) {
  const FrontRecord& record = front.record;
  std::string facts = front.name + ": ";
  for (const auto& [name, value] : record.dimensions) {
    facts += name + " " + std::to_string(value) + ", ";
  }
  facts += record.dtype + ", " + std::string(to_string(record.front.schedule)) + "; " +
           std::string(to_string(record.time_source)) + " op times; " +
           std::to_string(record.front.points.size()) + " of " +
           std::to_string(record.front.num_plans_found) + " plans worth having";
  if (record.world > 1) facts += "; one of " + std::to_string(record.world) + " ranks";
  return facts;
}

std::string title_of(const std::vector<Section>& sections, const std::vector<NamedFront>& fronts) {
  std::string names;
  for (const NamedFront& front : fronts) {
    names += (names.empty() ? "" : ", ") + heading_of(front);
  }
  for (const Section& section : sections) {
    names += (names.empty() ? "" : ", ") + heading_of(section.comparison);
  }
  return "Activation checkpointing" + (names.empty() ? "" : ": " + names);
}

std::string link_to(const std::string& anchor, const std::string& text) {
  return "<a href=\"#" + anchor + "\">" + escape_markup(text) + "</a>";
}

std::string anchor_of_front(std::size_t index) { return "f" + std::to_string(index); }

std::string navigation(const std::vector<Section>& sections,
                       const std::vector<NamedFront>& fronts) {
  if (sections.size() + fronts.size() < 2) return "";
  std::string text = "<nav aria-label=\"Comparisons\">";
  for (std::size_t index = 0; index < fronts.size(); ++index) {
    const NamedFront& front = fronts[index];
    const bool is_alone = fronts.size() == 1;
    text += link_to(anchor_of_front(index),
                    is_alone ? heading_of(front) : heading_of(front) + ": " + front.name);
  }
  for (const Section& section : sections) {
    text += link_to(section.anchor, heading_of(section.comparison));
  }
  return text + "</nav>\n";
}

std::string fact(const std::string& name, const std::optional<std::string>& value) {
  if (!value || value->empty()) return "";
  return "<dt>" + escape_markup(name) + "</dt><dd>" + escape_markup(*value) + "</dd>\n";
}

std::optional<std::string> as_text(const std::optional<int>& value) {
  return value ? std::optional(std::to_string(*value)) : std::nullopt;
}

std::optional<std::string> as_text(const std::optional<Bytes>& value) {
  return value ? std::optional(format_bytes(*value)) : std::nullopt;
}

// What the figures were measured with, and the line that measures them again.
std::string provenance(const NamedReport& source) {
  const Provenance& made = source.report.provenance;
  const Environment& machine = made.environment;
  std::string text = "<figure><h3>" + escape_markup(source.name) + "</h3>\n<dl>\n";
  text += fact("device", machine.device) + fact("device memory", as_text(machine.device_memory)) +
          fact("CPU", machine.cpu_model) + fact("threads", as_text(machine.threads)) +
          fact("host memory", as_text(machine.host_memory)) +
          fact("LibTorch", machine.libtorch_version) + fact("driver", machine.driver) +
          fact("CUDA", machine.cuda_runtime) + fact("allocator", machine.allocator) +
          fact("mathematics", machine.math_mode) + fact("system", machine.os) +
          fact("execution", made.execution) + fact("rematch", made.tool_version);
  if (made.git_commit) {
    text += fact("commit",
                 *made.git_commit + (made.git_dirty.value_or(false) ? ", with local changes" : ""));
  }
  text += fact("fingerprint", fingerprint(machine).substr(0, 16)) + "</dl>\n";
  if (!made.reproduce.empty()) {
    text +=
        "<p class=\"after\">Make it again:</p><pre>" + escape_markup(made.reproduce) + "</pre>\n";
  }
  return text + "</figure>\n";
}

std::string machine_line(const std::vector<NamedReport>& reports) {
  std::vector<std::string> machines;
  for (const NamedReport& source : reports) {
    const Environment& machine = source.report.provenance.environment;
    std::string text = machine.device.value_or("unknown device");
    if (text == "cpu" && machine.cpu_model) text = *machine.cpu_model;
    if (machine.threads) {
      text += ", " + std::to_string(*machine.threads) +
              (*machine.threads == 1 ? " thread" : " threads");
    }
    if (machine.libtorch_version) text += ", LibTorch " + *machine.libtorch_version;
    if (std::find(machines.begin(), machines.end(), text) == machines.end()) {
      machines.push_back(text);
    }
  }
  std::string line;
  for (const std::string& machine : machines) line += (line.empty() ? "" : "; ") + machine;
  return line;
}

}  // namespace

std::string render_page(const std::vector<NamedReport>& reports,
                        const std::vector<NamedCompare>& compares,
                        const std::vector<NamedFront>& fronts) {
  const std::vector<Section> sections = sections_of(reports);
  const std::string title = escape_markup(title_of(sections, fronts));
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Nothing is loaded, whatever a report says.
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + title + "</title>\n<style>\n" + picture_styles() + page_styles() +
          "</style>\n</head>\n<body>\n<main>\n";
  page += "<h1>Which activations to keep</h1>\n";
  if (!reports.empty()) {
    page += "<p class=\"lead\">" + escape_markup(machine_line(reports)) + "</p>\n";
  }
  page += navigation(sections, fronts);
  if (sections.empty() && compares.empty() && fronts.empty()) {
    page += "<p>The report has no points.</p>\n";
  }
  for (const NamedCompare& compare : compares) {
    page += "<section>\n<h2>Compared: " + escape_markup(compare.name) + "</h2>\n" +
            page_compare(compare.record) + "</section>\n";
  }
  for (std::size_t index = 0; index < fronts.size(); ++index) {
    page += "<section id=\"" + anchor_of_front(index) + "\">\n<h2>" +
            escape_markup(heading_of(fronts[index])) + "</h2>\n<p class=\"facts\">" +
            escape_markup(facts_of(fronts[index])) + "</p>\n" + page_front(fronts[index].record) +
            "</section>\n";
  }
  for (const Section& section : sections) {
    page += "<section id=\"" + section.anchor + "\">\n<h2>" +
            escape_markup(heading_of(section.comparison)) + "</h2>\n<p class=\"facts\">" +
            escape_markup(facts_of(section.comparison)) + "</p>\n" +
            page_section(section.comparison, section.source->report.provenance.environment) +
            "</section>\n";
  }
  if (!reports.empty()) page += "<h2>How it was measured</h2>\n";
  for (const NamedReport& source : reports) page += provenance(source);
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace rematch
