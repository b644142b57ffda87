// The task of a child process that times several points of one model by turns. The hidden
// subcommand `point` reads it from a file. Internal to one build of the tool, so its JSON carries
// no version.
#pragma once

#include <cstddef>
#include <vector>

#include "harness/run/children/request.h"
#include "harness/run/timing/turns.h"
#include "policies/base/json_fwd.h"

namespace rematch {

struct TurnsRequest {
  // Time passes that differ in nothing but policy, plan and schedule; at least one.
  std::vector<PointRequest> arms;
  std::size_t reference = 0;  // among the arms; the precision of `rule` is that of ratios to it
  RoundRule rule;
};

Json turns_request_to_json(const TurnsRequest& request);
bool is_turns_request(const Json& json);
TurnsRequest turns_request_from_json(const Json& json);  // throws FormatError

}  // namespace rematch
