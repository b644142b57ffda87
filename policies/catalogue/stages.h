// Resolves policies for the stages of a pipeline, into plans as in policies/plan/stage_plans.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "policies/base/rejected.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/trace/trace.h"

namespace rematch {

// Resolves policies for all stages of a pipeline, or for a model without stages, which is one
// stage. Each stage numbers its own blocks from 0, so first_n(2) means two blocks of each stage.
class StageResolver {
 public:
  // The traces must outlive the resolver.
  explicit StageResolver(const std::vector<const Trace*>& stages);

  // Returns Rejected if the policy fits no stage, or if it changes nothing in every stage.
  std::variant<Plan, Rejected> resolve(const Policy& policy,
                                       NoEffect no_effect = NoEffect::kReject) const;
  // Returns "none" or "full" if every stage's plan is the plan of that policy. Otherwise "".
  std::string_view same_as(const Plan& plan) const;

  const Resolver& first() const { return *stages_.front(); }
  std::size_t num_stages() const { return stages_.size(); }
  // Returns why the plan belongs to another model. Absent if it belongs to these stages.
  std::optional<Rejected> wrong_stages(const Plan& plan, const std::string& name) const;

 private:
  std::vector<std::unique_ptr<Resolver>> stages_;
};

}  // namespace rematch
