#include "reports/render/page.h"

#include <algorithm>
#include <map>
#include <utility>

#include "policies/trace/joined.h"
#include "reports/render/comparison.h"
#include "reports/render/markup.h"
#include "reports/render/page_compare.h"
#include "reports/render/page_front.h"
#include "reports/render/page_provenance.h"
#include "reports/render/page_section.h"
#include "reports/render/style.h"

namespace rematch {
namespace {

constexpr const char* kProvenanceAnchor = "made";
constexpr const char* kProvenanceHeading = "How it was measured";

// One part of the page, with an entry in the contents.
struct Section {
  std::string anchor;
  std::string heading;  // with the file's name where others stand beside it
  std::string facts;    // in a line; empty: none
  PagePart part;
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

std::vector<Section> sections_of(const Sources& sources) {
  std::vector<Section> sections;
  const auto add = [&](const char* kind, const std::string& heading, const std::string& facts,
                       PagePart part) {
    sections.push_back({kind + std::to_string(sections.size()), heading, facts, std::move(part)});
  };
  for (const NamedCompare& compare : sources.compares) {
    add("c", "Compared: " + sources.short_name.at(compare.name), "", page_compare(compare.record));
  }
  for (const NamedFront& front : sources.fronts) {
    add("f", sources.titled(heading_of(front.record), front.name),
        sources.short_name.at(front.name) + ": " + facts_of(front.record),
        page_front(front.record));
  }
  for (const NamedReport& source : sources.reports) {
    for (const Comparison& comparison : compare_policies(source.report)) {
      add("s", sources.titled(heading_of(comparison), source.name), facts_of(comparison),
          page_section(comparison, source.report.provenance.environment));
    }
  }
  return sections;
}

std::string markup_of(const Section& section) {
  std::string text =
      "<section id=\"" + section.anchor + "\">\n<h2>" + escape_markup(section.heading) + "</h2>\n";
  if (!section.facts.empty()) {
    text += "<p class=\"facts\">" + escape_markup(section.facts) + "</p>\n";
  }
  return text + section.part.head + figure_links(section.anchor, section.part.figures) +
         figures_markup(section.anchor, section.part.figures) + "</section>\n";
}

std::string title_of(const std::vector<Section>& sections) {
  std::string names;
  for (const Section& section : sections) names += (names.empty() ? "" : ", ") + section.heading;
  return "Activation checkpointing" + (names.empty() ? "" : ": " + names);
}

// Each machine once.
std::string machines_of(const std::vector<NamedReport>& reports) {
  std::vector<std::string> machines;
  for (const NamedReport& source : reports) {
    const std::string text = machine_line(source.report.provenance.environment);
    if (std::find(machines.begin(), machines.end(), text) == machines.end()) {
      machines.push_back(text);
    }
  }
  return joined(machines, "; ");
}

// What the page answers.
const char* question_of(const Sources& sources) {
  const bool is_comparison = sources.reports.empty() && sources.fronts.empty();
  if (!is_comparison || sources.compares.empty()) return "Which activations to keep";
  return "What differs between reports";
}

// Of one section alone the links to its figures are enough.
std::string contents(const std::vector<Section>& sections, bool is_measured) {
  if (sections.size() < 2) return "";
  std::string text = "<nav aria-label=\"Contents\"><ul>\n";
  const auto add = [&text](const std::string& anchor, const std::string& heading) {
    text += "<li><a href=\"#" + anchor + "\">" + escape_markup(heading) + "</a></li>\n";
  };
  for (const Section& section : sections) add(section.anchor, section.heading);
  if (is_measured) add(kProvenanceAnchor, kProvenanceHeading);
  return text + "</ul></nav>\n";
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
    page += "<p class=\"lead\">" + escape_markup(machines_of(reports)) + "</p>\n";
  }
  page += contents(sections, !reports.empty());
  if (sections.empty()) page += "<p>The report has no points.</p>\n";
  for (const Section& section : sections) page += markup_of(section);
  if (!reports.empty()) {
    page += std::string("<h2 id=\"") + kProvenanceAnchor + "\">" + kProvenanceHeading + "</h2>\n";
  }
  for (const NamedReport& source : reports) {
    page += provenance_figure(source.report.provenance, sources.short_name.at(source.name));
  }
  return page + "</main>\n</body>\n</html>\n";
}

}  // namespace rematch
