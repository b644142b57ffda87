// Reads and writes a point's JSON, for all files that contain points. Preserves keys from newer
// versions.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "policies/base/json_fwd.h"
#include "reports/record/point.h"

namespace rematch {

// Writes the whole point, including keys of newer versions.
Json point_to_json(const PointRecord& point);
// Writes only the fields that must be equal in two measurements of the point on one machine.
Json repeated_fields(const PointRecord& point);

// Reads points. Finding unknown members takes most of the time, but depends only on the JSON's
// structure. So the reader caches structures that contain no unknown members.
class PointReader {
 public:
  // Throws FormatError if the point's key is not the hash of its identity, or if repeated fields
  // differ.
  PointRecord read(const JsonField& field);

 private:
  // JSON structures that contain no unknown members
  std::unordered_set<std::string> without_unknown_;
};

// unknown_members() returns the members of `source` that `written` lacks, as JSON text by JSON
// pointer. add_members() adds them to `json`, except members whose parent no longer exists.
std::map<std::string, std::string> unknown_members(const Json& source, const Json& written);
void add_members(Json& json, const std::map<std::string, std::string>& members);

}  // namespace rematch
