// Tests that a real point has a time for every executed op class, including copies of offloaded
// values, and for no other class.
#include <set>

#include "harness/measure/memory.h"
#include "harness/run/passes/passes.h"
#include "harness/run/variants.h"
#include "policies/catalogue/catalogue.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::nanoseconds;

PointRequest class_request(Pass pass, const std::string& policy = "attn_only") {
  install_counting_allocators();  // must run before the first tensor is made
  RunSettings settings;
  settings.request.model =
      std::get<ModelSpec>(make_spec("llama_small", {{"layers", 2}, {"dim", 128}, {"tokens", 128}}));
  settings.request.policies = std::get<std::vector<Policy>>(parse_policies(policy));
  const Variant variant = std::get<std::vector<Variant>>(make_variants(settings)).front();
  PointRequest request;
  request.pass = pass;
  request.identity = variant.identity;
  request.policy = variant.policy;
  request.plan = variant.plan;
  request.num_steps = 2;
  return request;
}

TEST_CASE("a timed point has a time for every op class that its steps execute") {
  const PointRecord counted = run_passes(class_request(Pass::kExact));
  const auto before = std::chrono::steady_clock::now();
  const PointRecord timed = run_passes(class_request(Pass::kTime));
  const nanoseconds whole_run = std::chrono::steady_clock::now() - before;
  REQUIRE(counted.status == PointStatus::kOk);
  REQUIRE(timed.status == PointStatus::kOk);
  nanoseconds sum{};
  for (std::size_t phase = 0; phase < kNumPhases; ++phase) {
    CAPTURE(to_string(static_cast<Phase>(phase)));
    std::set<OpClass> executed;
    for (const auto& [op_class, count] : counted.counts->by_class[phase]) executed.insert(op_class);
    std::set<OpClass> with_time;
    for (const auto& [op_class, time] : timed.time->classes[phase]) {
      CHECK(time > nanoseconds(0));
      with_time.insert(op_class);
      sum += time;
    }
    CHECK_FALSE(with_time.empty());
    CHECK((with_time == executed));
  }
  // The lower bound is loose, because step times and op times are measured in different steps.
  CHECK(sum < whole_run);
  CHECK(10 * sum > timed.time->samples.front().front());
  CHECK(timed.time->samples.front().size() == 2);
}

// Copies on the CPU are synchronous.
TEST_CASE("a point on the CPU waits for all its offload copies") {
  const PointRecord record = run_passes(class_request(Pass::kExact, "offload_inputs(full)"));
  REQUIRE(record.status == PointStatus::kOk);
  const HostRecord host = record.memory.value().host.value();
  CHECK(host.copied_out.count > 0);
  CHECK(host.hidden_time == nanoseconds(0));
  CHECK(host.exposed_time.value() > nanoseconds(0));
  const PointRecord without = run_passes(class_request(Pass::kExact));
  CHECK_FALSE(without.memory.value().host);
}

}  // namespace
}  // namespace rematch
