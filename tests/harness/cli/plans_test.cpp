// Tests the subcommands that do not run a model: trace, plan, describe and predict.
#include <algorithm>
#include <fstream>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/schema/validate.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/single_spaces.h"

namespace rematch::testing {
namespace {

TEST_CASE("a model and its stored trace give the same plan") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  const Outcome from_file = rematch("plan --policy save_mm --trace " + trace);
  const Outcome from_model = rematch("plan --policy save_mm " + kTinyLlama);
  CHECK(from_file.code == 0);
  CHECK(from_file.out == from_model.out);
  CHECK(rematch("validate " + trace).code == 0);
}

TEST_CASE("describe names the checkpointed layers and what they keep") {
  const Outcome outcome = rematch("describe llama_small 'nth_first(2)'");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("nth_first(2)") && Catch::Contains("keeps 1"));
}

TEST_CASE(
    "describe prints the same text for a stored plan as for its policy, including the policy's "
    "note") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  const std::string plan = scratch.file("plan.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  REQUIRE(rematch("plan --policy sac_titan --trace " + trace + " -o " + plan).code == 0);
  const Outcome from_plan = rematch("describe --plan " + plan + " --trace " + trace);
  CHECK(from_plan.out == rematch("describe sac_titan --trace " + trace).out);
  CHECK_THAT(from_plan.out, Catch::Contains("note: torchtitan also keeps copies"));
}

TEST_CASE("warnings about a plan go to stderr, and stdout contains only data") {
  const Outcome predicted = rematch("predict " + kTinyLlama + "--policy 'nth_last(2)' --json");
  CHECK(predicted.code == 0);
  CHECK_THAT(predicted.err, Catch::Contains("rematch: warning: nth_last(2) checkpoints the last"));
  CHECK(Json::parse(predicted.out).size() == 1);
  const Outcome planned = rematch("plan " + kTinyLlama + "--policy fastvideo:block_skip");
  CHECK_THAT(planned.err, Catch::Contains("cannot be changed, so the mode equals full"));
  const Outcome described = rematch("describe llama_small root --json");
  CHECK_THAT(Json::parse(described.out)["warnings"][0].get<std::string>(),
             Catch::Contains("the peak is as high as under policy none"));
  CHECK(described.err.empty());
  const Outcome in_words = rematch("describe llama_small root");
  CHECK_THAT(in_words.err,
             Catch::Contains("rematch: warning: root: the whole model is one region"));
  CHECK_THAT(in_words.out, !Catch::Contains("warning"));
}

TEST_CASE("run and predict refuse a policy file that offloads nothing") {
  const ScratchFolder scratch;
  const std::string policy = scratch.file("policy.json");
  std::ofstream(policy) << R"({"schema": "rematch.policy/1.0", "name": "mine",
                               "blocks": {"only": [0]}, "offload": ["attention_forward"]})";
  const std::string why = "mine offloads nothing of llama_small: its last region cannot offload";
  check_usage_error("run " + kTinyLlama + "--steps 1 --rounds 0 --policy " + policy, why);
  check_usage_error("predict " + kTinyLlama + "--policy " + policy, why);
}

TEST_CASE("an error that quotes a line break is still one line") {
  const ScratchFolder scratch;
  const std::string policy = scratch.file("policy.json");
  const auto write = [&](const std::string& scopes) {
    std::ofstream(policy) << R"({"schema": "rematch.policy/1.0", "name": "mine",
                                 "regions": {"scopes": )"
                          << scopes << "}}";
  };
  write(R"(["a\nb"])");
  check_usage_error("predict " + kTinyLlama + "--policy " + policy, "block matches a b; the");
  write(R"(["a\nb", "attention"])");
  const Outcome warned = rematch("predict " + kTinyLlama + "--policy " + policy);
  CHECK(warned.code == 0);
  CHECK(warned.err == "rematch: warning: mine: no scope in its blocks matches a b\n");
}

TEST_CASE("short spellings such as bf16 and 1k are accepted for dtypes and sizes") {
  const auto predicted = [](const std::string& flags) {
    const Outcome outcome = rematch("predict --model llama_small --policy none --json " + flags);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  CHECK(predicted("--dtype bf16 --tokens 1k") == predicted("--dtype bfloat16 --tokens 1024"));
  CHECK(predicted("--dtype fp32") == predicted("--dtype float32"));
}

TEST_CASE("predict prints the peak and the executed ops without running a step") {
  const Outcome outcome = rematch("predict --model llama3_8b --policy none,full,attn_only --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json json = Json::parse(outcome.out);
  REQUIRE(json.size() == 3);
  const auto peak = [&](int index) {
    return json[static_cast<std::size_t>(index)]["predicted_memory"]["peak_allocated_bytes"]
        .get<std::int64_t>();
  };
  CHECK(peak(0) > peak(1));
  CHECK(peak(0) > peak(2));
  CHECK(json[0]["predicted_ops"]["recompute"].empty());
  CHECK(json[1]["predicted_ops"]["recompute"]["aten::mm"] ==
        192);  // 6 of 7 matmuls in each of 32 layers; backward does not need the result of the 7th
}

// On a GPU, kernels also allocate temporary memory. A profile from a data sheet assumes 64 bytes
// per op.
TEST_CASE("a prediction for a GPU says whether it includes the workspace of kernels") {
  constexpr const char* kNote = "a lower bound: excludes memory";
  const std::string predict = "predict " + kTinyLlama + "--policy full ";
  CHECK_THAT(rematch(predict).out, !Catch::Contains(kNote));
  const std::string rounded = predict + "--round-512 ";
  CHECK_THAT(rematch(rounded).out, Catch::Contains(kNote));
  const Json memory = Json::parse(rematch(rounded + "--json").out)[0]["predicted_memory"];
  CHECK_THAT(memory["predicted_peak_note"].get<std::string>(), Catch::Contains(kNote));
  CHECK(memory["peak_transient_bytes"].is_null());

  const ScratchFolder folder;
  const std::string file = folder.file("profile.json");
  REQUIRE(rematch("profile " + kTinyLlama + "--device h100 -o " + file).code == 0);
  CHECK_THAT(rematch(rounded + "--profile " + file).out, Catch::Contains(kNote));
  Json profile = read_json_file(file);
  for (const char* pass : {"forward", "backward"}) {
    for (Json& type : profile[pass]["types"]) {
      type["temporary_bytes"] = std::vector<int>(type["times_ns"].size(), 64);
    }
  }
  write_json_file(file, profile);
  const Outcome measured = rematch(rounded + "--json --profile " + file);
  CAPTURE(measured.err);
  REQUIRE(measured.code == 0);
  const Json with = Json::parse(measured.out)[0]["predicted_memory"];
  CHECK(with["peak_transient_bytes"] == 64);
  CHECK_FALSE(with.contains("predicted_peak_note"));
  CHECK(with["peak_allocated_bytes"] == memory["peak_allocated_bytes"]);
  CHECK_THAT(rematch(rounded + "--profile " + file).out,
             Catch::Contains("kernels allocate at most 64 B in addition"));
  const Json timed = Json::parse(rematch(predict + "--json --profile " + file).out)[0];
  CHECK(timed["predicted_memory"]["peak_transient_bytes"].is_null());
  CHECK(timed["predicted_step_time_ns"] > 0);
  CHECK(timed["predicted_communication_ns"] == 0);
  CHECK(timed["time_source"] == profile["source"]);
  check_usage_error(predict + "--device l40s --profile " + file,
                    "has times of h100, and --device says l40s");
  check_usage_error("predict --model wan_small --policy full --round-512 --profile " + file,
                    "the profile was made for model llama_small");
  profile.erase("forward");
  write_json_file(file, profile);
  check_usage_error(rounded + "--profile " + file, file);
}

TEST_CASE("predict --round-512 predicts the same for a plan file as for its policy") {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json");
  REQUIRE(rematch("plan " + kTinyLlama + "--policy full -o " + plan).code == 0);
  const std::string predict = "predict " + kTinyLlama + "--json ";
  const Outcome from_file = rematch(predict + "--round-512 --plan " + plan);
  CAPTURE(from_file.err);
  REQUIRE(from_file.code == 0);
  const Json rounded = Json::parse(rematch(predict + "--round-512 --policy full").out)[0];
  const Json exact = Json::parse(rematch(predict + "--policy full").out)[0];
  CHECK(Json::parse(from_file.out)[0] == rounded);
  CHECK(rounded["plan_sha256"] == exact["plan_sha256"]);
  CHECK(rounded["predicted_memory"]["peak_allocated_bytes"] >
        exact["predicted_memory"]["peak_allocated_bytes"]);
}

TEST_CASE("a plan file that equals a policy or another plan file is listed once") {
  const ScratchFolder folder;
  const std::string full = folder.file("full.json");
  const std::string none = folder.file("none.json");
  REQUIRE(rematch("plan " + kTinyLlama + "--policy full -o " + full).code == 0);
  REQUIRE(rematch("plan " + kTinyLlama + "--policy none -o " + none).code == 0);
  const auto names = [](const std::string& plans) {
    std::string joined;
    const Outcome outcome = rematch("predict " + kTinyLlama + plans + " --json");
    for (const Json& point : Json::parse(outcome.out)) {
      joined += point["policy"].get<std::string>() + " ";
    }
    return joined;
  };
  CHECK(names("--policy none,full --plan " + none + " --plan " + full) == "none full ");
  CHECK(names("--plan " + full + " --plan " + none + " --plan " + full) == "full none ");
  CHECK(names("--policy 'nth_last(1)' --plan " + full) == "nth_last(1) full ");
}

TEST_CASE("a refused mode gets a row with the reason, and the other modes are predicted") {
  const std::string predict = "predict --model wan_small --policy ";
  const Outcome table = rematch(predict + "none,fastvideo:ops,titan:SelectiveAC,full");
  CHECK(table.code == 5);
  CHECK_THAT(with_single_spaces(table.out), Catch::Contains("fastvideo:ops - refused ") &&
                                                Catch::Contains("titan:SelectiveAC - refused ") &&
                                                Catch::Contains("ops_block") &&
                                                Catch::Contains("full on_demand "));
  const Outcome json = rematch(predict + "none,fastvideo:ops --json");
  for (const Json& prediction : Json::parse(json.out)) {
    CHECK(validate(prediction).value_or("valid") == "valid");
  }
  const Json steps = Json::parse(json.out);
  CHECK(steps[0]["status"] == "ok");
  CHECK(steps[0]["model"] == "wan_small");
  CHECK(steps[0]["dtype"] == "float32");
  CHECK(steps[0]["dimensions"]["tokens"] == 128);
  CHECK(steps[1]["status"] == "refused");
  check_usage_error(predict + "fastvideo:ops", "ops_block does what was intended");
  check_usage_error(predict + "none,fastvideo:opss", "did you mean 'fastvideo:ops'?");
}

// FastVideo recomputes whole regions, so its mode is predicted with schedule whole_region. Under
// on_demand the same plan has a peak that is 4 GiB lower.
TEST_CASE("predict uses the schedule of the system that a mode belongs to") {
  const std::string predict =
      "predict --model wan_1_3b --video 77x720x1280 --dtype bf16 --device l40s --reserve 0B "
      "--policy 'full,fastvideo:attn_only'";
  const Json usual = Json::parse(rematch(predict + " --json").out);
  REQUIRE(usual.size() == 2);
  CHECK(usual[0]["schedule"] == "on_demand");
  CHECK(usual[1]["schedule"] == "whole_region");
  CHECK(usual[1]["fits_device"] == false);
  const std::string both =
      with_single_spaces(rematch(predict + " --schedule both", "COLUMNS=200 ").out);
  CHECK_THAT(both, Catch::Contains("attn_only whole_region 47.4 GiB no ") &&
                       Catch::Contains("attn_only on_demand 43.2 GiB yes ") &&
                       Catch::Contains("this engine only"));
  CHECK_THAT(rematch("describe llama_small titan:full").out,
             Catch::Contains("(on_demand: this engine only)"));
}

TEST_CASE(
    "a point of a front is predicted with the settings of its search, unless flags override the "
    "settings") {
  const ScratchFolder folder;
  const std::string front = folder.file("front.json");
  REQUIRE(rematch("search --model llama_small --device h100 --world 8 --ops fused "
                  "--optimizer adamw8bit -o " +
                  front)
              .code == 0);
  const Json point = read_json_file(front)["points"][0];
  const auto predicted = [&](const std::string& flags) {
    const Outcome outcome = rematch("predict --json --plan " + front + "#0" + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out)[0];
  };
  const Json as_searched = predicted("");
  CHECK(as_searched["world"] == 8);
  CHECK(as_searched["optimizer"] == "adamw8bit");
  CHECK(as_searched["predicted_memory"]["peak_allocated_bytes"] ==
        point["predicted_peak_allocated_bytes"]);
  const Json with_sgd = predicted(" --world 8 --optimizer sgd");
  CHECK(with_sgd["world"] == 8);
  CHECK(with_sgd["optimizer"] == "sgd");
  CHECK(with_sgd["predicted_memory"]["holders_at_peak"]["optimizer"] == 0);
  CHECK_THAT(rematch("predict --plan " + front + "#0").out,
             Catch::Contains("each of 8 ranks: fsdp=8") && !Catch::Contains("at least "));
  check_usage_error("predict --plan " + front + "#0 --world 1", "with different dimensions");
  check_usage_error("predict --plan " + front + "#0 --world 4", "with different dimensions");
}

TEST_CASE("predict --world 8 predicts the same as --parallel fsdp=8") {
  const std::string predict = "predict --model llama_small --policy none,full --json ";
  const Json alone = Json::parse(rematch(predict).out);
  for (const std::string flags : {"", "--optimizer sgd ", "--round-512 "}) {
    CAPTURE(flags);
    const Outcome outcome = rematch(predict + flags + "--world 8");
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK(outcome.out == rematch(predict + flags + "--parallel fsdp=8").out);
    for (const Json& rank : Json::parse(outcome.out)) {
      CHECK(rank["world"] == 8);
      CHECK(rank["predicted_ops"]["forward"].contains(
          "_c10d_functional::all_gather_into_tensor_coalesced"));
    }
  }
  const Json rank = Json::parse(rematch(predict + "--world 8").out);
  CHECK(rank[0]["predicted_memory"]["peak_allocated_bytes"] <
        alone[0]["predicted_memory"]["peak_allocated_bytes"]);
  CHECK(rematch(predict + "--world 1").out == rematch(predict).out);
  check_usage_error("predict --model llama_small --policy full --world 0", "--world");
  check_usage_error("predict --model llama_small --policy full --world 5000", "4096");
}

// The link between h100 cards moves 450 GB per second.
TEST_CASE("predict --device prints the bytes that ranks send and a range for the step time") {
  const std::string predict =
      "predict --model llama_small --policy none,full --parallel tp=2,fsdp=2 ";
  const auto of = [&](const std::string& flags) {
    // The terminal is so wide that no sentence is wrapped.
    const Outcome outcome = rematch(predict + flags, "COLUMNS=200 ");
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return outcome.out;
  };
  const Json untimed = Json::parse(of("--json"));
  const Json timed = Json::parse(of("--json --device h100"));
  for (std::size_t index = 0; index < timed.size(); ++index) {
    const Json& step = timed[index];
    CAPTURE(step["policy"]);
    const auto number = [&](const char* key) { return step[key].get<std::int64_t>(); };
    CHECK(untimed[index]["predicted_step_time_ns"].is_null());
    CHECK(untimed[index]["predicted_collectives"] == step["predicted_collectives"]);
    CHECK(untimed[index]["predicted_sent_bytes"] == step["predicted_sent_bytes"]);
    CHECK(step["device"] == "h100");
    CHECK(step["time_source"] == "roofline");
    std::int64_t sent = 0;
    for (const auto& [phase, kinds] : step["predicted_sent_bytes"].items()) {
      for (const auto& [kind, bytes] : kinds.items()) sent += bytes.get<std::int64_t>();
    }
    // The link sends 450 bytes per nanosecond. The time of each transfer is rounded up to whole
    // nanoseconds.
    CHECK(number("predicted_communication_ns") >= sent / 450);
    CHECK(number("predicted_communication_ns") <= sent / 450 + 1000);
    CHECK(number("predicted_step_time_ns") ==
          number("predicted_compute_ns") + number("predicted_communication_ns"));
    CHECK(number("predicted_overlapped_step_time_ns") ==
          std::max(number("predicted_compute_ns"), number("predicted_communication_ns")));
  }
  const Json& again = timed[1]["predicted_collectives"]["recompute"];
  CHECK(again["all_reduce"] > 0);
  CHECK_FALSE(timed[0]["predicted_collectives"]["recompute"].contains("all_reduce"));
  CHECK_THAT(of(""), Catch::Contains("all_gather") && Catch::Contains("sent") &&
                         !Catch::Contains("if all overlaps"));
  CHECK_THAT(of("--device h100"), Catch::Contains("if all overlaps") &&
                                      Catch::Contains("the rates of h100's data sheet"));
  check_usage_error(predict + "--device h10", "did you mean");
}

// With --world and --trace, search only estimates the memory of one rank. Its front records no
// layout of the ranks, so predict needs the trace again.
TEST_CASE("predict on a front that was estimated from a stored trace needs that trace") {
  const ScratchFolder folder;
  const std::string trace = folder.file("llama.trace.json");
  const std::string front = folder.file("front.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  REQUIRE(rematch("search --device h100 --world 4 --trace " + trace + " -o " + front).code == 0);
  CHECK(read_json_file(front)["layout"].is_null());
  const Outcome outcome = rematch("predict --json --trace " + trace + " --plan " + front + "#0");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(Json::parse(outcome.out)[0]["world"] == 4);
  check_usage_error("predict --plan " + front + "#0", "one of 4 ranks; give that trace");
  check_usage_error("predict --trace " + trace + " --policy full --world 4 --device h100",
                    "counts no communication");
}

TEST_CASE("validate accepts the JSON of every command") {
  const ScratchFolder scratch;
  const std::string sweep = scratch.file("sweep.json");
  std::ofstream(sweep) << R"({"schema": "rematch.sweep/1.0", "groups": [{"model": "llama_small",
    "policies": ["none"], "fixed": {"layers": 2, "dim": 16, "heads": 2}, "axes": {"tokens": [8, 16]}}]})";
  const std::string folder = scratch.file("folder");
  REQUIRE(rematch("sweep plan " + sweep + " " + folder).code == 0);
  for (const auto& [arguments, kind] : std::initializer_list<std::pair<std::string, std::string>>{
           {"list", "list"},
           {"list --systems", "systems"},
           {"describe llama_small --layers 2 'nth_first(2)'", "description"},
           {"doctor", "doctor"},
           {"sweep status " + folder, "sweep_status"},
           {"sweep plan " + sweep + " " + scratch.file("other"), "sweep_plan"},
           {"predict " + kTinyLlama + "--policy none,full", "prediction"}}) {
    CAPTURE(arguments);
    const Outcome printed = rematch(arguments + " --json");
    CHECK(printed.code == 0);
    const std::string file = scratch.file(kind + ".json");
    std::ofstream(file) << printed.out;
    CHECK_THAT(rematch("validate " + file).out, Catch::Contains("ok, rematch." + kind + "/1."));
  }
  const std::string file = scratch.file("prediction.json");
  Json predictions = read_json_file(file);
  predictions[1]["world"] = 0;
  std::ofstream(file) << predictions;
  const Outcome refused = rematch("validate " + file);
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("[1].world"));
}

TEST_CASE("a sweep's plan contains predictions for each comparison") {
  const ScratchFolder scratch;
  const std::string sweep = scratch.file("sweep.json");
  std::ofstream(sweep) << R"({"schema": "rematch.sweep/1.0", "run": ["--steps", "2"],
    "groups": [{"model": "llama_small", "policies": ["none", "full"], "fixed": {"layers": 2, "dim": 16, "heads": 2},
                "axes": {"tokens": [8]}}]})";
  REQUIRE(rematch("sweep plan " + sweep + " " + scratch.file("one")).code == 0);
  const Json comparison = read_json_file(scratch.file("one/plan.json"))["comparisons"][0];
  CHECK(comparison["least_predicted_peak_bytes"] > 0);
  CHECK(comparison["predicted_time_ns"] > 0);
}

}  // namespace
}  // namespace rematch::testing
