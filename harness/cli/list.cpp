#include <algorithm>
#include <sstream>

#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "models/preset/preset.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/systems.h"

namespace rematch {
namespace {

std::string used_by(const CatalogueEntry& entry) { return joined(systems_with(entry.name)); }

Json to_json() {
  Json json = {
      {"schema", "rematch.list/1.0"}, {"policies", Json::array()}, {"models", Json::array()}};
  for (const CatalogueEntry& entry : catalogue()) {
    json["policies"].push_back({{"name", entry.name},
                                {"parameters", entry.parameters},
                                {"description", entry.description},
                                {"used_by", used_by(entry)}});
  }
  for (const PresetEntry& entry : presets()) {
    json["models"].push_back({{"name", entry.name}, {"description", entry.description}});
  }
  return json;
}

struct ListRow {
  std::string name;
  std::string text;
};

// Wraps text that is wider than the terminal. Continuation lines are aligned with the beginning of
// the text.
std::string aligned(const std::vector<ListRow>& rows) {
  std::size_t width = 0;
  for (const ListRow& row : rows) width = std::max(width, row.name.size());
  const std::size_t indent = width + 4;
  std::string lines;
  for (const ListRow& row : rows) {
    std::string head = "  " + row.name;
    head.resize(indent, ' ');
    lines += indented(row.text, indent).replace(0, indent, head, 0, indent);
  }
  return lines;
}

std::string to_text() {
  std::vector<ListRow> policies;
  for (const CatalogueEntry& entry : catalogue()) {
    std::string text(entry.description);
    if (const std::string systems = used_by(entry); !systems.empty()) text += " (" + systems + ")";
    std::string name(entry.name);
    policies.push_back({name.append(entry.parameters), text});
  }
  std::vector<ListRow> models;
  for (const PresetEntry& entry : presets()) {
    models.push_back({std::string(entry.name), std::string(entry.description)});
  }
  return "Policies\n" + aligned(policies) + "\nModels\n" + aligned(models);
}

const TrainingSystem& system_of(const SystemEntry& entry) {
  return *std::ranges::find(training_systems(), entry.system, &TrainingSystem::name);
}

Json systems_to_json() {
  Json rows = Json::array();
  for (const SystemEntry& entry : system_entries()) {
    Json row = {{"system", entry.system}, {"mode", entry.spelling}};
    row["policy"] = entry.stands_for.empty() ? Json(nullptr) : Json(entry.stands_for);
    row["description"] = entry.description;
    row["pitfall"] = entry.pitfall.text.empty() ? Json(nullptr) : Json(entry.pitfall.text);
    row["schedule"] = to_string(usual_schedule(entry.spelling));
    row["configuration"] = entry.configuration.empty() ? Json(nullptr) : Json(entry.configuration);
    row["versions"] = entry.versions.empty() ? Json(nullptr) : Json(entry.versions);
    row["where"] = system_of(entry).where;
    row["source"] = system_of(entry).source;
    rows.push_back(std::move(row));
  }
  return {{"schema", "rematch.systems/1.0"}, {"modes", std::move(rows)}};
}

// Returns the lines for a trainer's configuration, below the heading "to write:". In `pattern`,
// {S;, } is a list with the separator ", ", and is printed as {S}.
std::string configuration_text(std::string_view pattern, std::size_t indent) {
  std::string text(pattern);
  for (std::size_t at = text.find(';'); at != std::string::npos; at = text.find(';', at)) {
    const bool is_list = at >= 2 && text[at - 2] == '{';
    if (is_list) {
      text.erase(at, text.find('}', at) - at);
    } else {
      ++at;
    }
  }
  std::string lines = std::string(indent, ' ') + "to write:\n";
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.append(indent + 2, ' ').append(line).append("\n");
  }
  return lines;
}

// Returns a text with one block per system, which describes the system's modes and their pitfalls.
std::string systems_to_text() {
  std::string text;
  std::string_view system;
  for (const SystemEntry& entry : system_entries()) {
    if (entry.system != system) {
      std::string head(entry.system);
      head.append(": ").append(system_of(entry).where);
      head.append("; ").append(system_of(entry).source);
      text += (text.empty() ? "" : "\n") + indented(head, 0);
      system = entry.system;
    }
    text.append("  ").append(entry.spelling).append("\n");
    constexpr std::size_t kIndent = 6;
    std::string meaning(entry.stands_for.empty() ? "refused" : entry.stands_for);
    text += indented(meaning.append(": ").append(entry.description), kIndent);
    if (!entry.versions.empty())
      text += indented("versions: " + std::string(entry.versions), kIndent);
    if (!entry.configuration.empty()) {
      text += configuration_text(entry.configuration, kIndent);
    }
    if (!entry.pitfall.text.empty()) {
      text += indented("pitfall: " + std::string(entry.pitfall.text), kIndent);
    }
  }
  return text +
         "\nAn upper-case letter stands for a value; {N} marks where it is used.\n"
         "Modes without a version are taken from the trainers' sources of mid 2026.\n";
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("list", "Policies and models");
  auto json = std::make_shared<bool>(false);
  auto systems = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON instead of the table");
  command->add_flag(
      "--systems", *systems,
      "Print the modes of training systems, with each mode's equivalent policy and pitfalls");
  command->footer(
      "Examples:\n"
      "  rematch list --json\n"
      "  rematch list --systems\n"
      "  rematch describe llama_small 'torchtune(ac_mode=selective,ac_option=2)'");
  command->callback([&action, json, systems] {
    action = [json, systems] {
      if (*systems) {
        print(*json ? systems_to_json().dump(2) + "\n" : systems_to_text());
      } else {
        print(*json ? to_json().dump(2) + "\n" : to_text());
      }
      return ExitCode::kOk;
    };
  });
}

}  // namespace rematch
