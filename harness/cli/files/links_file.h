// Measured links that --links names: rematch profile --links writes them.
#pragma once

#include <string>

#include "policies/predict/device/roofline.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError, with the file named, unless it holds links. Says on stderr where they were
// measured on another device than the one that op times are of. For the start of a command.
void require_links(const std::string& path, const std::string& device);

NamedLinks read_links(const std::string& path);

// By the data sheet of `device`; of a step with collectives with the times that the links have,
// unless `path` is empty. Throws UsageError if they are of other ranks.
Profile sheet_profile(const Trace& trace, const std::string& device, const std::string& path);

}  // namespace rematch
