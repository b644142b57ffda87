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
  CHECK(layout_text(parsed("ring,fsdp=4,cp=2")) == "cp=2,ring,fsdp=4");
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
  ModelSpec spec = spec_of("moe_small", "ulysses=2,ep=3,fsdp=2,product");
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
  ModelSpec spec = spec_of("moe_small", "ulysses=2,ep=3,fsdp=2,product");
  CHECK(data_ranks(spec) == 6);
  std::map<std::int64_t, int> ranks_with;
  for (spec.rank = 0; spec.rank < 12; ++spec.rank) ++ranks_with[data_index(spec, 5)];
  CHECK(ranks_with.size() == 6);
  CHECK(ranks_with.begin()->first == 30);
  for (const auto& [index, count] : ranks_with) CHECK(count == 2);
}

// Specs that were stored before ep could be inside fsdp have no expert_fsdp.
TEST_CASE("ep is inside fsdp unless the layout says product") {
  CHECK(parsed("fsdp=8,ep=4") == Dimensions{{"fsdp", 8}, {"ep", 4}, {"expert_fsdp", 2}});
  CHECK(parsed("ep=8,fsdp=8") == Dimensions{{"fsdp", 8}, {"ep", 8}, {"expert_fsdp", 1}});
  CHECK(parsed("ep=8,product,fsdp=8") == Dimensions{{"fsdp", 8}, {"ep", 8}, {"expert_fsdp", 0}});
  for (const char* text : {"fsdp=8,ep=4", "fsdp=8,ep=8,balanced_routing", "fsdp=8,ep=8,product"}) {
    CHECK(layout_text(parsed(text)) == text);
  }
  CHECK(world_size(parsed("ep=8,fsdp=8")) == 8);
  CHECK(world_size(parsed("ep=8,fsdp=8,product")) == 64);
  CHECK(world_size(Dimensions{{"ep", 8}, {"fsdp", 8}}) == 64);
  CHECK(layout_text(Dimensions{{"ep", 8}, {"fsdp", 8}}) == "fsdp=8,ep=8,product");

  CHECK(spec_of("moe_small", "ep=2,fsdp=2,product").dimensions ==
        std::get<ModelSpec>(make_spec("moe_small", {{"ep", 2}, {"fsdp", 2}})).dimensions);
  for (const char* text : {"fsdp=2,ep=1", "fsdp=2,ep=1,product"}) {
    CHECK(spec_of("moe_small", text).dimensions == spec_of("moe_small", "fsdp=2").dimensions);
  }
  CHECK(spec_of("moe_small", "fsdp=1,ep=2").dimensions == spec_of("moe_small", "ep=2").dimensions);
}

TEST_CASE("a changed size of ep or fsdp changes how many ranks shard an expert") {
  const auto changed = [](const std::string& name, std::int64_t size) {
    Dimensions dimensions = parsed("fsdp=8,ep=2");
    dimensions[name] = size;
    return make_spec("moe_small", dimensions);
  };
  const auto shards = [&](const std::string& name, std::int64_t size) {
    return std::get<ModelSpec>(changed(name, size)).option("expert_fsdp");
  };
  CHECK(shards("fsdp", 4) == 2);
  CHECK(shards("fsdp", 16) == 8);
  CHECK(shards("fsdp", 1) == 0);
  CHECK(shards("ep", 1) == 0);
  CHECK(std::get<Rejected>(changed("ep", 6)).message.starts_with("ep 6 does not divide fsdp 8"));
}

// With fsdp=4,ep=2 ranks 0 and 1 hold all experts, and so do ranks 2 and 3.
TEST_CASE(
    "ranks of ep are consecutive among those of fsdp, and ranks with equal experts are apart") {
  ModelSpec spec = spec_of("moe_small", "tp=2,fsdp=4,ep=2");
  CHECK(world_size(spec) == 8);
  spec.rank = 5;
  const std::vector<RankGroup> groups = rank_groups(spec);
  REQUIRE(groups.size() == 4);
  CHECK(groups[0].ranks == std::vector<int>{4, 5});
  CHECK(groups[1].name == "ep");
  CHECK(groups[1].ranks == std::vector<int>{5, 7});
  CHECK(groups[1].position == 0);
  CHECK(groups[2].name == "expert_fsdp");
  CHECK(groups[2].ranks == std::vector<int>{1, 5});
  CHECK(groups[2].position == 1);
  CHECK(groups[3].name == "fsdp");
  CHECK(groups[3].ranks == std::vector<int>{1, 3, 5, 7});
  CHECK(groups[3].position == 2);
  CHECK(data_ranks(spec) == 4);
  CHECK(data_index(spec, 3) == 3 * 4 + 2);
  CHECK(expert_shards(spec).name == "expert_fsdp");
  CHECK(expert_shards(spec_of("moe_small", "ep=2,fsdp=4,product")).name == "fsdp");
}

TEST_CASE("a layout whose experts do not fit into fsdp is rejected with the number of ranks") {
  CHECK(parse_refusal("fsdp=8,ep=3") ==
        "ep 3 does not divide fsdp 8: the ranks of fsdp share the experts in groups of ep; "
        "fsdp=8,ep=3,product has ep x fsdp = 24 ranks");
  CHECK(parse_refusal("ep=8,product") ==
        "layout: product needs ep and fsdp, whose ranks it multiplies; write it like "
        "fsdp=4,ep=2,product");
  CHECK(parse_refusal("fsdp=8,ep=4,expert_fsdp=2").starts_with("layout has an unknown part"));
  CHECK(refusal("llama_small", "fsdp=8,ep=8") ==
        "model 'llama_small' cannot be sharded by ep; known: tp, sp, ulysses, cp, ring, fsdp, pp, "
        "interleave, zb, first_layers, last_layers");
}

// cp=2 inside fsdp=6: rank 7 is 1 x 6 + 0 x 2 + 1, so it is position 1 of cp and 3 of fsdp.
TEST_CASE("the ranks of fsdp include the ranks of cp") {
  ModelSpec spec = spec_of("llama_small", "tp=2,cp=2,fsdp=6");
  CHECK(world_size(spec) == 12);
  CHECK(data_ranks(spec) == 3);
  spec.rank = 7;
  const std::vector<RankGroup> groups = rank_groups(spec);
  REQUIRE(groups.size() == 3);
  CHECK(groups[1].name == "cp");
  CHECK(groups[1].ranks == std::vector<int>{5, 7});
  CHECK(groups[1].position == 1);
  CHECK(groups[2].name == "fsdp");
  CHECK(groups[2].ranks == std::vector<int>{1, 3, 5, 7, 9, 11});
  CHECK(groups[2].position == 3);
  std::map<std::int64_t, std::vector<std::int64_t>> ranks_of_batch;
  for (spec.rank = 0; spec.rank < 12; ++spec.rank) {
    ranks_of_batch[data_index(spec, 5)].push_back(spec.rank);
  }
  CHECK(ranks_of_batch == std::map<std::int64_t, std::vector<std::int64_t>>{
                              {15, {0, 1, 2, 3}}, {16, {4, 5, 6, 7}}, {17, {8, 9, 10, 11}}});
}

TEST_CASE("without fsdp, each rank of cp multiplies the world") {
  const ModelSpec spec = spec_of("llama_small", "cp=4,tp=2,fsdp=1");
  CHECK(layout_text(spec.dimensions) == "tp=2,cp=4");
  CHECK(world_size(spec) == 8);
  CHECK(data_ranks(spec) == 1);
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
  CHECK(refusal("llama_small", "cp=3") ==
        "cp 3 cuts each sequence into 2 x cp = 6 chunks, which does not divide tokens 128");
  CHECK(refusal("llama_small", "cp=4", {{"tokens", 12}}) ==
        "cp 4 cuts each sequence into 2 x cp = 8 chunks, which does not divide tokens 12");
  CHECK(refusal("llama_small", "tp=2,sp,ulysses=2,cp=2", {{"tokens", 12}, {"kv_heads", 4}}) ==
        "tp 2 x ulysses 2 x cp 2 = 8 does not divide tokens 12");
  CHECK(refusal("llama_small", "cp=4,fsdp=6") ==
        "cp 4 does not divide fsdp 6: fsdp counts all ranks that shard parameters, including the "
        "ranks of cp; write fsdp=24 for 6 batches in a step");
  CHECK(refusal("moe_small", "ep=4") == "ep 4 does not divide experts 6");
  CHECK(refusal("moe_small", "balanced_routing", {{"tokens", 10}, {"batch", 1}}) ==
        "balanced_routing: experts 6 do not divide the 20 rows (tokens x top_k) that a rank "
        "routes");
}

TEST_CASE("a pipeline's layout contains its micro-batches") {
  const Dimensions layout = parsed("pp=4,micro=8,tp=2");
  CHECK(layout == Dimensions{{"tp", 2}, {"pp", 4}, {"accumulate", 8}});
  CHECK(layout_text(layout) == "tp=2,pp=4,micro=8");
  CHECK(parsed(layout_text(layout)) == layout);
  CHECK(layout_text({{"accumulate", 8}}).empty());
  CHECK(parse_refusal("tp=2,micro=8") ==
        "layout: micro needs pp: it counts the micro-batches of a pipeline; write pp=2,micro=4, or "
        "--accumulate without stages");
  CHECK(parse_refusal("pp=2,micro=0") ==
        "layout: 'micro=0' is not a number of micro-batches; write micro=M with M from 1 to 65536");
  CHECK(parse_refusal("pp=2,micro=2,micro=2") == "layout: micro appears twice");
  CHECK(parse_refusal("pp=2,first_layers=x") ==
        "layout: 'first_layers=x' is not a number of layers; write first_layers=N with N from 0 to "
        "10000");
}

std::vector<std::int64_t> blocks_of_stages(const ModelSpec& spec) {
  std::vector<std::int64_t> blocks;
  std::int64_t end = 0;
  for (std::int64_t stage = 0; stage < num_stages(spec.dimensions); ++stage) {
    const StageBlocks of_stage = stage_blocks(spec, stage);
    CHECK(of_stage.first == end);
    end = of_stage.end;
    blocks.push_back(of_stage.end - of_stage.first);
  }
  CHECK(end == spec.at("layers"));
  return blocks;
}

TEST_CASE("stages have equally many blocks, or those that are given") {
  using Blocks = std::vector<std::int64_t>;
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=4")) == Blocks{2, 2, 2, 2});
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=3")) == Blocks{2, 3, 3});
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=5")) == Blocks{1, 2, 2, 2, 1});
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=4,first_layers=1,last_layers=1")) ==
        Blocks{1, 3, 3, 1});
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=2,first_layers=5")) == Blocks{5, 3});
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=1")) == Blocks{8});
}

TEST_CASE("given stages are part of the layout's text") {
  const Dimensions layout = parsed("pp=4,micro=8,stages=5/1/1/1");
  CHECK(layout.at("stage_0_layers") == 5);
  CHECK(layout.at("stage_3_layers") == 1);
  CHECK(layout_text(layout) == "pp=4,micro=8,stages=5/1/1/1");
  CHECK(blocks_of_stages(spec_of("llama_small", "pp=4,stages=5/1/1/1")) ==
        std::vector<std::int64_t>{5, 1, 1, 1});
  const std::string wrong =
      "' does not list the blocks of each stage; write it like stages=5/7/7/5, with at most 64 "
      "stages of at least one block";
  for (const std::string part : {"stages=5/x", "stages=", "stages", "stages=0/8", "stages=4/"}) {
    CHECK(parse_refusal("pp=2," + part) == "layout: '" + part + wrong);
  }
  CHECK(parse_refusal("pp=2,stages=4/4,stages=4/4") == "layout: stages appears twice");
  CHECK(refusal("llama_small", "pp=2,stages=4/3") == "stages=4/3 has 7 blocks, but layers is 8");
  CHECK(refusal("llama_small", "pp=3,stages=4/4") == "stages=4/4 lists 2 stages, but there are 3");
  CHECK(refusal("llama_small", "pp=2,stages=4/4,first_layers=4") ==
        "stages=4/4 already has the blocks of all stages; leave out first_layers and last_layers");
  CHECK(refusal("llama_small", "stages=4/4") ==
        "stages needs pp: it lists the blocks of a pipeline's stages; write pp=2,stages=K/L with K "
        "+ L blocks");
}

TEST_CASE("interleave puts several stages on a rank") {
  ModelSpec spec = spec_of("llama_small", "tp=2,pp=2,micro=4,interleave=2");
  CHECK(layout_text(spec.dimensions) == "tp=2,pp=2,micro=4,interleave=2");
  CHECK(world_size(spec) == 4);
  CHECK(num_stages(spec.dimensions) == 4);
  CHECK(blocks_of_stages(spec) == std::vector<std::int64_t>{2, 2, 2, 2});
  // Ranks from 4 on are the later stages of the four ranks.
  for (spec.rank = 0; spec.rank < 8; ++spec.rank) {
    CAPTURE(spec.rank);
    CHECK(stage_blocks(spec).stage == spec.rank / 2);
    CHECK(rank_axis(spec, "tp").position == spec.rank % 2);
    CHECK(rank_axis(spec, "pp").position == spec.rank / 2 % 2);
  }
}

TEST_CASE("a schedule that a pipeline cannot have is rejected with the numbers") {
  CHECK(refusal("llama_small", "pp=2,micro=3,interleave=2") ==
        "micro 3 is not a multiple of pp 2: with interleave, each rank takes pp micro-batches "
        "through one stage after another, as in Megatron-LM");
  CHECK(refusal("llama_small", "pp=4,micro=4,interleave=3") ==
        "layers 8 cannot be cut into pp 4 x interleave 3 = 12 stages: every stage needs at least "
        "one");
  CHECK(refusal("llama_small", "pp=2,micro=4,interleave=2,zb") ==
        "interleave 2 and zb cannot be combined: ZB-H1 has one stage on each rank; leave one of "
        "them out");
  CHECK(refusal("llama_small", "fsdp=2,pp=2,micro=4,zb") ==
        "zb and fsdp 2 cannot be combined: fsdp reduces the gradients of a block's weights "
        "together, but zb computes them later than those of its norms");
  CHECK(refusal("llama_small", "interleave=2") ==
        "interleave needs pp: it puts several stages on each rank of a pipeline; write "
        "pp=2,micro=4,interleave=2");
  CHECK(refusal("llama_small", "zb") ==
        "zb needs pp: it is a schedule of a pipeline; write pp=2,micro=4,zb");
  CHECK(parse_refusal("pp=2,interleave=x") ==
        "layout: 'interleave=x' is not a number of stages; write interleave=N with N from 1 to "
        "10000");
}

TEST_CASE("the stage of a rank varies slowest") {
  ModelSpec spec = spec_of("llama_small", "tp=2,fsdp=2,pp=2");
  CHECK(world_size(spec) == 8);
  for (spec.rank = 0; spec.rank < 8; ++spec.rank) {
    CAPTURE(spec.rank);
    CHECK(stage_blocks(spec).stage == spec.rank / 4);
    CHECK(data_ranks(spec) == 2);
    CHECK(data_index(spec, 0) == spec.rank / 2 % 2);
  }
}

TEST_CASE("a pipeline that a model cannot have is rejected with the numbers") {
  CHECK(refusal("llama_small", "pp=9") ==
        "layers 8 cannot be cut into pp 9 stages: every stage needs at least one");
  CHECK(refusal("llama_small", "pp=4,first_layers=6") ==
        "layers 8 cannot be cut into pp 4 stages, first_layers 6: every stage needs at least one");
  CHECK(
      refusal("llama_small", "pp=2,first_layers=3,last_layers=4") ==
      "layers 8 cannot be cut into pp 2 stages, first_layers 3, last_layers 4: the two must add up "
      "to the layers");
  CHECK(refusal("llama_small", "first_layers=3") ==
        "first_layers and last_layers need pp: they count blocks of a pipeline's stages; write "
        "pp=4,first_layers=3");
  CHECK(refusal("llama_small", "pp=2", {{"tied", 1}}) ==
        "pp 2 needs tied 0: the embedding is in the first stage and the head in the last");
  CHECK(refusal("llama_small", "pp=2", {{"frozen_layers", 1}}) ==
        "pp 2 and frozen_layers 1 cannot be combined: every stage passes gradients on");
  CHECK(refusal("wan_small", "pp=2")
            .starts_with("model 'wan_small' cannot be sharded by pp: its "
                         "blocks all read the embedded text"));
}

TEST_CASE("a routing skew that no routing can have is rejected with the numbers") {
  const auto skewed = [](std::string_view preset, std::string_view layout, std::int64_t percent) {
    return refusal(preset, layout, {{"routing_skew_percent", percent}});
  };
  CHECK(skewed("moe_small", "ep=3", 301) ==
        "routing skew 3.01 is more than 3, the number of ranks of ep: a rank gets at most the rows "
        "of all ranks");
  // 4 ranks hold 2 of 8 experts each, and a token has 3 rows: 4 * 2 / 3
  CHECK(skewed("deepseek_small", "fsdp=4,ep=4", 267) ==
        "routing skew 2.67 is more than 2.66: the 2 experts of a rank get at most 2 of the 3 rows "
        "(top_k) of each token of the 4 ranks of ep");
  CHECK(skewed("moe_small", "fsdp=2", 130) ==
        "routing skew 1.3 needs ep: on one rank the experts always get all rows; write ep=N");
  CHECK(skewed("moe_small", "ep=3,balanced_routing", 130) ==
        "routing skew 1.3 contradicts balanced_routing; leave one of them out");
  CHECK(skewed("moe_small", "ep=3", 99) ==
        "routing_skew_percent 99 is out of range; allowed: 100 to 409600");
  CHECK(skewed("llama_small", "tp=2", 130).starts_with("model 'llama_small' has no dimension"));
}

TEST_CASE("balanced routing has no dimension of its own") {
  const Dimensions skew = {{"routing_skew_percent", 100}};
  CHECK(spec_of("moe_small", "ep=3", skew).dimensions == spec_of("moe_small", "ep=3").dimensions);
  const Dimensions most = {{"routing_skew_percent", 300}};
  CHECK(spec_of("moe_small", "ep=3", most).option("routing_skew_percent") == 300);
}

TEST_CASE("a layout that a model does not support is rejected") {
  CHECK(refusal("llama_small", "ring") ==
        "ring needs cp: it sends keys and values around cp's ranks; write cp=2,ring");
  CHECK(refusal("llama_small", "sp") ==
        "sp needs tp: it splits the tokens over tp's ranks; write tp=2,sp");
  CHECK(refusal("llama_small", "ep=2") ==
        "model 'llama_small' cannot be sharded by ep; known: tp, sp, ulysses, cp, ring, fsdp, pp, "
        "interleave, zb, first_layers, last_layers");
  for (const char* preset : {"wan_small", "ltx_small", "moe_small", "deepseek_small"}) {
    CHECK(refusal(preset, "cp=2")
              .starts_with("model '" + std::string(preset) +
                           "' cannot be sharded by cp, which only Llama has; ulysses splits the "
                           "tokens of every model; "
                           "known: tp, sp, ulysses"));
  }
  CHECK(refusal("wan_small", "ep=2").starts_with("model 'wan_small' cannot be sharded by"));
  CHECK(refusal("llama_small", "tp=2,fsdp=4096") ==
        "layout tp=2,fsdp=4096 has 8192 ranks; at most 4096 are allowed");
  CHECK(std::get<Rejected>(make_spec("llama_small", {{"tp", 0}})).message ==
        "tp 0 is out of range; allowed: 1 to 4096");
  CHECK(std::get<Rejected>(make_spec("llama_small", {{"sp", 2}})).message ==
        "sp 2 is out of range; allowed: 0 to 1");
}
