#include "tests/support/made_up_profile.h"

#include <map>
#include <random>
#include <string>

namespace rematch::testing {

Profile made_up_profile(const Trace& trace, std::uint32_t seed) {
  std::mt19937 dice(seed);
  const auto time = [&] { return Profile::Duration(1000 + dice() % 1'000'000); };
  const auto temporary = [&] { return Bytes{static_cast<std::int64_t>(dice() % 4) * 512}; };
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  profile.device = "made up";
  profile.num_steps = 10;
  profile.forward_temporary.emplace();
  profile.backward_temporary.emplace();
  for (const TracedOp& op : trace.ops) {
    profile.forward.push_back(op.is_view ? Profile::Duration{} : time());
    profile.forward_temporary->push_back(temporary());
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind != BackwardEvent::Kind::kOp) continue;
    profile.backward.push_back(time());
    profile.backward_temporary->push_back(temporary());
  }
  profile.optimizer = time();
  profile.forward_between_ops = time();
  profile.backward_between_ops = time();
  return profile;
}

Profile with_equal_times(const Trace& trace, Profile profile) {
  std::map<std::string, Profile::Duration> times;
  for (const OpId op : trace.ops.ids()) {
    if (trace.ops[op].is_view) continue;
    Profile::Duration& time = profile.forward[op];
    time = times.try_emplace(trace.ops[op].name, time).first->second;
  }
  return profile;
}

}  // namespace rematch::testing
