// Resolves a policy against a trace into a plan.
#pragma once

#include <string>
#include <variant>

#include "policies/plan/plan.h"
#include "policies/plan/policy.h"
#include "policies/predict/region/trace_index.h"
#include "policies/trace/trace.h"

namespace rematch {

enum class NoEffect : std::uint8_t { kReject, kAllow };

// No clock, no device, no hidden state: the same policy and trace give the same plan. Rejected: a
// layer index or N outside the model's layers; a save list that matches nothing (the message names
// the ops of the regions: `mm` on a biased linear is `addmm`); a plan that equals `none`'s or
// `full`'s though the policy does not say so (unless allowed).
std::variant<Plan, Rejected> resolve(const Policy& policy, const Trace& trace,
                                     NoEffect no_effect = NoEffect::kReject);

// The same for many policies of one trace: hashes it once, which takes longer than all the rest.
// Refers to the trace.
class Resolver {
 public:
  explicit Resolver(const Trace& trace);
  std::variant<Plan, Rejected> resolve(const Policy& policy,
                                       NoEffect no_effect = NoEffect::kReject) const;
  const std::string& trace_sha256() const { return trace_sha256_; }

 private:
  const Trace& trace_;
  TraceIndex index_;
  std::string trace_sha256_;
};

// The plan of the policy `none`. It has regions where blocks gather their parameters: see Note
// [Gathers without checkpointing].
Plan resolve_none(const Trace& trace);

}  // namespace rematch
