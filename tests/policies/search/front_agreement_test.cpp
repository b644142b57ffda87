// Compares points of fronts with the engine, on traces of real models. The predicted peak, its
// place and the recomputed ops must equal what the engine measures on meta.
#include "harness/measure/memory.h"
#include "harness/run/prediction/prediction.h"
#include "policies/catalogue/resolve.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/meta_engine.h"
#include "tests/support/seeds.h"

namespace rematch {
namespace {

struct Case {
  const char* preset;
  std::map<std::string, std::int64_t> dimensions;
};

std::int64_t num_recomputed(const testing::EngineFigures& prediction) {
  std::int64_t sum = 0;
  for (const auto& [op, count] :
       prediction.counts.by_op[static_cast<std::size_t>(Phase::kRecompute)]) {
    sum += count;
  }
  return sum;
}

TEST_CASE("every point of a front has the engine's peak at the same place", "[property]") {
  install_counting_allocators();
  const Case cases[] = {{"llama_small", {{"layers", 4}}},
                        {"llama_small", {{"layers", 4}, {"fused_ops", 1}}},
                        {"wan_small", {{"layers", 4}}},
                        {"llama_small", {{"layers", 4}, {"fsdp", 8}}},
                        {"wan_small", {{"layers", 3}, {"tp", 2}, {"fsdp", 3}}}};
  for (const Case& which : cases) {
    CAPTURE(which.preset, which.dimensions);
    const ModelSpec spec = std::get<ModelSpec>(make_spec(which.preset, which.dimensions));
    MetaModel model(spec, OptimizerKind::kAdamW, "", 0);
    const Trace trace = model.trace();
    const Profile profile = roofline_profile(trace, *find_device_sheet("l40s"));
    for (const Schedule schedule : {Schedule::kWholeRegion, Schedule::kOnDemand}) {
      CAPTURE(to_string(schedule));
      SearchSpace space;
      space.schedule = schedule;
      space.reach = Reach::kHull;
      FrontSearch search(trace, profile, space, resolve_none(trace));
      const Front front = search.front(testing::num_seeds(6), {});
      CHECK(front.points.size() >= 4);
      CHECK(front.none.has_value() == which.dimensions.contains("fsdp"));
      std::vector<FrontPoint> points = front.points;
      points.push_back(front.reference());
      for (const FrontPoint& point : points) {
        CAPTURE(point.saves);
        const testing::EngineFigures engine = testing::run_on_meta(model, point.plan, schedule);
        CHECK(engine.memory.peak_allocated.value() == point.figures.peak);
        CHECK(engine.memory.peak_phase.value() == point.figures.peak_phase);
        CHECK(engine.memory.peak_scope == point.figures.peak_place);
        CHECK(num_recomputed(engine) == point.figures.num_recomputed);
      }
    }
  }
}

}  // namespace
}  // namespace rematch
