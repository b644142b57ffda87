#include "reports/render/page.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/trace/joined.h"
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

// One part of the page, with an entry in the navigation.
struct Section {
  std::string anchor;
  std::string heading;  // with the file's name where others stand beside it
  std::string content;  // what follows the heading
};

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

std::string heading_of(const FrontRecord& record) {
  return record.model + " on " + record.device + ", searched";
}

std::string last_parts(const std::string& path, int num_parts) {
  std::size_t from = path.size();
  for (int part = 0; part < num_parts && from != 0 && from != std::string::npos; ++part) {
    from = path.find_last_of('/', from - 1);
  }
  return from == std::string::npos ? path : path.substr(from + 1);
}

// The files' names; where two are called the same, with as much of the path as tells them apart.
std::vector<std::string> short_names(const std::vector<std::string>& paths) {
  constexpr int kMostParts = 8;
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    int num_parts = 1;
    const auto is_shared = [&] {
      return std::any_of(paths.begin(), paths.end(), [&](const std::string& other) {
        return other != path && last_parts(other, num_parts) == last_parts(path, num_parts);
      });
    };
    while (num_parts < kMostParts && is_shared()) ++num_parts;
    names.push_back(last_parts(path, num_parts));
  }
  return names;
}

std::string facts_of(const FrontRecord& record) {
  std::string facts;
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

// All that goes onto one page, and what each file is called on it.
struct Sources {
  const std::vector<NamedReport>& reports;
  const std::vector<NamedCompare>& compares;
  const std::vector<NamedFront>& fronts;
  std::map<std::string, std::string> short_name;  // by the name that the user gave

  bool is_one_file() const { return reports.size() + compares.size() + fronts.size() == 1; }
  std::string titled(const std::string& heading, const std::string& file) const {
    return is_one_file() ? heading : heading + ": " + short_name.at(file);
  }
};

Sources sources_of(const std::vector<NamedReport>& reports,
                   const std::vector<NamedCompare>& compares,
                   const std::vector<NamedFront>& fronts) {
  Sources sources{reports, compares, fronts, {}};
  std::vector<std::string> paths;
  for (const NamedReport& source : reports) paths.push_back(source.name);
  for (const NamedCompare& source : compares) paths.push_back(source.name);
  for (const NamedFront& source : fronts) paths.push_back(source.name);
  const std::vector<std::string> names = short_names(paths);
  for (std::size_t index = 0; index < paths.size(); ++index) {
    sources.short_name[paths[index]] = names[index];
  }
  return sources;
}

std::string facts_line(const std::string& facts) {
  return "<p class=\"facts\">" + escape_markup(facts) + "</p>\n";
}

std::vector<Section> sections_of(const Sources& sources) {
  std::vector<Section> sections;
  const auto add = [&](const char* kind, const std::string& heading, std::string content) {
    sections.push_back({kind + std::to_string(sections.size()), heading, std::move(content)});
  };
  for (const NamedCompare& compare : sources.compares) {
    add("c", "Compared: " + sources.short_name.at(compare.name), page_compare(compare.record));
  }
  for (const NamedFront& front : sources.fronts) {
    add("f", sources.titled(heading_of(front.record), front.name),
        facts_line(sources.short_name.at(front.name) + ": " + facts_of(front.record)) +
            page_front(front.record));
  }
  for (const NamedReport& source : sources.reports) {
    for (const Comparison& comparison : compare_policies(source.report)) {
      add("s", sources.titled(heading_of(comparison), source.name),
          facts_line(facts_of(comparison)) +
              page_section(comparison, source.report.provenance.environment));
    }
  }
  return sections;
}

std::string title_of(const std::vector<Section>& sections) {
  std::string names;
  for (const Section& section : sections) names += (names.empty() ? "" : ", ") + section.heading;
  return "Activation checkpointing" + (names.empty() ? "" : ": " + names);
}

// What the page answers.
const char* question_of(const Sources& sources) {
  const bool is_comparison = sources.reports.empty() && sources.fronts.empty();
  if (!is_comparison || sources.compares.empty()) return "Which activations to keep";
  return "What differs between reports";
}

std::string navigation(const std::vector<Section>& sections) {
  if (sections.size() < 2) return "";
  std::string text = "<nav aria-label=\"Comparisons\">";
  for (const Section& section : sections) {
    text += "<a href=\"#" + section.anchor + "\">" + escape_markup(section.heading) + "</a>";
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
std::string provenance(const NamedReport& source, const std::string& name) {
  const Provenance& made = source.report.provenance;
  const Environment& machine = made.environment;
  std::string text = "<figure><h3>" + escape_markup(name) + "</h3>\n<dl>\n";
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
  return joined(machines, "; ");
}

}  // namespace

std::string render_page(const std::vector<NamedReport>& reports,
                        const std::vector<NamedCompare>& compares,
                        const std::vector<NamedFront>& fronts) {
  const Sources sources = sources_of(reports, compares, fronts);
  const std::vector<Section> sections = sections_of(sources);
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  // Nothing is loaded, whatever a report says.
  page +=
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; img-src data:\">\n";
  page += "<link rel=\"icon\" href=\"data:,\">\n";
  page += "<title>" + escape_markup(title_of(sections)) + "</title>\n<style>\n" + picture_styles() +
          page_styles() + "</style>\n</head>\n<body>\n<main>\n";
  page += std::string("<h1>") + question_of(sources) + "</h1>\n";
  if (!reports.empty()) {
    page += "<p class=\"lead\">" + escape_markup(machine_line(reports)) + "</p>\n";
  }
  page += navigation(sections);
  if (sections.empty()) page += "<p>The report has no points.</p>\n";
  for (const Section& section : sections) {
    page += "<section id=\"" + section.anchor + "\">\n<h2>" + escape_markup(section.heading) +
            "</h2>\n" + section.content + "</section>\n";
  }
  if (!reports.empty()) page += "<h2>How it was measured</h2>\n";
  for (const NamedReport& source : reports) {
    page += provenance(source, sources.short_name.at(source.name));
  }
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace rematch
