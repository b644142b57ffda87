// Tests the binary on several ranks: real ranks on the CPU, or one rank in a process that simulates
// the other ranks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/trace/profile_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

// kTinyLlama, but with numbers of heads that two ranks can split equally.
const std::string kSplitLlama =
    "--model llama_small --layers 2 --dim 32 --heads 4 --kv-heads 2 --ffn 64 --tokens 16 --batch "
    "1 ";

// Models with experts that four ranks can split. Two of their blocks have experts.
const std::string kSizesOfExperts =
    "--dim 32 --heads 4 --ffn 48 --experts 4 --expert-ffn 24 --shared-ffn 16 --batch 2 --tokens "
    "16 ";
const std::string kSplitMoe = "--model moe_small --layers 4 --kv-heads 2 " + kSizesOfExperts;
const std::string kSplitDeepseek =
    "--model deepseek_small --layers 3 --latent-dim 16 --top-k 2 " + kSizesOfExperts;

// Runs the command, which must succeed, and returns its report.
Json report_of(const std::string& arguments) {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome =
      rematch("run " + arguments + " --steps 2 --rounds 0 --optimizer adamw -o " + file);
  CAPTURE(arguments, outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(rematch("validate " + file).code == 0);
  return read_json_file(file);
}

const Json& point_of(const Json& report, const std::string& policy) {
  for (const Json& point : report["points"]) {
    if (point["policy"] == policy) return point;
  }
  FAIL("no point of " + policy);
  return report;
}

std::int64_t issued(const Json& point, const char* phase, const char* kind) {
  const Json& in_phase = point["ranks"]["collectives"][phase];
  return in_phase.contains(kind) ? in_phase[kind].get<std::int64_t>() : 0;
}

void check_holds(const Json& report, int world) {
  for (const Json& point : report["points"]) {
    CAPTURE(point["policy"], point["schedule"], point["reason"], point["effect"]);
    CHECK(point["status"] == "ok");
    CHECK(point["identity"]["world"] == world);
    CHECK(point["effect"]["counts_equal_prediction"] == true);
    CHECK(point["parity"]["loss_bits_equal"] == true);
    CHECK(point["parity"]["gradient_bits_equal"] == true);
    CHECK(point["parity"]["parameter_hash_equal"] == true);
    CHECK(point["parity"]["every_parameter_has_gradient"] == true);
    CHECK(point["ranks"]["collectives"] == point["ranks"]["predicted_collectives"]);
    REQUIRE(point["ranks"]["ranks"].size() == static_cast<std::size_t>(world));
    for (const Json& rank : point["ranks"]["ranks"]) {
      CHECK(rank["peak_allocated_bytes"] == point["memory"]["predicted_peak_allocated_bytes"]);
      CHECK(rank["after_forward_bytes"] == point["memory"]["predicted_after_forward_bytes"]);
    }
  }
}

// The model has two layers and runs two steps. In forward, each layer issues an all-gather before
// attention and before feed-forward, and a reduce-scatter after each of them.
TEST_CASE(
    "under sequence parallel, policy full repeats collectives and policy attn_only does not") {
  const Json report =
      report_of(kSplitLlama + "--parallel tp=2,sp --policy none,full,attn_only --schedule both");
  CHECK(report["points"].size() == 5);
  check_holds(report, 2);
  for (const char* kind : {"all_gather", "reduce_scatter"}) {
    CAPTURE(kind);
    CHECK(issued(point_of(report, "none"), "forward", kind) >= 8);
    CHECK(issued(point_of(report, "none"), "recompute", kind) == 0);
    CHECK(issued(point_of(report, "attn_only"), "recompute", kind) == 0);
  }
  CHECK(issued(point_of(report, "full"), "recompute", "all_gather") == 8);
  CHECK(point_of(report, "none")["ranks"]["collective_bytes"]["forward"]["all_gather"] > 0);
}

// Each of two layers gathers keys and values, in each of two steps.
TEST_CASE("under context parallel, policy full gathers keys and values again") {
  const Json report = report_of(kSplitLlama + "--parallel cp=2 --schedule both --policy " +
                                "none,full,attn_only,ops_block,keep_collectives\\(full\\)");
  check_holds(report, 2);
  CHECK(issued(point_of(report, "none"), "forward", "all_gather") == 8);
  CHECK(issued(point_of(report, "none"), "recompute", "all_gather") == 0);
  CHECK(issued(point_of(report, "full"), "recompute", "all_gather") == 8);
  CHECK(issued(point_of(report, "ops_block"), "recompute", "all_gather") == 8);
  for (const char* policy : {"attn_only", "keep_collectives(full)"}) {
    CHECK(issued(point_of(report, policy), "recompute", "all_gather") == 0);
  }
}

TEST_CASE("sharded parameters are gathered again in backward, even without recompute") {
  const Json report =
      report_of(kTinyLlama + "--parallel fsdp=2 --policy none,full,no_reshard\\(none\\)");
  check_holds(report, 2);
  // one all-gather for each of two blocks in each of two steps
  CHECK(issued(point_of(report, "none"), "recompute", "all_gather") == 4);
  CHECK(issued(point_of(report, "full"), "recompute", "all_gather") == 4);
  CHECK(issued(point_of(report, "no_reshard(none)"), "recompute", "all_gather") == 0);
  const auto peak = [&](const char* policy) {
    return point_of(report, policy)["memory"]["after_forward_bytes"].get<std::int64_t>();
  };
  CHECK(peak("none") < peak("no_reshard(none)"));
}

std::int64_t recomputed_in_step(const Json& point) {
  std::int64_t ops = 0;
  for (const Json& count : point["counts"]["recompute"]) ops += count.get<std::int64_t>();
  return ops / point["counted_steps"].get<std::int64_t>();
}

// The parameters of a tiny model's two blocks are gathered in forward, and again in backward.
TEST_CASE("predict, run and search use the same plan for policy none under fsdp") {
  const ScratchFolder scratch;
  const std::string front_file = scratch.file("front.json");
  const std::string arguments = kTinyLlama + "--parallel fsdp=2 ";
  const std::string policies = "none,no_reshard\\(none\\)";
  REQUIRE(rematch("search " + arguments + "--device h100 --points 4 --baselines " + policies +
                  " -o " + front_file)
              .code == 0);
  const Json front = Json::parse(text_of(front_file));
  const Json predicted = Json::parse(
      rematch("predict " + arguments + "--json --device h100 --policy " + policies).out);
  const Json run =
      report_of(arguments + "--pretend-rank 1 --schedule on_demand --policy " + policies);
  const auto check_same = [&](const Json& searched, std::size_t index) {
    const Json& step = predicted[index];
    const Json& ran = run["points"][index];
    CAPTURE(step["policy"]);
    CHECK(searched["policy"] == step["policy"]);
    CHECK(searched["plan_sha256"] == step["plan_sha256"]);
    CHECK(searched["plan_sha256"] == ran["plan_sha256"]);
    const Json& peak = searched["predicted_peak_allocated_bytes"];
    CHECK(peak == step["predicted_memory"]["peak_allocated_bytes"]);
    CHECK(peak == ran["memory"]["peak_allocated_bytes"]);
    CHECK(searched["predicted_recomputed_ops"] == recomputed_in_step(ran));
  };
  check_same(front["none"], 0);
  check_same(front["baselines"][0], 0);
  check_same(front["nothing_recomputed"], 1);
  check_same(front["points"].back(), 1);
  check_same(front["baselines"][1], 1);
  CHECK(issued(point_of(run, "none"), "recompute", "all_gather") ==
        4);  // one all-gather for each of two blocks in each of two steps
}

TEST_CASE("a simulated rank executes the same ops and holds the same bytes as the real ranks") {
  for (const char* layout : {"tp=2,fsdp=2", "cp=2,fsdp=4"}) {
    CAPTURE(layout);
    const std::string arguments = kSplitLlama + "--parallel " + layout + " --policy full ";
    const Json real = report_of(arguments);
    const Json alone = report_of(arguments + "--pretend-rank 3");
    check_holds(real, 4);
    const Json& rank = point_of(alone, "full");
    CHECK(rank["identity"]["pretended_rank"] == 3);
    CHECK(rank["ops"] == point_of(real, "full")["ops"]);
    CHECK(rank["memory"]["peak_allocated_bytes"] ==
          point_of(real, "full")["memory"]["peak_allocated_bytes"]);
  }
}

// Every rank sends counts, rows and results of each of two blocks with experts in each of two
// steps.
TEST_CASE("ranks of fsdp that share experts run what predict and a simulated rank say") {
  struct Case {
    std::string model, layout;
    int world;
    int gathers;  // number of gathers of parameters in forward
  };
  const std::vector<Case> cases = {
      {kSplitMoe, "fsdp=2,ep=2,balanced_routing", 2, 4 + 2},
      {kSplitMoe, "fsdp=4,ep=2,balanced_routing", 4, 4 + 2 + 2},
      {kSplitDeepseek, "fsdp=4,ep=4,balanced_routing", 4, 3 + 2},
      {kSplitDeepseek, "fsdp=2,ep=2,product,balanced_routing", 4, 3 + 2}};
  for (const auto& [model, layout, world, gathers] : cases) {
    CAPTURE(model, layout);
    const std::string arguments = model + "--parallel " + layout + " --policy none,full,attn_only ";
    const Json real = report_of(arguments + "--schedule on_demand ");
    check_holds(real, world);
    const Json alone = report_of(arguments + "--pretend-rank 1 --schedule on_demand ");
    const Json predicted =
        Json::parse(rematch("predict --json --optimizer adamw " + arguments).out);
    REQUIRE(predicted.size() == 3);
    for (std::size_t policy = 0; policy < 3; ++policy) {
      const Json& point = real["points"][policy];
      const Json& step = predicted[policy];
      CAPTURE(step["policy"]);
      CHECK(step["world"] == world);
      CHECK(point["policy"] == step["policy"]);
      CHECK(point["plan_sha256"] == step["plan_sha256"]);
      CHECK(point["memory"]["peak_allocated_bytes"] ==
            step["predicted_memory"]["peak_allocated_bytes"]);
      CHECK(point["memory"]["peak_allocated_bytes"] ==
            alone["points"][policy]["memory"]["peak_allocated_bytes"]);
      CHECK(issued(point, "forward", "all_gather") == 2 * gathers);
      CHECK(issued(point, "forward", "all_to_all") == 2 * 2 * 3);
      CHECK(issued(point, "backward", "all_to_all") == 2 * 2 * 2);
      CHECK(issued(point, "backward", "reduce_scatter") == 2 * gathers);
      const bool replicates_over_ep = layout.find("product") != std::string::npos;
      CHECK(issued(point, "optimizer", "all_reduce") == (replicates_over_ep ? 2 : 0));
    }
  }
}

// The point with the lowest peak runs on a simulated rank, as the front says.
TEST_CASE("search finds plans for ranks of fsdp that share experts") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("front.json");
  const std::string arguments = kSplitMoe + "--parallel fsdp=4,ep=2,balanced_routing ";
  const Outcome searched = rematch("search " + arguments + "--device h100 -o " + file);
  CAPTURE(searched.err);
  REQUIRE(searched.code == 0);
  const Json front = read_json_file(file);
  CHECK(front["layout"] == "fsdp=4,ep=2,balanced_routing");
  CHECK(front["world"] == 4);
  const std::int64_t communicators = std::int64_t{3} << 30;  // ep, expert_fsdp and fsdp
  CHECK(front["reserve"]["communicators_bytes"] == communicators);
  const Json run = report_of("--plan " + file + "#0 --pretend-rank 2 ");
  CHECK(run["points"].back()["memory"]["peak_allocated_bytes"] ==
        front["points"][0]["predicted_peak_allocated_bytes"]);
}

std::int64_t first_peak(const Outcome& predicted) {
  CAPTURE(predicted.err);
  REQUIRE(predicted.code == 0);
  return Json::parse(predicted.out)[0]["predicted_memory"]["peak_allocated_bytes"];
}

TEST_CASE("a routing skew raises the predicted peak, and changes nothing if it is 1") {
  const std::string predict =
      "predict --model moe_small --layers 2 --experts 4 --parallel fsdp=4,ep=4 --policy none "
      "--json ";
  const Outcome balanced = rematch(predict);
  CHECK(rematch(predict + "--routing-skew 1").out == balanced.out);
  const Outcome skewed = rematch(predict + "--routing-skew 1.3");
  CHECK(first_peak(skewed) > first_peak(balanced));
  const Json step = Json::parse(skewed.out)[0];
  CHECK(step["dimensions"]["routing_skew_percent"] == 130);
  CHECK(first_peak(rematch(predict + "--routing-skew 2")) > first_peak(skewed));
  CHECK_THAT(
      rematch("predict " + kSplitMoe + "--parallel ep=4 --policy none --routing-skew 1.30").out,
      Catch::Contains("routing skew 1.3"));
}

TEST_CASE("the error for a routing skew says which skews are allowed") {
  const std::string split = kSplitMoe + "--parallel fsdp=4,ep=4 --policy none ";
  check_usage_error("predict " + split + "--routing-skew 0.9", "0.9 is below 1");
  check_usage_error("predict " + split + "--routing-skew 1.333", "at most two decimals");
  for (const char* text : {"much", "nan", "inf", "1e999"}) {
    check_usage_error("predict " + split + "--routing-skew " + text, "is not a number");
  }
  check_usage_error("predict " + split + "--routing-skew 5000", "more than 4096");
  // 4 ranks hold one of 4 experts each, and a token has 2 rows
  check_usage_error("predict " + split + "--routing-skew 3", "routing skew 3 is more than 2");
  check_usage_error("predict " + kSplitMoe + "--policy none --routing-skew 1.3", "needs ep");
  check_usage_error("predict " + kSplitLlama + "--policy none --routing-skew 1.3",
                    "--routing-skew needs a model with experts, and llama_small has none");
  check_usage_error("run " + split + "--routing-skew 1.3",
                    "routing skew 1.3 is for predictions: in a run the data decides the routing");
  check_usage_error("run " + split + "--pretend-rank 1 --routing-skew 1.3", "is for predictions");
}

TEST_CASE("predict names the layout of the ranks") {
  const Outcome outcome =
      rematch("predict " + kSplitLlama + "--parallel fsdp=4,tp=2 --policy none,full");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("each of 8 ranks: tp=2,fsdp=4"));
}

// With --world 4, the search assumes --parallel fsdp=4, but traces the model on one rank. Either
// flag must give the same front.
TEST_CASE(
    "search --world assumes fsdp, and a plan fits on the number of ranks that the error suggests") {
  const ScratchFolder scratch;
  const std::string search = "search " + kSplitLlama + "--device h100 --json ";
  const auto front_of = [&](const std::string& flags) {
    const Outcome outcome = rematch(search + flags);
    CAPTURE(flags, outcome.err);
    REQUIRE(outcome.code == 0);
    Json front = Json::parse(outcome.out);
    CHECK(front.erase("reproduce") == 1);  // this field contains the command line, which differs
    return front;
  };
  const Json front = front_of("--world 4");
  CHECK(front == front_of("--parallel fsdp=4"));
  CHECK(front["world"] == 4);
  CHECK(front["layout"] == "fsdp=4");
  CHECK(front["dimensions"]["fsdp"] == 4);
  const Json split = front_of("--parallel tp=2");
  CHECK(split["world"] == 2);
  CHECK(split["layout"] == "tp=2");
  for (const Json* searched : {&front, &split}) {
    for (const Json& point : (*searched)["points"]) {
      const auto communication = point["predicted_communication_ns"].get<std::int64_t>();
      const auto step = point["predicted_step_time_ns"].get<std::int64_t>();
      CHECK(communication > 0);
      CHECK(point["predicted_overlapped_step_time_ns"] ==
            std::max(communication, step - communication));
    }
  }
  const std::string alone =
      front_of("")["points"][0]["predicted_peak_allocated_bytes"].dump() + "B";
  const auto smaller = std::to_string(std::stoll(alone) * 3 / 4) + "B";
  const Outcome outcome = rematch("search " + kSplitLlama + "--device h100 --budget " + smaller);
  CHECK(outcome.code == 3);
  const std::size_t fits = outcome.err.find("--world ");
  REQUIRE(fits != std::string::npos);
  const std::string way = outcome.err.substr(fits, outcome.err.find(" (", fits) - fits);
  CHECK(rematch("search " + kSplitLlama + "--device h100 --budget " + smaller + " " + way).code ==
        0);
  CHECK_THAT(rematch("search " + kSplitLlama + "--parallel tp=2 --device h100 --budget 1MiB").err,
             !Catch::Contains("--world"));
}

// Measures between two real ranks. One call per size is enough, because the test only checks that
// the result can be read.
TEST_CASE(
    "predict and search use measured links between ranks, and their output names the file of the "
    "links") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("two.links.json");
  const Outcome outcome = rematch("profile --links --parallel tp=2 --steps 1 -o " + file);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("links of tp=2, measured on cpu over gloo") &&
                              Catch::Contains("tp, 2 ranks, reduce_scatter: ") &&
                              Catch::Contains("copies to the host: "));
  CHECK_THAT(rematch("validate " + file).out, Catch::Contains("ok, rematch.links/1.0"));
  const Json links = read_json_file(file);
  REQUIRE(links["groups"].size() == 1);
  CHECK(links["groups"][0]["collectives"].size() == 5);
  for (const auto& [kind, curve] : links["groups"][0]["collectives"].items()) {
    CAPTURE(kind);
    CHECK(curve.size() > 4);
    CHECK(curve.back()["bytes"] == 64 << 20);
  }

  const std::string split = kSplitLlama + "--parallel tp=2 --device h100 --json ";
  const auto said = "'" + file + "' were measured on cpu, and op times are from h100";
  const Outcome predicted = rematch("predict " + split + "--policy none,full --links " + file);
  CAPTURE(predicted.err);
  REQUIRE(predicted.code == 0);
  CHECK_THAT(predicted.err, Catch::Contains(said));
  const Json by_links = Json::parse(predicted.out);
  const Json by_sheet = Json::parse(rematch("predict " + split + "--policy none,full").out);
  for (std::size_t plan = 0; plan < 2; ++plan) {
    CHECK(by_links[plan]["links"] == file + ": tp=2, measured on cpu over gloo");
    CHECK(by_sheet[plan]["links"].is_null());
    CHECK(by_links[plan]["predicted_compute_ns"] == by_sheet[plan]["predicted_compute_ns"]);
    CHECK(by_links[plan]["predicted_communication_ns"] >
          by_sheet[plan]["predicted_communication_ns"]);
  }
  const Outcome searched = rematch("search " + split + "--links " + file);
  REQUIRE(searched.code == 0);
  CHECK(Json::parse(searched.out)["links"] == by_links[0]["links"]);
  const Outcome offloads =
      rematch("search " + kSplitLlama + "--device h100 --json --offload --links " + file);
  REQUIRE(offloads.code == 0);
  const Json front = Json::parse(offloads.out);
  CHECK_FALSE(front.contains("links"));
  CHECK(front["host_link"]["source"] == "links of " + by_links[0]["links"].get<std::string>());
}

TEST_CASE("links that cannot be measured or used are refused") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("one.links.json");
  REQUIRE(rematch("profile --links --steps 1 -o " + file).code == 0);
  check_usage_error("profile --links --parallel tp=2 --device h100", "h100 is a data sheet");
  check_usage_error("profile --links --model llama_small --parallel tp=2", "leave out --model");
  check_usage_error("profile --links --trace x.json", "leave out --trace");
  check_usage_error("predict " + kSplitLlama + "--parallel tp=2 --policy none --links " + file,
                    "use --links with --device h100");
  const std::string on_sheet = kSplitLlama + "--device h100 --links " + file + " ";
  check_usage_error("search " + on_sheet + "--offload --link-rate 5GB/s", "--link-rate");
  check_usage_error("search " + kSplitLlama + "--device cpu --links " + file,
                    "these times are measured");
  check_usage_error("search " + kSplitLlama + "--device h100 --links " + scratch.file("none.json"),
                    "none.json");
  const Outcome alone = rematch("search " + on_sheet);
  CHECK(alone.code == 2);
  CHECK_THAT(alone.err, Catch::Contains("has no collectives"));
  const Outcome other = rematch("search " + on_sheet + "--parallel tp=2");
  CHECK(other.code == 2);
  CHECK_THAT(other.err,
             Catch::Contains("collectives over tp=2, but the links were measured for one rank"));
}

TEST_CASE("the error for a layout that does not fit gives the numbers") {
  check_usage_error("run " + kTinyLlama + "--parallel tp=3 --policy full", "3");
  check_usage_error("run " + kTinyLlama + "--parallel tensor=2 --policy full", "tensor");
  check_usage_error("run " + kTinyLlama + "--parallel dp=2 --policy full",
                    "layout part 'dp' is not supported; supported are tp, ");
  check_usage_error(
      "run " + kSplitLlama + "--parallel cp=3 --policy full",
      "cp 3 cuts each sequence into 2 x cp = 6 chunks, which does not divide tokens 16");
  check_usage_error("run --model wan_small --parallel cp=2 --policy full",
                    "model 'wan_small' cannot be sharded by cp, which only Llama has");
  check_usage_error("run " + kTinyLlama + "--parallel hsdp=2 --policy full",
                    "layout part 'hsdp' is not supported; supported are tp, ");
  check_usage_error("run " + kSplitLlama + "--parallel tp=2 --pretend-rank 2 --policy full",
                    "the ranks 0 to 1");
  const std::string split = kSplitLlama + "--parallel fsdp=2 ";
  check_usage_error("predict " + split + "--policy none --world 4",
                    "--world 4 needs an unsharded model, but fsdp=2 already shards this model");
  check_usage_error("predict " + kTinyLlama + "--parallel tp=2 --policy none --world 8",
                    "over 2 ranks; leave --world out, or give --parallel tp=2,fsdp=4");
  check_usage_error("predict " + kTinyLlama + "--parallel cp=2 --policy none --world 8",
                    "over 2 ranks; leave --world out, or give --parallel cp=2,fsdp=8");
  check_usage_error("predict " + kTinyLlama + "--parallel tp=2 --policy none --world 2",
                    "leave --world out; fsdp cannot use the ranks of tp=2");
  check_usage_error("predict " + kSplitMoe + "--parallel ep=2 --policy none --world 8",
                    "over 2 ranks; leave --world out, or give --parallel ep=2,fsdp=8");
  check_usage_error("predict " + kSplitMoe + "--parallel ep=2 --policy none --world 3",
                    "leave --world out; fsdp cannot use the ranks of ep=2");
  check_usage_error("predict " + kSplitMoe + "--parallel fsdp=6,ep=4 --policy none",
                    "ep 4 does not divide fsdp 6");
  check_usage_error("search " + split + "--device h100 --world 4", "leave --world out");
  check_usage_error("search " + kTinyLlama + "--device cpu --measure 4 --world 2",
                    "fsdp=2 is a prediction for 2; leave out --measure or the layout");
  check_usage_error("profile " + split, "sharded over 2 ranks");
  check_usage_error("run " + kTinyLlama + "--pretend-rank 2 --policy full", "--parallel");
}

// Two ranks exchange keys and values once in forward. A list that keeps attention keeps the result
// of the ring, so nothing demands the exchange again. whole_region runs it again nevertheless,
// because it runs all ops of a region that are not kept.
TEST_CASE("under ring attention, policy full runs the ring again and policy attn_only does not") {
  const Json report =
      report_of(kSplitLlama + "--parallel cp=2,ring --schedule both --policy " +
                "none,full,attn_only,ops_block,sac_titan,keep_collectives\\(full\\)");
  check_holds(report, 2);
  CHECK(issued(point_of(report, "none"), "forward", "all_to_all") == 4);
  CHECK(issued(point_of(report, "none"), "backward", "all_to_all") == 12);
  CHECK(issued(point_of(report, "full"), "recompute", "all_to_all") == 4);
  for (const Json& point : report["points"]) {
    CAPTURE(point["policy"], point["schedule"]);
    const bool runs_again = point["policy"] == "full";
    const bool keeps_exchange =
        point["policy"] == "none" || point["policy"] == "keep_collectives(full)";
    const bool exchanges = runs_again || (point["schedule"] == "whole_region" && !keeps_exchange);
    const Json& again = point["counts"]["recompute"];
    CHECK(issued(point, "recompute", "all_to_all") == (exchanges ? 4 : 0));
    if (point["policy"] == "keep_collectives(full)") continue;
    CHECK(again.contains("attention_forward") == runs_again);
  }
}

const std::string kStages =
    "--model llama_small --layers 4 --dim 32 --heads 4 --kv-heads 2 --ffn 64 --tokens 16 --batch 1 "
    "--parallel pp=2,micro=4 ";

void check_stages(const Json& report) {
  for (const Json& point : report["points"]) {
    CAPTURE(point["policy"], point["reason"], point["effect"]);
    CHECK(point["status"] == "ok");
    CHECK(point["identity"]["world"] == 2);
    CHECK(point["effect"]["counts_equal_prediction"] == true);
    CHECK(point["parity"]["loss_bits_equal"] == true);
    CHECK(point["parity"]["gradient_bits_equal"] == true);
    CHECK(point["parity"]["every_parameter_has_gradient"] == true);
    CHECK(point["memory"]["peak_allocated_bytes"] ==
          point["memory"]["predicted_peak_allocated_bytes"]);
    REQUIRE(point["ranks"]["ranks"].size() == 2);
    for (const Json& rank : point["ranks"]["ranks"]) {
      CHECK(rank["peak_allocated_bytes"] == rank["predicted_peak_allocated_bytes"]);
    }
    CHECK(point["steps"].front()["loss"].get<double>() > 0);
  }
}

TEST_CASE("the stages of a pipeline execute the predicted ops with the predicted peaks") {
  check_stages(report_of(kStages + "--policy none,full,attn_only"));
}

TEST_CASE("a search gives each stage of a pipeline its own plan, which run executes") {
  const ScratchFolder scratch;
  const std::string front = scratch.file("front.json");
  const Outcome searched =
      rematch("search " + kStages + "--device h100 --points 3 --baselines full -o " + front);
  CAPTURE(searched.out, searched.err);
  REQUIRE(searched.code == 0);
  CHECK(rematch("validate " + front).code == 0);
  const Json plan = read_json_file(front)["points"][0]["plan"];
  CHECK(plan["other_shapes"].size() == 1);
  const std::string report = scratch.file("report.json");
  const Outcome ran =
      rematch("run --plan " + front +
              "#0 --policy none --steps 1 --rounds 0 --optimizer adamw -o " + report);
  CAPTURE(ran.out, ran.err);
  REQUIRE(ran.code == 0);
  check_stages(read_json_file(report));
}

TEST_CASE("a prediction shows the stages of a pipeline") {
  const Outcome outcome = rematch("predict " + kStages + "--policy none,full --device h100 --json");
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  const Json predictions = parse_json(outcome.out, "predictions");
  for (const Json& step : predictions) {
    REQUIRE(step["stages"].size() == 2);
    CHECK(step["layout"] == "pp=2,micro=4");
    CHECK(step["stages"][0]["in_flight"] == 2);
    CHECK(step["stages"][1]["in_flight"] == 1);
    CHECK(step["bubble_ratio"].get<double>() > 0);
  }
  const Outcome table = rematch("predict " + kStages + "--policy none,full --device h100");
  CHECK(table.out.find("in flight") != std::string::npos);
}

// Four blocks and a micro-batch count that both schedules can have.
std::string stages_with(const std::string& schedule) {
  std::string flags = kStages;
  const std::string layout = "pp=2,micro=4";
  return flags.replace(flags.find(layout), layout.size(), layout + "," + schedule);
}

TEST_CASE("a prediction shows the schedule of a pipeline, and what each of its ranks holds") {
  for (const std::string schedule : {"interleave=2", "zb"}) {
    CAPTURE(schedule);
    const bool is_zero_bubble = schedule == "zb";
    const std::string command =
        "predict " + stages_with(schedule) + "--policy none,full --device h100";
    const ScratchFolder scratch;
    const Outcome outcome = rematch(command + " --json");
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.code == 0);
    for (const Json& step : parse_json(outcome.out, "predictions")) {
      CHECK(step["layout"] == "pp=2,micro=4," + schedule);
      CHECK(step["pipeline_schedule"] == (is_zero_bubble ? "ZB-H1" : "interleaved 1F1B"));
      REQUIRE(step["stages"].size() == (is_zero_bubble ? 2 : 4));
      std::int64_t highest = 0;
      for (std::size_t stage = 0; stage < step["stages"].size(); ++stage) {
        const Json& each = step["stages"][stage];
        CHECK(each["rank"] == stage % 2);
        CHECK(each.contains("weights_ns") == is_zero_bubble);
        highest =
            std::max(highest, each["predicted_memory"]["peak_allocated_bytes"].get<std::int64_t>());
      }
      CHECK(step["predicted_memory"]["peak_allocated_bytes"] == highest);
      CHECK(step["bubble_ratio"].get<double>() > 0);
    }
    const Outcome table = rematch(command);
    CHECK(table.out.find(is_zero_bubble ? "schedule ZB-H1" : "schedule interleaved 1F1B") !=
          std::string::npos);
    CHECK(table.out.find(is_zero_bubble ? "weights" : "rank") != std::string::npos);
  }
}

TEST_CASE("a search knows all schedules of a pipeline") {
  for (const std::string schedule : {"interleave=2", "zb"}) {
    CAPTURE(schedule);
    const ScratchFolder scratch;
    const std::string front = scratch.file("front.json");
    const Outcome searched = rematch("search " + stages_with(schedule) +
                                     "--device h100 --points 4 --baselines none,full -o " + front);
    CAPTURE(searched.out, searched.err);
    REQUIRE(searched.code == 0);
    CHECK(rematch("validate " + front).code == 0);
    const Json json = read_json_file(front);
    CHECK(json["layout"] == "pp=2,micro=4," + schedule);
    const Outcome predicted = rematch("predict --plan " + front + "#0 --device h100 --json");
    CAPTURE(predicted.out, predicted.err);
    REQUIRE(predicted.code == 0);
    const Json step = parse_json(predicted.out, "predictions")[0];
    const Json& point = json["points"][0];
    CHECK(step["predicted_memory"]["peak_allocated_bytes"] ==
          point["predicted_peak_allocated_bytes"]);
    CHECK(step["predicted_step_time_ns"] == point["predicted_step_time_ns"]);
  }
}

TEST_CASE("no named policy beats the front of a pipeline, which also has a simple plan") {
  const Outcome outcome =
      rematch("search --model llama_small --parallel pp=2 --device h100 --simple --json");
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  const Json front = parse_json(outcome.out, "front");
  CHECK(front["baselines"].size() > 4);
  for (const Json& baseline : front["baselines"]) {
    CAPTURE(baseline["plan"]["policy"]);
    CHECK(baseline["is_matched"] == true);
  }
  const Json& simple = front["simple"];
  CHECK(simple["plan"]["other_shapes"].size() == 1);
  CHECK(simple["saves"].get<std::string>().starts_with("stage 0: "));
  const Outcome interleaved =
      rematch("search " + stages_with("interleave=2") + "--device h100 --simple");
  CHECK(interleaved.code == 2);
  CHECK(interleaved.err.find("--simple finds a rule for each rank's trace") != std::string::npos);
}

TEST_CASE("search --maximize tries batches of a pipeline") {
  const std::string search =
      "search --model llama_small --parallel pp=2,micro=4 --device h100 "
      "--budget 22MiB --json ";
  const Outcome outcome = rematch(search + "--maximize tokens_per_second --batch 1:4");
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  const Json loads = parse_json(outcome.out, "loads");
  CHECK(loads["world"] == 2);
  REQUIRE_FALSE(loads["tried"].empty());
  for (const Json& plan : loads["tried"]) {
    const Outcome single = rematch(search + "--batch " + plan["load"].dump());
    CAPTURE(plan.dump(), single.err);
    const bool fits = !plan["predicted_peak_allocated_bytes"].is_null();
    CHECK(single.code == (fits ? 0 : 3));
    if (!fits) continue;
    const Json answer = parse_json(single.out, "front")["answer"];
    CHECK(answer["predicted_step_time_ns"] <= plan["predicted_step_time_ns"]);
    CHECK(plan["predicted_peak_allocated_bytes"] <= 22 * 1024 * 1024);
  }
}

TEST_CASE("run has the schedule 1F1B only, and says so in one line") {
  for (const std::string schedule : {"interleave=2", "zb"}) {
    CAPTURE(schedule);
    const Outcome outcome = rematch("run " + stages_with(schedule) + "--policy none,full");
    CAPTURE(outcome.out, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(outcome.err.find("run has the schedule 1F1B only; leave out") != std::string::npos);
  }
}

// A profile of the whole model gives each op of a stage its time.
TEST_CASE("a profile of the whole model times the stages of a pipeline") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("whole.profile.json");
  std::string whole = kStages;
  whole.erase(whole.find("--parallel"));
  const Outcome profiled =
      rematch("profile " + whole + "--accumulate 4 --device cpu --steps 2 -o " + profile);
  CAPTURE(profiled.out, profiled.err);
  REQUIRE(profiled.code == 0);
  const Profile times = profile_from_json(read_json_file(profile));
  for (const std::string schedule : {"", "interleave=2", "zb"}) {
    CAPTURE(schedule);
    const std::string stages = schedule.empty() ? kStages : stages_with(schedule);
    const Outcome outcome =
        rematch("predict " + stages + "--policy none --json --profile " + profile);
    CAPTURE(outcome.out, outcome.err);
    REQUIRE(outcome.code == 0);
    const Json step = parse_json(outcome.out, "predictions")[0];
    std::int64_t forward = 0;
    for (const Json& stage : step["stages"]) forward += stage["forward_ns"].get<std::int64_t>();
    // Each stage rounds its time of a micro-batch down, and its share of the time between ops.
    CHECK(std::abs(4 * forward - times.forward_time().count()) <= 8 * 4);
    const Outcome searched =
        rematch("search " + stages + "--points 3 --baselines none --profile " + profile);
    CAPTURE(searched.out, searched.err);
    CHECK(searched.code == 0);
  }
  const Outcome other =
      rematch("predict " + kStages + "--tokens 32 --policy none --profile " + profile);
  CHECK(other.code == 2);
}

// One form of the layouts that people run.
struct LayoutForm {
  const char* name;
  std::string model;
  std::vector<const char*> layouts;  // run always
  std::vector<const char*> larger;   // run by scripts/test --deep
};

const std::vector<LayoutForm>& layout_forms() {
  static const std::string llama =
      "--model llama_small --layers 4 --dim 32 --heads 4 --kv-heads 2 --ffn 64 --tokens 32 "
      "--batch 1 ";
  static const std::vector<LayoutForm> forms = {
      {"accumulation",
       llama,
       {"--parallel fsdp=2 --accumulate 3"},
       {"--parallel fsdp=4 --accumulate 4", "--parallel tp=2,sp,fsdp=2 --accumulate 3"}},
      {"experts inside data parallel",
       kSplitMoe,
       {"--parallel fsdp=2,ep=2,balanced_routing"},
       {"--parallel fsdp=4,ep=2,balanced_routing", "--parallel fsdp=4,ep=4,balanced_routing",
        "--parallel fsdp=2,ep=2,product,balanced_routing"}},
      {"context parallel",
       llama,
       {"--parallel cp=2", "--parallel cp=2,ring"},
       {"--parallel cp=4", "--parallel cp=4,ring", "--parallel cp=2,fsdp=4",
        "--parallel tp=2,sp,cp=2"}},
      {"pipeline",
       llama,
       {"--parallel pp=2,micro=3"},
       {"--parallel pp=4,micro=8", "--parallel pp=2,micro=4,stages=1/3",
        "--parallel tp=2,sp,pp=2,micro=3", "--parallel fsdp=2,pp=2,micro=3",
        "--parallel cp=2,ring,pp=2,micro=3"}}};
  return forms;
}

TEST_CASE("the forms of layouts that people run hold their prediction on real ranks") {
  for (const LayoutForm& form : layout_forms()) {
    std::vector<const char*> layouts = form.layouts;
    if (is_deep()) layouts.insert(layouts.end(), form.larger.begin(), form.larger.end());
    for (const char* layout : layouts) {
      CAPTURE(form.name, layout);
      const Json report =
          report_of(std::string(form.model) + layout + " --policy none,full,attn_only");
      for (const Json& point : report["points"]) {
        CAPTURE(point["policy"], point["reason"]);
        CHECK(point["status"] == "ok");
        CHECK(point["effect"]["counts_equal_prediction"] == true);
        CHECK(point["parity"]["loss_bits_equal"] == true);
        CHECK(point["parity"]["gradient_bits_equal"] == true);
        CHECK(point["memory"]["peak_allocated_bytes"] ==
              point["memory"]["predicted_peak_allocated_bytes"]);
      }
    }
  }
}

TEST_CASE("a sweep predicts the stages of a pipeline, and rejects schedules that run lacks") {
  const ScratchFolder scratch;
  const auto planned = [&](const std::string& layout, const std::string& folder) {
    const std::string file = scratch.file("sweep.json");
    write_file_atomically(file,
                          R"({"schema": "rematch.sweep/1.0", "run": ["--parallel", ")" + layout +
                              R"(", "--optimizer", "adamw"], )" +
                              R"("groups": [{"model": "llama_small", "policies": ["none"]}]})");
    return rematch("sweep plan " + file + " " + scratch.file(folder) + " --card h100");
  };
  const Outcome plan = planned("pp=2,micro=4", "stages");
  CAPTURE(plan.out, plan.err);
  REQUIRE(plan.code == 0);
  const Json found = read_json_file(scratch.file("stages") + "/plan.json")["comparisons"][0];
  const Outcome predicted =
      rematch("predict --model llama_small --parallel pp=2,micro=4 --policy none --json");
  CHECK(found["most_predicted_peak_bytes"] ==
        parse_json(predicted.out, "predictions")[0]["predicted_memory"]["peak_allocated_bytes"]);
  const Outcome refused = planned("pp=2,micro=4,zb", "zb");
  CAPTURE(refused.out, refused.err);
  CHECK(refused.code == 2);
  CHECK(refused.err.find("run has the schedule 1F1B only") != std::string::npos);
}

TEST_CASE("commands that need one trace reject a pipeline with one line") {
  const Outcome outcome = rematch("describe llama_small full --parallel pp=2");
  CHECK(outcome.code == 2);
  const Outcome pretended =
      rematch("run " + kStages + "--policy none,full --pretend-rank 1 --rounds 0");
  CAPTURE(pretended.err);
  CHECK(pretended.code == 2);
  CHECK(pretended.err.find("a stage of a pipeline needs its neighbours") != std::string::npos);
  for (const std::string flag :
       {"--for torch", "--free 1GiB", "--offload", "--activation-budget 1GiB"}) {
    CAPTURE(flag);
    const Outcome refused =
        rematch("search --model llama_small --parallel pp=2 --device h100 " + flag);
    CHECK(refused.code == 2);
    CHECK(refused.err.find(flag.substr(0, flag.find(' ')) +
                           " needs one trace, but each stage of a pipeline has its own") !=
          std::string::npos);
  }
  const Outcome moved = rematch("predict " + kStages + "--policy 'offload_inputs(full)'");
  CAPTURE(moved.err);
  CHECK(moved.code == 2);
  CHECK(moved.err.find("moves values to the host, which the stages of a pipeline cannot do") !=
        std::string::npos);
}

}  // namespace
}  // namespace rematch::testing
