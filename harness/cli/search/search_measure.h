// rematch search --measure: runs chosen points of a front and its baselines as rematch run does,
// and adds what came of it to the front.
#pragma once

#include <string>
#include <vector>

#include "harness/cli/exit_code.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/profile.h"

namespace rematch {

// Throws UsageError where what the flags say cannot be measured here: no LibTorch, times of another
// device, a trace without its model.
void require_measurable(const SearchFlags& flags);
void require_times_of_this_device(const Profile& profile);

// Fills the measured figures of `record`'s front. Ok, or some points failed, or bits differ from
// the reference's. `command` is argv. Throws Interrupted, which says what is kept of the runs.
ExitCode measure_front(const SearchFlags& flags, const std::vector<std::string>& command,
                       FrontRecord& record);

// A profile of the trace's ops, measured here.
Profile measure_profile(const SearchFlags& flags, const Trace& trace);

}  // namespace rematch
