// Tests searches for torch.utils.checkpoint. Every plan found must be exportable.
#include <algorithm>
#include <variant>

#include "policies/base/rejected.h"
#include "policies/export/torch_file.h"
#include "policies/predict/device/roofline.h"
#include "policies/search/front/front_search.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"
#include "tests/support/trace_builder.h"

namespace rematch {
namespace {

using testing::TraceBuilder;

Front searched_for_torch(const Trace& trace) {
  const Profile profile = roofline_profile(trace, *find_device_sheet("h100"));
  SearchSpace space;
  space.schedule = Schedule::kWholeRegion;
  space.whole_modules = true;
  space.most_in_segment = 1;
  space.resolution_ratio = 0;
  FrontSearch search(trace, profile, space);
  return search.front(1000, {});
}

void check_exportable(const Trace& trace, const Front& front) {
  for (const FrontPoint& point : front.points) {
    const auto regions = torch_regions(trace, point.plan, Schedule::kWholeRegion);
    if (const auto* rejected = std::get_if<Rejected>(&regions)) FAIL_CHECK(rejected->message);
  }
}

TEST_CASE("a search for torch also finds plans that divide blocks, and plans that save ops") {
  const Trace trace = testing::toy_three_kinds({.layers = 3, .tokens = 64});
  const Front front = searched_for_torch(trace);
  check_exportable(trace, front);
  bool has_part = false;
  bool has_saves = false;
  for (const FrontPoint& point : front.points) {
    for (const PlannedRegion& region : point.plan.regions) {
      has_part |=
          region.first_scope.find('.', region.first_scope.find('.') + 1) != std::string::npos;
    }
    for (const RegionType& type : point.plan.types) {
      for (const PlannedOp& op : type.ops) has_saves |= op.treatment == Treatment::kSave;
    }
  }
  CHECK(has_part);
  CHECK(has_saves);
}

// Each layer draws two masks. The cheapest plan keeps only the first mask. But if torch recomputes
// without drawing the first mask, it draws a different second mask.
TEST_CASE("no random draw is kept before a draw that runs again") {
  TraceBuilder builder("draws");
  ValueId x = builder.parameter({64, 64});
  for (int layer = 0; layer < 3; ++layer) {
    const auto scope = builder.scope("blocks", layer);
    for (int part = 0; part < 2; ++part) {
      const ValueId product = builder.call("aten::mm", {x, x}, {64, 64}, {{0, 1}, {}});
      const ValueId mask = builder.call("aten::bernoulli", {product}, {64, 64});
      builder.last_op_draws();
      x = builder.call("aten::mul.Tensor", {product, mask}, {64, 64}, {{0, 1}, {}});
    }
  }
  const Trace trace = builder.finish();
  check_exportable(trace, searched_for_torch(trace));
}

TEST_CASE("a block that writes to a tensor from outside is not checkpointed") {
  TraceBuilder builder("counts");
  ValueId x = builder.parameter({64, 64});
  const ValueId counter = builder.outside({64, 64});
  for (int layer = 0; layer < 3; ++layer) {
    const auto scope = builder.scope("blocks", layer);
    if (layer == 1) builder.in_place("aten::add_.Tensor", {counter, x});
    const ValueId product = builder.call("aten::mm", {x, x}, {64, 64}, {{0, 1}, {}});
    x = builder.call("aten::mul.Tensor", {product, x}, {64, 64}, {{0, 1}, {}});
  }
  const Trace trace = builder.finish();
  const Front front = searched_for_torch(trace);
  check_exportable(trace, front);
  CHECK(front.points.size() > 1);
}

// One region over both parts would keep less, but torch checkpoints whole modules, and no module
// consists of these two parts. The whole block is a module, but it writes to a tensor from outside,
// so it cannot be a region.
TEST_CASE("adjacent modules are separate regions, even if a single region would hold fewer bytes") {
  TraceBuilder builder("parts");
  ValueId x = builder.parameter({64, 64});
  const ValueId counter = builder.outside({64, 64});
  for (int layer = 0; layer < 3; ++layer) {
    const auto scope = builder.scope("blocks", layer);
    for (const char* name : {"first", "second"}) {
      const auto part = builder.scope(name);
      for (int op = 0; op < 2; ++op) x = builder.call("aten::sin", {x}, {64, 64}, {{0}, {}});
    }
    builder.in_place("aten::add_.Tensor", {counter, x});
  }
  const Trace trace = builder.finish();
  const Front front = searched_for_torch(trace);
  check_exportable(trace, front);
  const auto has_part = [](const FrontPoint& point) { return !point.plan.regions.empty(); };
  CHECK(std::any_of(front.points.begin(), front.points.end(), has_part));
}

}  // namespace
}  // namespace rematch
