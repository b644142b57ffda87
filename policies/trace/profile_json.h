// Profiles as files, "rematch.profile/1.2". A file stores the figures of each distinct span once,
// and the order of the spans. Reading restores the profile completely and does not need the trace.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/trace/profile.h"

namespace rematch {

// Cuts the profile where the trace's layers begin. Throws std::invalid_argument if the profile
// belongs to another trace (profile_problem()).
Json profile_to_json(const Profile& profile, const Trace& trace);

// Throws FormatError; the message has the JSON path if the fault is in a single place. Ignores
// unknown keys.
Profile profile_from_json(const Json& json);

}  // namespace rematch
