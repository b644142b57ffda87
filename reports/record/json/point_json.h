// A point's JSON, for the files that have points, and the keys of newer versions in any of them.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "policies/base/json_fwd.h"
#include "reports/record/point.h"

namespace rematch {

// The whole point, keys of newer versions included.
Json point_to_json(const PointRecord& point);
// The point without what two measurements of it on one machine need not have in common.
Json repeated_fields(const PointRecord& point);

// Reads points. Which members a record has no place for follows from the structure of its JSON:
// found out once for each structure, not for each point, where that is most of the work.
class PointReader {
 public:
  // Throws FormatError if the point's key is not the hash of its identity, or if what appears twice
  // differs.
  PointRecord read(const JsonField& field);

 private:
  std::unordered_set<std::string> without_unknown_;  // structures
};

// JSON of the members of `source` that `written` lacks, by JSON pointer; and their way back, where
// the object that held them is still there.
std::map<std::string, std::string> unknown_members(const Json& source, const Json& written);
void add_members(Json& json, const std::map<std::string, std::string>& members);

}  // namespace rematch
