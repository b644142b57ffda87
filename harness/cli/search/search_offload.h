// --offload and --links of rematch search.
#pragma once

#include <string>

#include "harness/cli/flags/search_flags.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError for flags that do not go together.
void require_offload_flags(const SearchFlags& flags);

// The same for --links. Says on stderr where they were measured on another device.
void require_link_flags(const SearchFlags& flags);

// Times by the data sheet of --device, those of collectives by --links if it is given. Throws
// UsageError where the links are of other ranks than the trace's.
Profile sheet_times(const SearchFlags& flags, const Trace& trace);

// The link that --link-rate or --links gives, or else the data sheet of `device`. Throws UsageError
// where there is neither. Does nothing without --offload.
void add_host_link(const SearchFlags& flags, const std::string& device, SearchSpace& space);

}  // namespace rematch
