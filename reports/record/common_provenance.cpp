#include <algorithm>
#include <optional>
#include <set>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/record/merge_reports.h"

namespace rematch {
namespace {

// Returns what two values of a member have in common: the value if both are equal, the equal
// members if both are objects, and otherwise null.
Json in_common(const Json& left, const Json& right) {
  if (left == right) return left;
  if (!left.is_object() || !right.is_object()) return nullptr;
  Json common = Json::object();
  for (const auto& [name, value] : left.items()) {
    if (right.contains(name) && right[name] == value) common[name] = value;
  }
  return common;
}

Environment environment_in_common(const std::map<std::string, Provenance>& provenances) {
  Json common = to_value(provenances.begin()->second.environment);
  for (const auto& [text, provenance] : provenances) {
    const Json other = to_value(provenance.environment);
    for (auto& [name, value] : common.items()) value = in_common(value, other.at(name));
  }
  Environment environment;
  read_value(JsonField(common), environment);
  return environment;
}

template <class T>
void keep_if_equal(std::optional<T>& common, const std::optional<T>& other) {
  if (common != other) common.reset();
}

}  // namespace

Provenance provenance_in_common(const std::map<std::string, Provenance>& provenances) {
  Provenance common = provenances.begin()->second;
  if (provenances.size() == 1) return common;
  common.environment = environment_in_common(provenances);
  std::set<std::string> lines;
  for (const auto& [text, provenance] : provenances) {
    if (common.command != provenance.command) common.command = {"rematch", "merge"};
    common.seed = std::min(common.seed, provenance.seed);
    keep_if_equal(common.git_commit, provenance.git_commit);
    keep_if_equal(common.git_dirty, provenance.git_dirty);
    keep_if_equal(common.tool_version, provenance.tool_version);
    keep_if_equal(common.program_sha256, provenance.program_sha256);
    if (!provenance.reproduce.empty()) lines.insert(provenance.reproduce);
  }
  common.reproduce = joined(lines, " && ");
  return common;
}

}  // namespace rematch
