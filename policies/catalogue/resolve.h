// Resolves a policy against a trace into a plan.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/trace_index.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class NoEffect : std::uint8_t { kReject, kAllow };

// The plan depends only on the policy and the trace. Returns Rejected if a layer index or N is
// outside the model's layers, or if a save list matches nothing. The message then lists the ops of
// the regions, such as `addmm` instead of `mm`. Also returns Rejected if the plan equals the plan
// of `none` or `full`, unless `no_effect` or the policy allows this.
std::variant<Plan, Rejected> resolve(const Policy& policy, const Trace& trace,
                                     NoEffect no_effect = NoEffect::kReject);

// Resolves many policies for one trace, and hashes the trace only once, because hashing takes the
// most time. Keeps a reference to the trace, which must outlive the resolver.
class Resolver {
 public:
  explicit Resolver(const Trace& trace);
  std::variant<Plan, Rejected> resolve(const Policy& policy,
                                       NoEffect no_effect = NoEffect::kReject) const;
  const std::string& trace_sha256() const { return trace_sha256_; }

  // Returns "none" or "full" if the plan has the same regions and treatments as the plan of that
  // policy. Otherwise returns "".
  std::string_view same_as(const Plan& plan) const;

 private:
  // Hashes of the plans of `none` and `full`. A hash is empty if the model has no such plan.
  struct Extremes {
    std::string none;
    std::string full;
  };

  std::variant<Plan, Rejected> try_resolve(const Policy& policy, NoEffect no_effect) const;

  const Trace& trace_;
  TraceIndex index_;
  std::string trace_sha256_;
  mutable std::optional<Extremes> extremes_;  // made when same_as() first needs them
};

// Returns the plan of the policy with this spelling, even if the plan has no effect. Returns
// nullopt if the policy does not exist or does not fit the model.
std::optional<Plan> plan_if_possible(std::string_view spelling, const Resolver& resolver);

// Returns the plan of the policy `none`. It has regions if blocks gather their parameters: see Note
// [Gathers without checkpointing].
Plan resolve_none(const Trace& trace);

}  // namespace rematch
