#include "policies/search/words/saves_text.h"

#include <set>
#include <string>
#include <utility>

#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

Plan plan_of(const std::string& policy, const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace, NoEffect::kAllow));
}

std::string words_of(const std::string& policy) {
  const Trace trace = testing::toy_llama();
  return saves_text(plan_of(policy, trace), trace);
}

// Saves those ops of this name whose numbers are in `nths`. The region's ops of the name are
// numbered from 1.
void save(RegionType& type, const std::string& name, const std::set<int>& nths) {
  int nth = 0;
  for (PlannedOp& op : type.ops) {
    if (op.name == name && nths.count(++nth) > 0) op.treatment = Treatment::kSave;
  }
}

// Returns the plan of policy `full` on four layers, with a separate region type for each layer.
Plan own_types(const Trace& trace) {
  Plan plan = plan_of("full", trace);
  const RegionType type = plan.types.front();
  plan.types.clear();
  for (PlannedRegion& region : plan.regions) {
    region.type = static_cast<int>(plan.types.size());
    plan.types.push_back(type);
  }
  return plan;
}

TEST_CASE("the plans of known policies are described in words") {
  CHECK(words_of("none") == "layers 0-3: keep all");
  CHECK(words_of("full") == "layers 0-3: recompute all");
  CHECK(words_of("first_n(2)") == "layers 0, 1: recompute all; 2, 3: keep all");
  CHECK(words_of("attn_only") == "layers 0-3: keep attention::attention");
  CHECK(words_of("nth_first(2)") == "layers 0, 2: recompute all; 1, 3: keep all");
}

TEST_CASE("the text says whether gathered parameters are held") {
  const Trace trace = testing::toy_sharded();
  const auto words = [&](const std::string& policy) {
    return saves_text(plan_of(policy, trace), trace);
  };
  CHECK(words("none") == "layers 0-3: keep all but gathered parameters");
  CHECK(words("no_reshard(none)") == "layers 0-3: keep all, including gathered parameters");
  CHECK(words("full") == "layers 0-3: recompute all");
  CHECK(words("no_reshard(full)") == "layers 0-3: keep gathered parameters");
  CHECK(words("nth_last(2)") ==
        "layers 1, 3: recompute all; 0, 2: keep all but gathered parameters");
  CHECK(words("no_reshard(nth_last(2))") ==
        "layers 1, 3: keep gathered parameters; 0, 2: keep all, including gathered parameters");
  CHECK(words("recompute_modules([mlp])") ==
        "layers 0-3: keep gathered parameters; regions of 0-3: ffn");
  CHECK(words("no_reshard(segments(2))") ==
        "layers 0-3: keep gathered parameters; 0-3 in segments of 2");
}

TEST_CASE(
    "saves that all layers share are listed once, and other saves are listed with their layers") {
  const Trace trace = testing::toy_llama();
  Plan plan = own_types(trace);
  for (RegionType& type : plan.types) save(type, "rematch::attention", {1});
  save(plan.types[2], "aten::mm", {1, 2});
  save(plan.types[3], "aten::mm", {1, 2, 3});
  CHECK(saves_text(plan, trace) ==
        "layers 0-3: keep attention::attention; 2, 3 also attention::mm#1, attention::mm#2; 3 also "
        "attention::mm#3");
}

TEST_CASE(
    "ops are numbered only if some ops of the same name are not kept; layers that keep nothing are "
    "listed") {
  const Trace trace = testing::toy_llama();
  Plan plan = own_types(trace);
  for (const int layer : {1, 2}) save(plan.types[layer], "aten::mm", {1, 2, 3, 4, 5});
  CHECK(saves_text(plan, trace) ==
        "layers 1, 2: keep attention::mm, ffn::mm#1; 0, 3: recompute all");
}

// The plan keeps two products. The test turns the first product into a cast, so attention has three
// products left.
TEST_CASE("the text mentions kept casts without the names of their ops") {
  const Trace trace = testing::toy_llama();
  Plan plan = plan_of("full", trace);
  REQUIRE(plan.types.size() == 1);
  save(plan.types[0], "aten::mm", {1, 2});
  for (PlannedOp& op : plan.types[0].ops) {
    if (op.treatment != Treatment::kSave) continue;
    op.name = "aten::_to_copy";
    break;
  }
  CHECK(saves_text(plan, trace) == "layers 0-3: keep attention::mm#1; 0-3 also casts");
}

TEST_CASE("the text gives the size of segments, and the saves of each of their layers") {
  const Trace trace = testing::toy_llama();
  CHECK(words_of("segments(2)") == "layers 0-3: recompute all; 0-3 in segments of 2");
  Plan plan = plan_of("segments(2)", trace);
  REQUIRE(plan.types.size() == 1);
  save(plan.types[0], "rematch::attention", {1, 2});
  CHECK(saves_text(plan, trace) == "layers 0-3: keep attention::attention; 0-3 in segments of 2");
  plan.types[0] = plan_of("segments(2)", trace).types[0];
  save(plan.types[0], "rematch::attention", {2});
  CHECK(saves_text(plan, trace) ==
        "layers 1, 3: keep attention::attention; 0, 2: recompute all; 0-3 in segments of 2");
}

TEST_CASE("the text for a layer with several regions names the regions") {
  const Trace trace = testing::toy_llama();
  Plan plan = plan_of("full", trace);
  const PlannedRegion block = plan.regions.at(1);
  PlannedRegion ffn = block;
  ffn.first_scope = ffn.last_scope = "blocks.1.ffn";
  plan.regions.at(1).first_scope = plan.regions.at(1).last_scope = "blocks.1.attention";
  plan.regions.insert(plan.regions.begin() + 2, ffn);
  CHECK(saves_text(plan, trace) == "layers 0-3: recompute all; regions of 1: attention, ffn");
}

TEST_CASE("the text names the block lists if there are several") {
  Trace trace = testing::toy_llama();
  for (TracedBlock& block : trace.blocks) {
    if (block.index < 2) continue;
    block.list = "tail";
    block.index -= 2;
  }
  CHECK(saves_text(Plan{}, trace) == "blocks 0, 1: keep all; tail 0, 1: keep all");
}

}  // namespace
}  // namespace rematch
