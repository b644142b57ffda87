// Compares executed ops, bytes held after forward, and peaks. Under whole_region, ops and bytes
// must equal those of the closure oracle, an independent implementation of checkpointing in
// tests/support/closure_checkpoint.h, and the peak must be at most as high. Under on_demand, all
// three must be at most as high as under whole_region.
#include <catch2/catch.hpp>
#include <random>

#include "harness/measure/memory.h"
#include "tests/support/networks.h"
#include "tests/support/seeds.h"
#include "tests/support/step_meter.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

struct Metered {
  std::map<std::string, int> ops;
  int num_recomputed = 0;
  std::int64_t after_forward_bytes = 0;
  std::int64_t peak_bytes = 0;
};

template <typename Forward>
Metered meter(const NamedNetwork& named, const Forward& forward) {
  install_counting_allocators();
  seed_generator();
  const Network network = named.make();
  StepMeter step;
  const at::Tensor loss = loss_of(forward(network));
  step.note_after_forward();
  loss.backward();
  return {step.ops(), step.num_recomputed(), step.after_forward_bytes(), step.peak_bytes()};
}

Metered meter_engine(const NamedNetwork& named, const Plan& plan, Schedule schedule) {
  return meter(named, [&](const Network& network) {
    Recording recording(strict(plan, schedule));
    return forward_with_scopes(network);
  });
}

Metered meter_closures(const NamedNetwork& named, const ClosurePolicy& policy) {
  return meter(named, [&](const Network& network) { return forward_closures(network, policy); });
}

// Returns false for networks on which the engine deliberately differs from the closure oracle. The
// engine does not repeat unneeded writes or the forward of a custom function, and it keeps
// generator states per op.
bool is_comparable(const std::string& name) {
  for (const char* word : {"write", "relu_", "copy_", "index_put_", "out=", "dropout", "noise",
                           "custom", "constants", "autocast", "experts"}) {
    if (name.find(word) != std::string::npos) return false;
  }
  return true;
}

// A plan can keep only tensors, and `.item()` returns a number. So the oracle must not keep this
// result either.
bool has_tensor_result(const c10::OperatorHandle& op) {
  return op.operator_name().name != "aten::_local_scalar_dense";
}

std::function<bool(int)> mask_of(std::uint32_t seed) {
  return [seed](int op) {
    std::mt19937 bits(seed * 7919U + static_cast<std::uint32_t>(op));
    return (bits() % 3U) == 0;
  };
}

TEST_CASE(
    "whole_region executes the same ops and holds the same bytes as an independent "
    "implementation") {
  int num_compared = 0;
  int num_recomputed = 0;
  for (const NamedNetwork& network : hazard_networks()) {
    if (!is_comparable(network.name)) continue;
    const Trace trace = trace_of(network);
    for (std::uint32_t seed = 0; seed < num_seeds(24); ++seed) {
      const bool early_stop = seed % 4 != 3;
      const auto keep = mask_of(seed);
      CAPTURE(network.name, seed);
      const Plan plan = plan_of_blocks(
          trace, [&](int, int op) { return keep(op); }, early_stop);
      const Metered engine = meter_engine(network, plan, Schedule::kWholeRegion);
      const Metered oracle = meter_closures(
          network, {.save = [&](const auto& handle,
                                int op) { return has_tensor_result(handle) && keep(op); },
                    .early_stop = early_stop,
                    .preserve_generator = false});
      num_recomputed += engine.num_recomputed;
      CHECK(engine.ops == oracle.ops);
      CHECK(engine.after_forward_bytes == oracle.after_forward_bytes);
      CHECK(engine.peak_bytes <= oracle.peak_bytes);
      ++num_compared;
    }
  }
  CHECK(num_compared >= 200);
  CHECK(num_recomputed > 5 * num_compared);
}

int total(const Metered& metered) {
  int sum = 0;
  for (const auto& [name, count] : metered.ops) sum += count;
  return sum;
}

TEST_CASE("on_demand never executes more ops than whole_region, and its peak is never higher") {
  for (const NamedNetwork& network : hazard_networks()) {
    const Trace trace = trace_of(network);
    for (std::uint32_t seed = 0; seed < num_seeds(16); ++seed) {
      const auto keep = mask_of(seed);
      CAPTURE(network.name, seed);
      const Plan plan = plan_of_blocks(
          trace, [&](int, int op) { return keep(op); }, seed % 2 == 0);
      const Metered whole = meter_engine(network, plan, Schedule::kWholeRegion);
      const Metered on_demand = meter_engine(network, plan, Schedule::kOnDemand);
      CHECK(total(on_demand) <= total(whole));
      CHECK(on_demand.peak_bytes <= whole.peak_bytes);
      CHECK(on_demand.after_forward_bytes <= whole.after_forward_bytes);
    }
  }
}

TEST_CASE("bytes return to the baseline after backward") {
  install_counting_allocators();
  for (const NamedNetwork& network : hazard_networks()) {
    const Trace trace = trace_of(network);
    const Plan plan = plan_of_blocks(trace, [](int, int op) { return op % 2 == 0; });
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      CAPTURE(network.name, to_string(schedule));
      const std::int64_t before = cpu_bytes();
      run_engine(network, plan, schedule);
      CHECK(cpu_bytes() == before);
    }
  }
}

}  // namespace
}  // namespace rematch::testing
