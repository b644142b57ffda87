#include "harness/cli/profile_file.h"

#include "harness/cli/require.h"
#include "policies/trace/json.h"
#include "policies/trace/profile_json.h"

namespace rematch {

Profile require_profile(const std::string& path, const Trace& trace) {
  const Json json = require_json_file(path);
  Profile profile = require_readable(path, [&] { return profile_from_json(json); });
  if (const auto problem = profile_problem(profile, trace)) throw UsageError(*problem);
  return profile;
}

}  // namespace rematch
