// Profiles as files, "rematch.profile/1.2": figures of each distinct span of the step once, and
// the order in which the spans follow each other. Lossless, and read without the trace.
#pragma once

#include "policies/base/json_fwd.h"
#include "policies/trace/profile.h"

namespace rematch {

// Cut where the trace's layers begin. Throws std::invalid_argument if the profile is of another
// trace (profile_problem()).
Json profile_to_json(const Profile& profile, const Trace& trace);

// Throws FormatError, with the JSON path where one place is at fault. Ignores unknown keys.
Profile profile_from_json(const Json& json);

// As a member of a record (record_fields.h).

}  // namespace rematch
