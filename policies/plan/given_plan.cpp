#include "policies/plan/given_plan.h"

namespace rematch {

std::optional<Rejected> wrong_trace(const Plan& plan, const std::string& name, const Trace& trace,
                                    std::string_view trace_sha256) {
  if (plan.trace_sha256 == trace_sha256) return std::nullopt;
  const std::string difference = plan.model == trace.model
                                     ? " with different dimensions, dtype or ops"
                                     : ", and this is " + trace.model;
  return Rejected{"the plan of " + name + " was made for " + plan.model + difference +
                  "; make the plan again with `rematch plan` and the same flags"};
}

}  // namespace rematch
