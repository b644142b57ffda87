// Tests properties of policies on models of several kinds. Also parses random texts as policies.
#include <algorithm>
#include <functional>
#include <optional>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/region/simulator.h"
#include "policies/predict/region/trace_index.h"
#include "tests/policies/catalogue/decisions.h"
#include "tests/support/arbitrary_policy.h"
#include "tests/support/random_trace.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

// built once, because no test changes the traces
const Trace& some_trace() {
  static const std::vector<Trace> traces = [] {
    std::vector<Trace> list = {toy_llama(), toy_biased({.layers = 2})};
    for (std::uint32_t seed = 0; seed < 6; ++seed) list.push_back(random_trace(seed));
    return list;
  }();
  return traces[*rc::gen::inRange<std::size_t>(0, traces.size())];
}

bool is_one_line(const std::string& message) {
  return !message.empty() && message.find('\n') == std::string::npos;
}

// Returns the plan. Absent if the policy does not fit the trace.
std::optional<Plan> plan_if_any(const Policy& policy, const Trace& trace) {
  const auto resolved = resolve(policy, trace, NoEffect::kAllow);
  if (const auto* rejected = std::get_if<Rejected>(&resolved)) {
    RC_ASSERT(is_one_line(rejected->message));
    RC_ASSERT(rejected->message.starts_with(policy.name));
    RC_CLASSIFY(true, "rejected");
    return std::nullopt;
  }
  RC_CLASSIFY(true, "resolved");
  return std::get<Plan>(resolved);
}

void check_treatments(const Policy& policy, const Plan& plan, const Trace& trace) {
  IdTable<OpId, bool> excluded(trace.ops.size(), false);
  for (const Selector& selector : policy.exclude) {
    const std::vector<bool> picked = matches(selector, trace);
    std::transform(picked.begin(), picked.end(), excluded.begin(), excluded.begin(),
                   std::logical_or<>());
  }
  const std::vector<OpRange> ranges = region_ranges(trace, plan);
  for (std::size_t region = 0; region < ranges.size(); ++region) {
    const RegionType& type = plan.types.at(plan.regions[region].type);
    const OpRange range = ranges[region];
    // Without the parentheses, the macro would evaluate both sides of ||.
    RC_ASSERT((region == 0 || ranges[region - 1].end <= range.first));
    RC_ASSERT(type.ops.size() == static_cast<std::size_t>(range.end - range.first));
    RC_ASSERT(type.early_stop == policy.early_stop);
    for (const OpId id : range.ids()) {
      const TracedOp& traced = trace.ops[id];
      const PlannedOp& planned = type.ops[id - range.first];
      RC_ASSERT(planned.name == traced.name);
      RC_ASSERT(!planned.reason.empty());
      const bool is_kept = planned.treatment != Treatment::kRecompute;
      RC_ASSERT(!is_kept || (!traced.is_view && traced.writes.empty()));
      RC_ASSERT(!is_kept || !excluded[id]);
      RC_ASSERT(is_kept || !planned.dead_save);
    }
  }
}

TEST_CASE("any policy on any model gives a valid plan or a one-line error", "[property]") {
  check_property("treatments", [] {
    const Policy policy = *arbitrary_policy();
    const Trace& trace = some_trace();
    const std::optional<Plan> plan = plan_if_any(policy, trace);
    if (!plan) return;
    check_treatments(policy, *plan, trace);
    RC_ASSERT(plan_from_json(parse_json(plan_to_json(*plan).dump(), "plan")) == *plan);
  });
}

TEST_CASE("a plan depends on the policy, but not on its name", "[property]") {
  check_property("determinism", [] {
    Policy policy = *arbitrary_policy();
    const Trace& trace = some_trace();
    const std::optional<Plan> plan = plan_if_any(policy, trace);
    if (!plan) return;
    RC_ASSERT(plan_if_any(policy, trace) == plan);
    policy.name = "other";
    RC_ASSERT(plan_sha256(*plan_if_any(policy, trace)) == plan_sha256(*plan));
  });
}

TEST_CASE("under any policy, on_demand runs no more ops than whole_region and has no higher peak",
          "[property]") {
  check_property("schedules", [] {
    const Policy policy = *arbitrary_policy();
    const Trace& trace = some_trace();
    const std::optional<Plan> plan = plan_if_any(policy, trace);
    if (!plan) return;
    const std::vector<OpRange> ranges = region_ranges(trace, *plan);
    for (std::size_t region = 0; region < ranges.size(); ++region) {
      const RegionType& type = plan->types.at(plan->regions[region].type);
      const RegionGraph graph = make_region_graph(trace, ranges[region]);
      const RegionSimulation whole = simulate_region(graph, type, Schedule::kWholeRegion);
      const RegionSimulation on_demand = simulate_region(graph, type, Schedule::kOnDemand);
      RC_ASSERT(on_demand.executed.size() <= whole.executed.size());
      RC_ASSERT(on_demand.peak <= whole.peak);
      RC_ASSERT(on_demand.kept == whole.kept);
    }
  });
}

// Returns a random sequence of words and symbols that occur in policies.
std::string some_text() {
  std::vector<std::string> pieces = {
      "(",       ")",   "[",      "]",         ",",         "=",
      ":",       " ",   "2",      "0",         "-1",        "99999999999",
      "#",       "\n",  "attn: ", "ffn: ",     "ac_mode",   "selective",
      "aten.mm", "mlp", "titan",  "torchtune", "fastvideo", "llama3"};
  for (const CatalogueEntry& entry : catalogue()) pieces.emplace_back(entry.name);
  const auto words = *rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(pieces));
  std::string text;
  for (const std::string& word : words) text += word;
  return text;
}

TEST_CASE("any text gives a one-line error, or a policy whose name parses to the same policy",
          "[property]") {
  check_property("parse_policy", [] {
    const std::string text = some_text();
    const auto parsed = parse_policy(text);
    if (const auto* rejected = std::get_if<Rejected>(&parsed)) {
      RC_ASSERT(is_one_line(rejected->message));
      return;
    }
    const auto again = parse_policy(std::get<Policy>(parsed).name);
    RC_ASSERT(std::holds_alternative<Policy>(again));
    RC_ASSERT(std::get<Policy>(again) == std::get<Policy>(parsed));
  });
}

TEST_CASE("the canonical name of any catalogue policy parses to the same policy", "[property]") {
  check_property("canonical names", [] {
    const std::string name =
        *rc::gen::element<std::string>("nth_last", "nth_first", "skip_nth", "first_n", "last_n",
                                       "segments", "skip_list", "only_list");
    const bool is_list = name.ends_with("_list");
    std::string inside = is_list ? "[" : "";
    const auto numbers = is_list ? *rc::gen::unique<std::vector<int>>(rc::gen::inRange(0, 99))
                                 : std::vector<int>{*rc::gen::inRange(1, 1'000'000)};
    for (const int number : numbers) {
      inside += (inside.size() > 1 ? " , " : " ") + std::to_string(number);
    }
    const auto parsed = parse_policy(" " + name + "(" + inside + (is_list ? " ] )" : " )"));
    RC_ASSERT(std::holds_alternative<Policy>(parsed));
    const Policy policy = std::get<Policy>(parsed);
    RC_ASSERT(std::get<Policy>(parse_policy(policy.name)) == policy);
    RC_ASSERT(policy.name.find(' ') == std::string::npos);
    RC_ASSERT(policy_from_json(policy_to_json(policy)) == policy);
  });
}

}  // namespace
}  // namespace rematch::testing
