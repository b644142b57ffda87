// Compares rematch's front with points of PyTorch 2.11's own partitioner on llama_small under
// memory budgets. tests/parity/planners/make_partitioner_points.py measured these points: the bytes
// that a step adds, and the number of recomputed matmul and attention ops.
#include "harness/measure/memory.h"
#include "harness/run/prediction/prediction.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/in_tree.h"

namespace rematch {
namespace {

constexpr std::int64_t kTimeOfOp = 1'000;

// Gives times only to ops that the partitioner counts.
Profile profile_of_counts(const Trace& trace) {
  Profile profile;
  profile.model = trace.model;
  profile.dimensions = trace.dimensions;
  profile.dtype = trace.dtype;
  profile.trace_sha256 = trace_sha256(trace);
  for (const TracedOp& op : trace.ops) {
    const bool counts =
        op.op_class == OpClass::kMatmul || op.op_class == OpClass::kAttentionForward;
    profile.forward.emplace_back(counts ? kTimeOfOp : 0);
  }
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kOp) profile.backward.emplace_back(0);
  }
  return profile;
}

TEST_CASE("no point of PyTorch's partitioner dominates the front of llama_small", "[parity]") {
  install_counting_allocators();
  const Json golden =
      read_json_file(testing::in_tree("tests/parity/planners/partitioner_points.json"));
  const ModelSpec spec = std::get<ModelSpec>(make_spec("llama_small", {}));
  MetaModel model(spec, OptimizerKind::kAdamW, "", 0);
  const Trace trace = model.trace();
  for (const auto& [name, value] : golden.at("dimensions").items()) {
    CHECK(trace.dimensions.at(name) == value.get<std::int64_t>());
  }
  const Profile profile = profile_of_counts(trace);
  SearchSpace space;
  space.optimizer = OptimizerKind::kNothing;
  space.resolution_ratio = 0;
  FrontSearch search(trace, profile, space);
  const Bytes before = trace.parameter_bytes + trace.constant_bytes;
  const Front front = search.front(2, {});
  CHECK((front.nothing_recomputed.figures.peak - before).count ==
        golden.at("eager").at("peak_bytes").get<std::int64_t>());
  CHECK(golden.at("points").size() == 12);
  for (const Json& point : golden.at("points")) {
    CAPTURE(point.dump());
    const Bytes peak = {point.at("peak_bytes").get<std::int64_t>()};
    const auto again = point.at("recomputed_matmuls").get<std::int64_t>() +
                       point.at("recomputed_attentions").get<std::int64_t>();
    const std::optional<FrontPoint> ours = search.fastest_within(before + peak);
    REQUIRE(ours.has_value());
    CHECK(ours->figures.recompute.count() / kTimeOfOp <= again);
  }
}

}  // namespace
}  // namespace rematch
