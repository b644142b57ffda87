// --offload of rematch search.
#pragma once

#include <string>

#include "harness/cli/flags/search_flags.h"
#include "policies/search/region/span_options.h"

namespace rematch {

// Throws UsageError for flags that do not go together.
void require_offload_flags(const SearchFlags& flags);

// The link that --link-rate gives, or else the data sheet of `device`. Throws UsageError where
// there is neither. Does nothing without --offload.
void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space);

}  // namespace rematch
