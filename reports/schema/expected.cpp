#include "reports/schema/expected.h"

#include <algorithm>
#include <array>
#include <utility>

namespace rematch {
namespace {

constexpr int kMostReferences = 20;  // one to another; the committed schemas have two

struct Place {
  std::string kind;  // whose definitions a reference without a file means
  SchemaNode node;
};

// "#/definitions/status" or "point.schema.json#/definitions/status".
Place follow(const Place& place, const FindSchema& find) {
  const std::string reference = place.node.at("$ref").get<std::string>();
  const std::size_t hash = std::min(reference.find('#'), reference.size());
  const std::string file = reference.substr(0, hash);
  Place target{file.empty() ? place.kind : file.substr(0, file.find('.')), {}};
  const SchemaNode root = find(target.kind);
  const std::string pointer = reference.substr(std::min(hash + 1, reference.size()));
  target.node = root.at(SchemaNode::json_pointer(pointer));
  return target;
}

Place resolved(Place place, const FindSchema& find) {
  for (int hop = 0; hop < kMostReferences && place.node.is_object() && place.node.contains("$ref");
       ++hop) {
    place = follow(place, find);
  }
  return place;
}

// The schema of an object's member, or of a list's elements.
std::optional<SchemaNode> next_node(const SchemaNode& node, const std::string& step) {
  if (!node.is_object()) return std::nullopt;
  if (node.contains("properties") && node["properties"].contains(step)) {
    return node["properties"][step];
  }
  for (const char* rest : {"items", "additionalProperties"}) {
    if (node.contains(rest) && node[rest].is_object()) return node[rest];
  }
  return std::nullopt;
}

std::optional<Place> next_place(const Place& place, const std::string& step,
                                const FindSchema& find) {
  if (const auto node = next_node(place.node, step)) return resolved({place.kind, *node}, find);
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    if (!place.node.is_object() || !place.node.contains(choice)) continue;
    for (const SchemaNode& alternative : place.node[choice]) {
      const Place other = resolved({place.kind, alternative}, find);
      if (const auto node = next_node(other.node, step)) {
        return resolved({other.kind, *node}, find);
      }
    }
  }
  return std::nullopt;
}

std::string type_words(const std::string& type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kWords = {
      {{"string", "a string"},
       {"integer", "a whole number"},
       {"number", "a number"},
       {"boolean", "true or false"},
       {"object", "an object"},
       {"array", "a list"},
       {"null", "null"}}};
  for (const auto& [name, words] : kWords) {
    if (name == type) return std::string(words);
  }
  return type;
}

std::string alternatives(const SchemaNode& values) {
  std::string text;
  for (const SchemaNode& value : values) {
    text += text.empty() ? "" : ", ";
    text += value.is_string() ? value.get<std::string>() : value.dump();
  }
  return text;
}

std::string types_of(const SchemaNode& node) {
  const SchemaNode& type = node.at("type");
  if (!type.is_array()) return type_words(type.get<std::string>());
  std::string text;
  for (const SchemaNode& name : type) {
    text += (text.empty() ? "" : " or ") + type_words(name.get<std::string>());
  }
  return text;
}

// "from 0 to 4", "at least 1".
std::string range_words(const SchemaNode& node, const char* least, const char* most) {
  if (node.contains(least) && node.contains(most)) {
    return node[least] == node[most] ? node[least].dump()
                                     : "from " + node[least].dump() + " to " + node[most].dump();
  }
  if (node.contains(least)) return "at least " + node[least].dump();
  return "at most " + node[most].dump();
}

bool has_either(const SchemaNode& node, const char* left, const char* right) {
  return node.contains(left) || node.contains(right);
}

}  // namespace

std::optional<SchemaNode> schema_at(std::string_view kind, const SchemaPath& path,
                                    const FindSchema& find) {
  Place place = resolved({std::string(kind), find(kind)}, find);
  for (const std::string& step : path) {
    std::optional<Place> next = next_place(place, step, find);
    if (!next) return std::nullopt;
    place = *std::move(next);
  }
  return place.node;
}

std::string expected_words(const std::string& description, const SchemaNode& node) {
  const auto says = [&](std::string_view part) {
    return description.find(part) != std::string::npos;
  };
  if (!node.is_object()) return description;
  if (says("'type' constraint") && node.contains("type")) return "expected " + types_of(node);
  if (says("any enum values") && node.contains("enum")) {
    return "expected one of " + alternatives(node["enum"]);
  }
  if (says("'pattern' constraint") && node.contains("pattern")) {
    return "expected text of the form " + node["pattern"].get<std::string>();
  }
  if (says("Expected number") && has_either(node, "minimum", "maximum")) {
    return "expected a number " + range_words(node, "minimum", "maximum");
  }
  if (says("String should be") && has_either(node, "minLength", "maxLength")) {
    return "expected characters: " + range_words(node, "minLength", "maxLength");
  }
  if (says("Array should contain") && has_either(node, "minItems", "maxItems")) {
    return "expected elements: " + range_words(node, "minItems", "maxItems");
  }
  return description;
}

}  // namespace rematch
