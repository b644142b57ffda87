// Tests writes and random draws that the engine does not see. OutsideCheck::kHashes detects some of
// them, and others are not detected at all.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/CPUAllocator.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "harness/engine/record/op_facts.h"
#include "tests/support/catch.h"
#include "tests/support/outside_case.h"
#include "tests/support/strict.h"

namespace rematch::testing {
namespace {

using Catch::Contains;

// Sharded training frees the memory of parameters after forward and fills it again before backward.
const Meddle kNewMemory = [](const Network& network, const at::Tensor&) {
  const at::Tensor& parameter = network.parameters[0];
  const at::Tensor content = no_grad_copy(parameter);
  c10::StorageImpl* storage = parameter.storage().unsafeGetStorageImpl();
  const c10::DataPtr before =
      storage->set_data_ptr(c10::GetDefaultCPUAllocator()->allocate(storage->nbytes()));
  std::memcpy(storage->mutable_data(), content.const_data_ptr(), storage->nbytes());
};

TEST_CASE("a parameter may move to other memory if its content stays the same") {
  check_equal({two_products, kNewMemory});
  check_equal({two_products, kNewMemory}, OutsideCheck::kHashes);
}

TEST_CASE("a change of content is detected by its hash even if a parameter moves to other memory") {
  check_refused({two_products,
                 [](const Network& network, const at::Tensor& hidden) {
                   kNewMemory(network, hidden);
                   network.parameters[0].mutable_data_ptr<float>()[0] += 1.0F;
                 }},
                "without a new version number", OutsideCheck::kHashes);
}

// Writes to a parameter without raising its version.
const Meddle kWriteThroughData = [](const Network& network, const at::Tensor&) {
  network.parameters[0].variable_data().mul_(2);
};

TEST_CASE("a write through .data is detected by content") {
  const Case given{two_products, kWriteThroughData};
  check_refused(given, "through .data or a raw pointer", OutsideCheck::kHashes);
  const Plan plan = given.plan();
  for (const Schedule schedule : kSchedules) {
    CHECK_NOTHROW(
        // the documentation lists this write as not detected
        given.run_engine(strict(plan, schedule)));
  }
}

TEST_CASE("a write through a raw pointer is detected by content") {
  const Case given{two_products, [](const Network& network, const at::Tensor&) {
                     network.parameters[0].mutable_data_ptr<float>()[5] += 1.0F;
                   }};
  check_refused(given, "through .data or a raw pointer", OutsideCheck::kHashes);
}

TEST_CASE("a check by hashes accepts a tensor that did not change") {
  for (const NamedNetwork& network : hazard_networks()) {
    const Outcome plain = run_plain(network);
    const Plan plan = plan_of_blocks(trace_of(network), [](int, int) { return false; });
    for (const Schedule schedule : kSchedules) {
      CAPTURE(network.name, to_string(schedule));
      CHECK(first_difference(plain, run_engine(network, plan, schedule, OutsideCheck::kHashes)) ==
            "");
    }
  }
}

// Counts its calls in a tensor, although its schema does not declare this write. The engine knows
// such ops of LibTorch (op_facts.h), but not those of other libraries.
at::Tensor counts_its_calls(const at::Tensor& x, const at::Tensor& calls) {
  const_cast<at::Tensor&>(calls).mutable_data_ptr<float>()[0] += 1.0F;
  return at::sin(x);
}

// Writes only if `is_counting`. This flag is false in the traced step, so the trace does not show
// the write.
bool is_counting = false;
at::Tensor may_count_its_calls(const at::Tensor& x, const at::Tensor& calls) {
  return is_counting ? counts_its_calls(x, calls) : at::sin(x);
}

at::Tensor draws(const at::Tensor& x) {
  at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
  const std::lock_guard<std::mutex> lock(generator.mutex());
  const auto number = generator.get<at::CPUGeneratorImpl>()->random() % 1000;
  return x * (0.001F * static_cast<float>(number));
}

TORCH_LIBRARY(rematch_outside_test, library) {
  library.def("draws(Tensor x) -> Tensor", {at::Tag::nondeterministic_seeded});
  library.def("draws_untold(Tensor x) -> Tensor");
  library.def("draws_planned(Tensor x) -> Tensor");
  library.def("counts_its_calls(Tensor x, Tensor calls) -> Tensor");
  library.def("may_count_its_calls(Tensor x, Tensor calls) -> Tensor");
  library.def("counts_as_planned(Tensor x, Tensor calls) -> Tensor");
}
TORCH_LIBRARY_IMPL(rematch_outside_test, CPU, library) {
  library.impl("counts_its_calls", &counts_its_calls);
  library.impl("may_count_its_calls", &may_count_its_calls);
  library.impl("counts_as_planned", &may_count_its_calls);
  library.impl("draws", &draws);
  library.impl("draws_planned", &draws);
  library.impl("draws_untold", &draws);
}

Case counting(const char* name, const at::Tensor& calls) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow(name, "")
                      .typed<at::Tensor(const at::Tensor&, const at::Tensor&)>();
  return {[op, calls](const at::Tensor& x, const at::Tensor& w) {
    return at::sin(x * op.call(at::mm(x, w).detach(), calls));
  }};
}

TEST_CASE("a write that an op's schema does not mark is detected by content") {
  const Case given = counting("rematch_outside_test::may_count_its_calls", at::zeros({1}));
  const Plan plan = given.plan();
  is_counting = true;
  const Checkpoint checkpoint = strict(plan, Schedule::kOnDemand, OutsideCheck::kHashes);
  CHECK_THROWS_WITH(
      given.run_engine(checkpoint),
      Contains("rematch_outside_test::may_count_its_calls wrote to its argument calls"));
  is_counting = false;
}

TEST_CASE("a trace finds an op that writes to a tensor that its schema does not mark as written") {
  const at::Tensor calls = at::zeros({1});
  const Case given = counting("rematch_outside_test::counts_its_calls", calls);
  const Checkpoint checkpoint = strict(given.plan(), Schedule::kOnDemand, OutsideCheck::kHashes);
  calls.zero_();
  const Outcome plain = given.run_plain();
  CHECK(calls.item<float>() == 1.0F);
  CHECK(first_difference(plain, given.run_engine(checkpoint)) == "");
  CHECK(calls.item<float>() == 2.0F);
}

// Compares a run under on_demand with the plain run. The engine does not detect the writes and
// draws of the cases below, as documented, so the run does not fail.
std::string difference_on_demand(const Case& given) {
  const Checkpoint checkpoint = strict(given.plan(), Schedule::kOnDemand);
  return first_difference(given.run_plain(), given.run_engine(checkpoint));
}

Case drawing(const char* name) {
  const auto op = c10::Dispatcher::singleton()
                      .findSchemaOrThrow(name, "")
                      .typed<at::Tensor(const at::Tensor&)>();
  return {[op](const at::Tensor& x, const at::Tensor& w) {
    return at::sin(at::mm(x, w)) * op.call(at::mm(x, w).detach());
  }};
}

TEST_CASE(
    "an op of another library that draws random numbers must have the tag "
    "nondeterministic_seeded") {
  CHECK(difference_on_demand(drawing("rematch_outside_test::draws")) == "");
  CHECK(difference_on_demand(drawing("rematch_outside_test::draws_untold")) != "");
}

// A trace made in another process can detect undeclared random draws of an op. The plan then names
// the op, because this process has not detected the draws.
TEST_CASE("an op with undeclared random draws is kept if the plan names the op") {
  const Case given = drawing("rematch_outside_test::draws_planned");
  Plan plan = given.plan();
  CHECK(first_difference(given.run_plain(), given.run_engine(strict(plan, Schedule::kOnDemand))) !=
        "");
  plan.hidden.kept_ops = {"rematch_outside_test::draws_planned"};
  for (const Schedule schedule : kSchedules) {
    CHECK(first_difference(given.run_plain(), given.run_engine(strict(plan, schedule))) == "");
  }
  CHECK(trace_of(given.named()).hidden.kept_ops == plan.hidden.kept_ops);
}

TEST_CASE(
    "an op with an undeclared write to an argument runs once if the plan names the argument") {
  const at::Tensor calls = at::zeros({1});
  const Case given = counting("rematch_outside_test::counts_as_planned", calls);
  Plan plan = given.plan();
  CHECK(trace_of(given.named()).hidden == HiddenEffects());  // the op did not write in the traced
                                                             // step
  plan.hidden.silent_writers = {{"rematch_outside_test::counts_as_planned", {1}}};
  is_counting = true;
  for (const Schedule schedule : kSchedules) {
    calls.zero_();
    const Outcome plain = given.run_plain();
    const Checkpoint checkpoint = strict(plan, schedule, OutsideCheck::kHashes);
    CHECK(first_difference(plain, given.run_engine(checkpoint)) == "");
    CHECK(calls.item<float>() == 2.0F);
  }
  is_counting = false;
  CHECK(trace_of(given.named()).hidden == plan.hidden);
}

TEST_CASE("hidden effects of a plan also apply to an op that is registered later") {
  mark_hidden_effects({{}, {{"rematch_late_test::op", {0, 1, 7}}}, {"rematch_late_test::op"}});
  CHECK(find_facts("rematch_late_test::op") == nullptr);
  torch::Library library(torch::Library::DEF, "rematch_late_test", std::nullopt, __FILE__,
                         __LINE__);
  library.def("op(Tensor x, int n) -> Tensor");
  const OpFacts* const facts = find_facts("rematch_late_test::op");
  REQUIRE(facts != nullptr);
  CHECK(facts->unrepeatable);
  CHECK(facts->has_effects);
  CHECK(facts->silently_written == std::vector<std::uint16_t>{0});
  mark_hidden_effects({{}, {{"rematch_late_test::op", {0}}}, {}});
  CHECK(facts->side_written.size() == 1);
}

TEST_CASE("a write through a raw pointer into a result of the region is not detected") {
  const auto written = [](const at::Tensor& y) {
    y.mutable_data_ptr<float>()[5] += 1.0F;
    return y;
  };
  CHECK(difference_on_demand({[=](const at::Tensor& x, const at::Tensor& w) {
          return at::sin(written(at::mm(x, w)));
        }}) != "");
  // The engine handles this write, because it expects programs to fill results of `empty` through a
  // pointer.
  CHECK(difference_on_demand({[=](const at::Tensor& x, const at::Tensor& w) {
          const at::Tensor ones = at::empty({4, 4});
          std::fill_n(ones.mutable_data_ptr<float>(), 16, 1.0F);
          return at::sin(at::mm(x, w) * written(ones));
        }}) == "");
}

}  // namespace
}  // namespace rematch::testing
