#include "reports/record/compare_parts_json.h"

#include <cmath>

#include "policies/trace/json.h"
#include "policies/trace/schema.h"
#include "reports/record/field_value.h"

namespace rematch {

Json number_to_json(std::optional<double> number) {
  if (!number || !std::isfinite(*number)) return nullptr;
  const bool whole = std::abs(*number) <= double{kLargestInteger} && std::trunc(*number) == *number;
  return whole ? Json(static_cast<std::int64_t>(*number)) : Json(*number);
}

Json source_to_json(const SourceRecord& source) {
  return {{"file", source.file},
          {"device", to_value(source.device)},
          {"fingerprint", source.fingerprint},
          {"tool_version", to_value(source.tool_version)},
          {"git_commit", to_value(source.git_commit)},
          {"git_dirty", to_value(source.git_dirty)},
          {"reproduce", source.reproduce}};
}

SourceRecord source_from_json(const JsonField& field) {
  SourceRecord source;
  read_member(field, "file", source.file);
  read_member(field, "device", source.device);
  read_member(field, "fingerprint", source.fingerprint);
  read_member(field, "tool_version", source.tool_version);
  read_member(field, "git_commit", source.git_commit);
  read_member(field, "git_dirty", source.git_dirty);
  read_member(field, "reproduce", source.reproduce);
  return source;
}

Json difference_to_json(const NamedDifference& difference) {
  return {
      {"name", difference.name}, {"base", difference.base}, {"candidate", difference.candidate}};
}

NamedDifference difference_from_json(const JsonField& field) {
  NamedDifference difference;
  read_member(field, "name", difference.name);
  read_member(field, "base", difference.base);
  read_member(field, "candidate", difference.candidate);
  return difference;
}

}  // namespace rematch
