// Tests two threads. Each thread has its own recording, and both use the same checkpoints. Both
// threads run all hazards that do not draw from the process's generator. One thread runs them in
// reverse order.
#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <thread>

#include "tests/support/catch.h"
#include "tests/support/hazards/trial.h"
#include "tests/support/networks.h"
#include "tests/support/strict.h"

namespace rematch::testing::hazards {
namespace {

struct Case {
  const Hazard* hazard;
  Trial plain;
  std::unique_ptr<Checkpoint> checkpoint;
};

std::vector<Case> cases(Schedule schedule) {
  std::vector<Case> all;
  for (const Hazard& hazard : all_hazards()) {
    if (!hazard.refusal.empty() || hazard.needs_process) continue;
    const Trial plain = try_to_train(hazard, nullptr);
    if (!plain.facts.has_value() || plain.facts->draws) continue;
    const Plan plan = plan_of_blocks(trace_of(hazard), [](int, int op) { return op % 2 == 0; });
    all.push_back(
        {&hazard, plain, std::unique_ptr<Checkpoint>(new Checkpoint(strict(plan, schedule)))});
  }
  return all;
}

// Removes the state of the process's generator from the results to compare, because the other
// thread seeds this generator.
Trial without_default_generator(Trial trial) {
  if (!trial.facts.has_value()) return trial;
  std::erase_if(trial.facts->all,
                [](const Facts::Fact& fact) { return fact.name.ends_with(", generator"); });
  return trial;
}

// Trains all hazards in this order. Maps the name of each hazard that differs from its plain run to
// the first difference.
std::map<std::string, std::string> train_all(const std::vector<const Case*>& order) {
  at::set_num_threads(1);  // LibTorch has this setting once per thread
  std::map<std::string, std::string> differences;
  for (const Case* which : order) {
    const Trial trial = try_to_train(*which->hazard, which->checkpoint.get());
    const std::string verdict =
        verdict_on(without_default_generator(which->plain), without_default_generator(trial));
    if (!verdict.empty()) differences[which->hazard->name] = verdict;
  }
  return differences;
}

TEST_CASE("recordings on two threads are independent") {
  prepare_process();
  for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
    const std::vector<Case> all = cases(schedule);
    CHECK(all.size() >= 150);
    std::vector<const Case*> forward;
    for (const Case& which : all) forward.push_back(&which);
    std::vector<const Case*> back(forward.rbegin(), forward.rend());
    std::map<std::string, std::string> of_first;
    std::map<std::string, std::string> of_second;
    std::thread first([&] { of_first = train_all(forward); });
    std::thread second([&] { of_second = train_all(back); });
    first.join();
    second.join();
    CHECK(of_first == std::map<std::string, std::string>{});
    CHECK(of_second == std::map<std::string, std::string>{});
  }
}

}  // namespace
}  // namespace rematch::testing::hazards
