#include "harness/cli/search/search_measure.h"

#include "harness/cli/exit_code.h"
#include "harness/cli/profile_here.h"

namespace rematch {

void require_times_of_this_device(const Profile& profile) {
  if (is_measured_device(profile.device) && profile.source == ProfileSource::kMeasured) {
    return require_measured_device(profile.device, "search --measure");
  }
  throw UsageError("the profile has times of " + profile.device + " (" +
                   std::string(to_string(profile.source)) +
                   "), and --measure runs on this machine's cpu or cuda; make one with rematch "
                   "profile --device cpu");
}

Profile measure_profile(const SearchFlags& flags, const Trace& trace) {
  require_measured_device(flags.device, "search --device " + flags.device);
  return profile_here({flags.model.spec(), flags.device, flags.optimizer, flags.num_threads,
                       flags.num_steps, flags.force},
                      trace);
}

}  // namespace rematch
