#include "reports/render/sweep.h"

#include "tests/reports/sample_report.h"
#include "tests/reports/sample_sweep.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using testing::representative_sweep;

struct Sweep {
  explicit Sweep(Report all) : report(std::move(all)) {}
  Report report;
  std::vector<PolicyComparison> comparisons = compare_policies(report);
  std::vector<SweepModel> models = sweep_models(report, comparisons);
};

using Names = std::vector<std::string>;

// kv_tokens is always twice `tokens`, so it gets no axis. The seed is the last axis, although it
// has as many values as the batch.
TEST_CASE("the axes of a sweep are its independent dimensions, longest first and seed last") {
  const Sweep sweep(representative_sweep());
  REQUIRE(sweep.models.size() == 3);
  const SweepModel& llama = sweep.models[0];
  CHECK(llama.heading == "llama_small on cpu");
  REQUIRE(llama.axes.size() == 3);
  CHECK(llama.axes[0].name == "tokens");
  CHECK(llama.axes[0].values == Names{"8", "16", "32"});
  CHECK(llama.axes[1].name == "batch");
  CHECK(llama.axes[2].name == "seed");
  CHECK(llama.policies == Names{"none", "full", "attn_only", "nth_last(2)"});
  CHECK_THAT(llama.common, Catch::Contains("dim 128") && !Catch::Contains("tokens"));
  CHECK(shape_words(llama, llama.shapes[0]) == "tokens 16, batch 1, seed 0");
}

TEST_CASE("a comparison without points keeps its model and its position") {
  const Sweep sweep(representative_sweep());
  const SweepModel& llama = sweep.models[0];
  REQUIRE(llama.unmeasured.size() == 1);
  CHECK(shape_words(llama, *llama.unmeasured[0]) == "tokens 32, batch 2, seed 1");
  // The comparison with 64 tokens was measured, and the one with 128 tokens failed. The axis has
  // both.
  const SweepModel& wan = sweep.models[1];
  CHECK(wan.axes[0].values == Names{"64", "128"});
  CHECK(sweep.models[2].heading == "moe_small");
  CHECK(sweep.models[2].shapes.empty());
}

// At 16 tokens, policy attn_only lowers the peak by 16 * 2 % = 32 %.
TEST_CASE(
    "ratios of a sweep are relative to policy none, or to full if policy none did not finish") {
  const Sweep sweep(representative_sweep());
  const std::vector<SweepShape>& shapes = sweep.models[0].shapes;
  CHECK(shapes[0].reference->policy == "none");
  CHECK(*shapes[0].cells[2].peak_ratio == Approx(0.68));
  CHECK(*shapes[0].cells[1].step_ratio == Approx(1.3));
  CHECK(shapes[0].cells[1].is_step_sure);
  CHECK_FALSE(shapes[1].cells[3].is_step_sure);
  const SweepShape& without_none = shapes.back();
  CHECK(without_none.reference->policy == "full");
  CHECK_FALSE(without_none.cells[0].peak_ratio);
  // Relative to policy `none`, the peak is 0.75 for nth_last(2) and 0.3 for `full`, so the ratio of
  // the two is 2.5.
  CHECK(*without_none.cells[3].peak_ratio == Approx(2.5));
}

TEST_CASE(
    "a report is a sweep if it has several comparisons of one model or a missing comparison") {
  Report one{testing::sample_provenance(), {testing::sample_point("none")}, {}};
  CHECK_FALSE(is_sweep(Sweep(one).models));
  Report two = one;
  two.points.push_back(one.points[0]);
  two.points[1].identity.model = "llama_small";
  CHECK_FALSE(is_sweep(Sweep(two).models));
  two.points[1].identity = one.points[0].identity;
  two.points[1].identity.seed = 7;
  CHECK(is_sweep(Sweep(two).models));
  one.unmeasured.emplace_back();
  CHECK(is_sweep(Sweep(one).models));
}

TEST_CASE("several schedules of one policy are distinguished in a sweep") {
  Report report{testing::sample_provenance(), {}, {}};
  for (const Schedule schedule : {Schedule::kOnDemand, Schedule::kWholeRegion}) {
    report.points.push_back(testing::sample_point("full", schedule));
  }
  report.points.push_back(testing::sample_point("none"));
  CHECK(Sweep(report).models[0].policies == Names{"full on_demand", "full whole_region", "none"});
}

}  // namespace
}  // namespace rematch
