#include "policies/trace/hidden_effects.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "policies/base/json.h"
#include "policies/base/text.h"
#include "policies/trace/hidden_effects_fields.h"

namespace rematch {
namespace {

// Throws FormatError unless there is text on both sides of `separator`.
void require_name(const JsonField& field, std::string_view separator, const char* spelling) {
  const std::string& name = field.string();
  const std::size_t found = name.find(separator);
  if (found != std::string::npos && found > 0 && found + separator.size() < name.size()) return;
  field.fail(in_quotes(name) + " is not a name; write it as '" + spelling + "'");
}

void require_op(const JsonField& field) { require_name(field, "::", "library::op"); }

std::vector<int> sorted(const std::set<int>& positions) {
  return {positions.begin(), positions.end()};
}

}  // namespace

void read_value(const JsonField& field, OpaqueFunction& function) {
  require_name(field.at("name"), ":", "package.module:Class");
  function.name = field.at("name").string();
  std::vector<int> positions;
  const JsonField overwrites = field.at("overwrites");
  if (!overwrites.is_null()) read_value(overwrites, positions);
  function.overwrites = overwrites.is_null() ? std::nullopt : std::optional(positions);
}

void read_value(const JsonField& field, SilentWriter& writer) {
  require_op(field.at("op"));
  read_fields(field, writer);
}

HiddenEffects united(const HiddenEffects& a, const HiddenEffects& b) {
  std::map<std::string, std::optional<std::set<int>>> functions;
  std::map<std::string, std::set<int>> writers;
  std::set<std::string> kept;
  for (const HiddenEffects* effects : {&a, &b}) {
    for (const OpaqueFunction& each : effects->opaque_functions) {
      auto& written = functions.try_emplace(each.name, std::in_place).first->second;
      if (!each.overwrites) written.reset();
      if (written) written->insert(each.overwrites->begin(), each.overwrites->end());
    }
    for (const SilentWriter& each : effects->silent_writers) {
      writers[each.op].insert(each.arguments.begin(), each.arguments.end());
    }
    kept.insert(effects->kept_ops.begin(), effects->kept_ops.end());
  }
  HiddenEffects all;
  for (const auto& [name, written] : functions) {
    all.opaque_functions.push_back(
        {name, written ? std::optional(sorted(*written)) : std::nullopt});
  }
  for (const auto& [op, arguments] : writers) all.silent_writers.push_back({op, sorted(arguments)});
  all.kept_ops.assign(kept.begin(), kept.end());
  return all;
}

std::vector<std::string> lines_of(const HiddenEffects& effects) {
  const auto listed = [](const std::vector<int>& positions) -> std::string {
    std::vector<std::string> numbers;
    for (const int position : positions) numbers.push_back(std::to_string(position));
    if (numbers.empty()) return "no argument";
    return (numbers.size() == 1 ? "argument " : "arguments ") + joined(numbers);
  };
  std::vector<std::string> lines;
  for (const OpaqueFunction& each : effects.opaque_functions) {
    lines.push_back(each.name + " is one op that writes to " +
                    (each.overwrites ? listed(*each.overwrites) : "any argument"));
  }
  for (const SilentWriter& each : effects.silent_writers) {
    lines.push_back(each.op + " writes to " + listed(each.arguments));
  }
  for (const std::string& op : effects.kept_ops) lines.push_back(op + " cannot be repeated");
  return lines;
}

HiddenEffects hidden_effects_from_json(const Json& object) {
  const JsonField root(object);
  HiddenEffects read;
  read_fields(root, read);
  if (const auto kept = root.find("kept_ops")) {
    for (const JsonField& each : kept->elements()) require_op(each);
  }
  return united(read, {});
}

}  // namespace rematch
