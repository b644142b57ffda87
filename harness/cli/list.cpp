#include <algorithm>

#include "harness/cli/commands.h"
#include "harness/cli/output.h"
#include "models/preset/preset.h"
#include "policies/catalogue/catalogue.h"

namespace rematch {
namespace {

Json to_json() {
  Json json = {{"policies", Json::array()}, {"models", Json::array()}};
  for (const CatalogueEntry& entry : catalogue()) {
    json["policies"].push_back({{"name", entry.name},
                                {"parameters", entry.parameters},
                                {"description", entry.description},
                                {"used_by", entry.used_by}});
  }
  for (const PresetEntry& entry : presets()) {
    json["models"].push_back({{"name", entry.name}, {"description", entry.description}});
  }
  return json;
}

struct Row {
  std::string name;
  std::string text;
};

std::string aligned(const std::vector<Row>& rows) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.name.size());
  std::string lines;
  for (const Row& row : rows) {
    lines.append("  ").append(row.name).append(width - row.name.size() + 2, ' ');
    lines.append(row.text).append("\n");
  }
  return lines;
}

std::string to_text() {
  std::vector<Row> policies;
  for (const CatalogueEntry& entry : catalogue()) {
    std::string text(entry.description);
    if (!entry.used_by.empty()) text.append(" (").append(entry.used_by).append(")");
    std::string name(entry.name);
    policies.push_back({name.append(entry.parameters), text});
  }
  std::vector<Row> models;
  for (const PresetEntry& entry : presets()) {
    models.push_back({std::string(entry.name), std::string(entry.description)});
  }
  return "Policies\n" + aligned(policies) + "\nModels\n" + aligned(models);
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("list", "Policies and models");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "As JSON");
  command->footer("Example: rematch list --json");
  command->callback([&action, json] {
    action = [json] {
      print(*json ? to_json().dump(2) + "\n" : to_text());
      return ExitCode::kOk;
    };
  });
}

}  // namespace rematch
