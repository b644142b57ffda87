// The JSON of the parts of a point and of a report, for the files that put them together.
#pragma once

#include <map>
#include <string>
#include <unordered_set>

#include "policies/base/json_fwd.h"
#include "reports/record/environment.h"
#include "reports/record/point.h"

namespace rematch {

struct RepeatRecord;

Json identity_to_json(const PointIdentity& identity);
PointIdentity identity_from_json(const JsonField& field);

Json memory_to_json(const MemoryRecord& memory);

Json repeat_to_json(const RepeatRecord& repeat);

Json environment_to_json(const Environment& environment);
Environment environment_from_json(const JsonField& field);

// The whole point, keys of newer versions included. Reading throws FormatError if the point's key
// is not the hash of its identity, or if what appears twice differs.
Json point_to_json(const PointRecord& point);
PointRecord point_from_json(const JsonField& field);
// The point without what two measurements of it on one machine need not have in common.
Json repeated_fields(const PointRecord& point);

// Reads many points. Which members a record has no place for follows from the structure of its
// JSON: found out once for each structure, not for each point, where that is most of the work.
class PointReader {
 public:
  PointRecord read(const JsonField& field);  // as point_from_json

 private:
  std::unordered_set<std::string> without_unknown_;  // structures
};

// Objects, their keys and lists, without any value that is neither.
std::string structure_of(const Json& json);

// JSON of the members of `source` that `written` lacks, by JSON pointer; and their way back, where
// the object that held them is still there.
std::map<std::string, std::string> unknown_members(const Json& source, const Json& written);
void add_members(Json& json, const std::map<std::string, std::string>& members);

}  // namespace rematch
