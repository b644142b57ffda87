#include "policies/base/json.h"
#include "reports/record/json/parts_json.h"

namespace rematch {
namespace {

using Pointer = Json::json_pointer;

void collect(const Json& source, const Json& written, const Pointer& at,
             std::map<std::string, std::string>& unknown) {
  if (source.is_object() && written.is_object()) {
    for (const auto& [name, member] : source.items()) {
      const auto found = written.find(name);
      if (found == written.end()) {
        unknown.emplace((at / name).to_string(), member.dump());
      } else {
        collect(member, *found, at / name, unknown);
      }
    }
  } else if (source.is_array() && written.is_array()) {
    for (std::size_t index = 0; index < std::min(source.size(), written.size()); ++index) {
      collect(source[index], written[index], at / index, unknown);
    }
  }
}

// Lengths keep keys apart from each other and from brackets.
void append_structure(const Json& json, std::string& structure) {
  if (json.is_object()) {
    structure += '{';
    for (const auto& [name, member] : json.get_ref<const Json::object_t&>()) {
      structure.append(std::to_string(name.size())).append(":").append(name);
      append_structure(member, structure);
    }
    structure += '}';
  } else if (json.is_array()) {
    structure += '[';
    for (const Json& element : json) append_structure(element, structure);
    structure += ']';
  }
}

}  // namespace

std::string structure_of(const Json& json) {
  std::string structure;
  append_structure(json, structure);
  return structure;
}

std::map<std::string, std::string> unknown_members(const Json& source, const Json& written) {
  std::map<std::string, std::string> unknown;
  collect(source, written, Pointer(), unknown);
  return unknown;
}

void add_members(Json& json, const std::map<std::string, std::string>& members) {
  for (const auto& [path, member] : members) {
    const Pointer pointer(path);
    const Pointer parent = pointer.parent_pointer();
    if (json.contains(parent) && json.at(parent).is_object()) json[pointer] = Json::parse(member);
  }
}

}  // namespace rematch
