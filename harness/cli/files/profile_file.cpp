#include "harness/cli/files/profile_file.h"

#include "harness/cli/flags/require.h"
#include "policies/base/json.h"
#include "policies/trace/measured_profile.h"
#include "policies/trace/profile_json.h"

namespace rematch {

Profile require_profile(const std::string& path, const Trace& trace) {
  const Json json = require_json_file(path);
  Profile profile =
      profile_for_trace(require_readable(path, [&] { return profile_from_json(json); }), trace);
  if (const auto problem = profile_problem(profile, trace)) throw UsageError(*problem);
  return profile;
}

}  // namespace rematch
