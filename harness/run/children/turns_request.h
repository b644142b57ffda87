// The task of a child process that times several points of one model alternately. The hidden
// subcommand `point` reads the task from a file. The JSON has no version, because the same build
// writes and reads it.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/run/children/request.h"
#include "harness/run/timing/turns.h"
#include "policies/base/json_fwd.h"

namespace rematch {

struct TurnsRequest {
  // One or more time passes that differ only in policy, plan and schedule.
  std::vector<PointRequest> arms;
  // Index of the reference arm. Rounds end when each arm's ratio to the reference arm is as precise
  // as `rule` requires.
  std::size_t reference = 0;
  RoundRule rule;
};

Json turns_request_to_json(const TurnsRequest& request);
bool is_turns_request(const Json& json);
TurnsRequest turns_request_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
