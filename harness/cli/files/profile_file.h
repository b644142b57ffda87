// A profile that the command line names.
#pragma once

#include <string>

#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError, with the file or the difference named, unless it is a profile of `trace`.
Profile require_profile(const std::string& path, const Trace& trace);

}  // namespace rematch
