#include "models/preset/parallel.h"

#include <set>

#include "policies/base/rejected.h"
#include "tests/support/catch.h"

using namespace rematch;

namespace {

using Dimensions = std::map<std::string, std::int64_t>;

Dimensions parsed(std::string_view text) {
  auto layout = parse_layout(text);
  if (const auto* rejected = std::get_if<Rejected>(&layout)) FAIL(rejected->message);
  return std::get<Dimensions>(std::move(layout));
}

std::string parse_refusal(std::string_view text) {
  const auto layout = parse_layout(text);
  REQUIRE(std::holds_alternative<Rejected>(layout));
  return std::get<Rejected>(layout).message;
}

ModelSpec spec_of(std::string_view preset, std::string_view layout, Dimensions overrides = {}) {
  overrides.merge(parsed(layout));
  auto made = make_spec(preset, overrides);
  if (const auto* rejected = std::get_if<Rejected>(&made)) FAIL(rejected->message);
  return std::get<ModelSpec>(std::move(made));
}

std::string refusal(std::string_view preset, std::string_view layout, Dimensions overrides = {}) {
  overrides.merge(parsed(layout));
  const auto made = make_spec(preset, overrides);
  REQUIRE(std::holds_alternative<Rejected>(made));
  return std::get<Rejected>(made).message;
}

}  // namespace

TEST_CASE("a layout is always printed in the same order, whatever order the user wrote") {
  CHECK(parsed("tp=2,sp,fsdp=4") == Dimensions{{"tp", 2}, {"sp", 1}, {"fsdp", 4}});
  CHECK(layout_text(parsed("fsdp=4,sp,tp=2")) == "tp=2,sp,fsdp=4");
  CHECK(layout_text(parsed("balanced_routing,ep=4,ulysses=2")) ==
        "ulysses=2,ep=4,balanced_routing");
  CHECK(layout_text({{"layers", 3}}).empty());
}

TEST_CASE("the error for a malformed layout says what is allowed") {
  CHECK(parse_refusal("tp=2,fspd=4") == "layout has an unknown part 'fspd'; did you mean 'fsdp'?");
  CHECK(parse_refusal("tp") ==
        "layout: 'tp' is not a number of ranks; write tp=N with N from 1 to 4096");
  for (const char* text : {"tp=", "tp=0", "tp=-2", "tp=2x", "tp=4097", "tp=99999999999999999999"}) {
    CAPTURE(text);
    CHECK(parse_refusal(text).ends_with("write tp=N with N from 1 to 4096"));
  }
  CHECK(parse_refusal("sp=1,tp=2").starts_with("layout: sp is a switch and takes no number"));
  CHECK(parse_refusal("tp=2,tp=2") == "layout: tp appears twice");
  for (const char* text : {"", "tp=2,", ",", "tp=2,,sp"}) {
    CAPTURE(text);
    CHECK(parse_refusal(text).ends_with("has an empty part; write it like tp=2,sp,fsdp=4"));
  }
}

TEST_CASE("a spec's dimensions include the sizes of its layout that are above 1") {
  const ModelSpec plain = spec_of("llama_small", "tp=1");
  CHECK(plain.dimensions == std::get<ModelSpec>(make_spec("llama_small", {})).dimensions);
  CHECK(world_size(plain) == 1);
  CHECK(rank_groups(plain).empty());
  CHECK(data_index(plain, 7) == 7);

  const ModelSpec spec = spec_of("llama_small", "tp=2,sp,fsdp=4,ulysses=1");
  CHECK(layout_text(spec.dimensions) == "tp=2,sp,fsdp=4");
  CHECK(world_size(spec) == 8);
  for (const DimensionEntry& entry : dimension_entries(ModelFamily::kLlama)) {
    CHECK(parse_refusal(std::string(entry.name) + "=2").find("unknown part") != std::string::npos);
  }
}

// With tp=2,ulysses=2,fsdp=3, rank 7 is 1 x 4 + 1 x 2 + 1: position 1 along every axis.
TEST_CASE("consecutive ranks differ first in tp and last in fsdp") {
  ModelSpec spec = spec_of("llama_small", "tp=2,ulysses=2,fsdp=3", {{"kv_heads", 4}});
  spec.rank = 7;
  const std::vector<RankGroup> groups = rank_groups(spec);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "tp");
  CHECK(groups[0].ranks == std::vector<int>{6, 7});
  CHECK(groups[0].position == 1);
  CHECK(groups[1].name == "ulysses");
  CHECK(groups[1].ranks == std::vector<int>{5, 7});
  CHECK(groups[1].position == 1);
  CHECK(groups[2].name == "fsdp");
  CHECK(groups[2].ranks == std::vector<int>{3, 7, 11});
  CHECK(groups[2].position == 1);
}

TEST_CASE("each rank is in exactly one group of each layout option") {
  ModelSpec spec = spec_of("moe_small", "ulysses=2,ep=3,fsdp=2");
  std::map<std::string, std::set<std::vector<int>>> parts;
  for (spec.rank = 0; spec.rank < world_size(spec); ++spec.rank) {
    for (const RankGroup& group : rank_groups(spec)) {
      CHECK(group.ranks.at(static_cast<std::size_t>(group.position)) == spec.rank);
      parts[group.name].insert(group.ranks);
    }
  }
  CHECK(parts.at("ulysses").size() == 6);
  CHECK(parts.at("ep").size() == 4);
  CHECK(parts.at("fsdp").size() == 6);
}

TEST_CASE("ranks of tp and ulysses share a batch; each rank of ep and fsdp has its own batch") {
  ModelSpec spec = spec_of("moe_small", "ulysses=2,ep=3,fsdp=2");
  CHECK(data_ranks(spec) == 6);
  std::map<std::int64_t, int> ranks_with;
  for (spec.rank = 0; spec.rank < 12; ++spec.rank) ++ranks_with[data_index(spec, 5)];
  CHECK(ranks_with.size() == 6);
  CHECK(ranks_with.begin()->first == 30);
  for (const auto& [index, count] : ranks_with) CHECK(count == 2);
}

TEST_CASE("the error for an indivisible size gives the numbers") {
  CHECK(refusal("llama_small", "tp=3") == "tp 3 does not divide heads 4");
  CHECK(refusal("llama_small", "tp=4") == "tp 4 does not divide kv_heads 2");
  CHECK(refusal("llama_small", "tp=2", {{"ffn", 351}}) == "tp 2 does not divide ffn 351");
  CHECK(refusal("llama_small", "tp=2,ulysses=2") ==
        "tp 2 x ulysses 2 = 4 does not divide kv_heads 2");
  CHECK(refusal("llama_small", "ulysses=2", {{"tokens", 31}}) ==
        "ulysses 2 does not divide tokens 31");
  CHECK(refusal("llama_small", "tp=2,sp", {{"tokens", 31}}) == "tp 2 does not divide tokens 31");
  CHECK(refusal("wan_small", "tp=2,sp", {{"frames", 1}, {"height", 3}, {"width", 5}}) ==
        "tp 2 does not divide tokens 15");
  CHECK(refusal("moe_small", "ep=4") == "ep 4 does not divide experts 6");
  CHECK(refusal("moe_small", "balanced_routing", {{"tokens", 10}, {"batch", 1}}) ==
        "balanced_routing: experts 6 do not divide the 20 rows (tokens x top_k) that a rank "
        "routes");
}

TEST_CASE("a layout that a model does not support is rejected") {
  CHECK(refusal("llama_small", "sp") ==
        "sp needs tp: it splits the tokens over tp's ranks; write tp=2,sp");
  CHECK(refusal("llama_small", "ep=2") ==
        "model 'llama_small' cannot be sharded by ep; known: tp, sp, ulysses, fsdp");
  CHECK(refusal("wan_small", "ep=2").starts_with("model 'wan_small' cannot be sharded by"));
  CHECK(refusal("llama_small", "tp=2,fsdp=4096") ==
        "layout tp=2,fsdp=4096 has 8192 ranks; at most 4096 are allowed");
  CHECK(std::get<Rejected>(make_spec("llama_small", {{"tp", 0}})).message ==
        "tp 0 is out of range; allowed: 1 to 4096");
  CHECK(std::get<Rejected>(make_spec("llama_small", {{"sp", 2}})).message ==
        "sp 2 is out of range; allowed: 0 to 1");
}
