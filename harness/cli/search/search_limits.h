// The flags of rematch search that limit memory, and the flags about copies and links.
#pragma once

#include <optional>
#include <string>

#include "harness/cli/flags/shared_flags.h"
#include "policies/base/bytes.h"
#include "policies/search/front/front_json.h"
#include "policies/search/region/span_options.h"
#include "policies/trace/profile.h"
#include "policies/trace/trace.h"

namespace rematch {

// Throws UsageError if a size has no unit, or if more than one of --budget, --free,
// --activation-budget and --max-slowdown is given.
void require_one_budget(const SearchFlags& flags);

// Computes the record's budget from --free or --activation-budget, if given. Adds the parameters
// and optimizer state of one rank to the flag's value, and for --activation-budget also the
// gradients. Prints the sum to stderr.
void take_free_memory(const SearchFlags& flags, const SearchSpace& space, const Trace& trace,
                      FrontRecord& record);

// Sets the record's reserve to --reserve. Without --reserve, uses the card's usual reserve, if
// there is a card. Subtracts --reserve from the budget. Throws UsageError if nothing is left.
void take_reserve(const SearchFlags& flags, const Trace& trace, FrontRecord& record);

// Returns the number of communicators of one rank.
int communicators_of(const Trace& trace, int world);

// Returns the memory of the GPU in the file given to --doctor, which `rematch doctor --json` wrote.
// Absent without --doctor. Throws UsageError if the file has no GPU, or if --device names a
// different GPU.
std::optional<Bytes> memory_by_doctor(const SearchFlags& flags);

// Returns the driver's name for the GPU in the file given to --doctor. Empty without --doctor.
std::string doctor_card(const SearchFlags& flags);

// Throws UsageError if the flags of --offload conflict.
void require_offload_flags(const SearchFlags& flags);

// Throws UsageError if the flags of --links conflict. Warns on stderr if the links were measured on
// another device.
void require_link_flags(const SearchFlags& flags);
// Throws UsageError if --ceilings is given for times that are not from a data sheet.
void require_ceilings_flag(const SearchFlags& flags);

// Returns op times from the data sheet of --device. With --links, takes the times of collectives
// from the links file. Throws UsageError if the links and the trace have different layouts of
// ranks.
Profile sheet_times(const SearchFlags& flags, const Trace& trace);

// Returns the link to the host in the data sheet of --device; absent if the data sheet has no link.
std::optional<HostLink> sheet_link(const SearchFlags& flags);

// Sets the link to the host, from --links, --link-rate or the data sheet of the profile's device,
// and the time for which blocks hide its copies. Throws UsageError if no source has a rate. Has no
// effect without --offload.
void add_host_link(const SearchFlags& flags, const Trace& trace, const Profile& profile,
                   SearchSpace& space);

}  // namespace rematch
