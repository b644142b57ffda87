// Tests `rematch search` on stored traces. The command needs no LibTorch in any build.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/search/front/front_json.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/render/tables/front_table.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/ids.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/single_spaces.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

std::string stored(const ScratchFolder& scratch, const Trace& trace, const std::string& name) {
  const std::string file = scratch.file(name);
  write_json_file(file, trace_to_json(trace));
  return file;
}

TEST_CASE("a front searched from stored files is complete, and nothing is measured") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 4, .tokens = 64});
  const std::string file = stored(scratch, trace, "trace.json");
  const std::string profile = scratch.file("profile.json");
  write_json_file(profile, profile_to_json(made_up_profile(trace, 1), trace));
  const std::string front = scratch.file("front.json");
  const Outcome outcome = rematch("search --trace " + file + " --profile " + profile +
                                  " --fail-behind-baselines -o " + front);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  const FrontRecord record = front_from_json(read_json_file(front));
  CHECK(record.front.is_complete);
  CHECK_FALSE(record.front.measurement);
  CHECK(rematch("validate " + front).code == 0);
}

TEST_CASE("unusable profiles and traces are refused with a one-line error") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 2});
  const std::string file = stored(scratch, trace, "trace.json");
  const std::string search = "search --trace " + file;

  const Trace longer = toy_llama({.layers = 2, .tokens = 16});
  const std::string other = scratch.file("other.json");
  write_json_file(other, profile_to_json(made_up_profile(longer, 1), longer));
  check_usage_error(search + " --profile " + other, "make the profile again");

  Trace dynamic = trace;
  dynamic.ops[2_op].name = "aten::nonzero";
  check_usage_error("search --device h100 --trace " + stored(scratch, dynamic, "dynamic.json"),
                    "op 2 (aten::nonzero): the shape of its result depends on data");

  Trace flat = trace;
  flat.blocks.clear();
  check_usage_error("search --device h100 --trace " + stored(scratch, flat, "flat.json"),
                    "has no blocks, so there is nothing to choose");
}

TEST_CASE("PyTorch's planners are baselines by default or by name; wrong budgets are refused") {
  const ScratchFolder scratch;
  const std::string file = stored(scratch, toy_llama({.layers = 4, .tokens = 64}), "trace.json");
  const std::string search = "search --json --device h100 --trace " + file;
  const auto names_of = [&](const std::string& flags) {
    const Outcome outcome = rematch(search + flags);
    REQUIRE(outcome.code == 0);
    std::vector<std::string> names;
    const Json front = Json::parse(outcome.out);
    for (const Json& baseline : front["baselines"]) {
      names.push_back(baseline["policy"].get<std::string>());
      CHECK(baseline["is_matched"] == true);
    }
    return names;
  };
  CHECK(names_of(" --baselines 'pytorch_ilp(0.5), full,sac_ilp(1)'") ==
        std::vector<std::string>{"pytorch_ilp(0.5)", "full", "sac_ilp(1)"});
  const std::vector<std::string> names = names_of("");
  CHECK(std::find(names.begin(), names.end(), "pytorch_dp(0.4)") != names.end());
  check_usage_error(search + " --baselines 'full,pytorch_dp(2)'",
                    "a memory budget must be a fraction from 0 to 1");
  check_usage_error(search + " --baselines pytorch_dp",
                    "pytorch_dp needs a budget from 0 to 1: write pytorch_dp(0.5)");
  check_usage_error(search + " --baselines 'full,fulll'", "did you mean");

  const Outcome partly = rematch(search + " --baselines 'full,recompute_modules([moe])'");
  CHECK(partly.code == 5);
  CHECK_THAT(partly.err, Catch::Contains("baseline recompute_modules([moe]) is left out: "));
  const Json front = Json::parse(partly.out);
  REQUIRE(front["baselines"].size() == 1);
  CHECK(front["baselines"][0]["policy"] == "full");
}

TEST_CASE("with more ranks each rank holds less, and the front states the number of ranks") {
  const ScratchFolder scratch;
  const std::string file = stored(scratch, toy_llama({.layers = 6, .tokens = 64}), "trace.json");
  const auto lowest = [&](const std::string& flags) {
    const Outcome outcome = rematch("search --json --device h100 --trace " + file + flags);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out);
  };
  const Json alone = lowest("");
  const Json shared = lowest(" --world 8");
  CHECK(alone.at("world") == 1);
  CHECK(shared.at("world") == 8);
  CHECK(shared["points"][0]["predicted_peak_allocated_bytes"] <
        alone["points"][0]["predicted_peak_allocated_bytes"]);
  // The estimate for several ranks has no communication times, so they must be null, not 0.
  CHECK(alone["points"][0]["predicted_communication_ns"] == 0);
  CHECK(alone["points"][0]["predicted_overlapped_step_time_ns"] ==
        alone["points"][0]["predicted_step_time_ns"]);
  CHECK(shared["points"][0]["predicted_communication_ns"].is_null());
  CHECK(shared["points"][0]["predicted_overlapped_step_time_ns"].is_null());
  // Plans for one of several ranks name the trace of the whole model.
  CHECK(shared["points"][0]["plan"]["trace_sha256"] == alone.at("trace_sha256"));
}

TEST_CASE("the error for a plan of another model names the difference") {
  const ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 4, .tokens = 64});
  trace.model = "llama_small";
  const std::string file = stored(scratch, trace, "trace.json");
  const std::string front = scratch.file("front.json");
  REQUIRE(rematch("search --device h100 --trace " + file + " -o " + front).code == 0);
  const std::string plan = front + "#0";
  CHECK(rematch("describe --plan " + plan + " --trace " + file).code == 0);
  check_usage_error("describe llama_small --dtype bfloat16 --plan " + plan,
                    "the plan says dtype " + trace.dtype + ", given is bfloat16");
  check_usage_error("describe wan_small --plan " + plan,
                    "the plan says model llama_small, given is wan_small");
  for (const std::string arguments : {"llama_small ", ""}) {
    check_usage_error("describe " + arguments + plan, "use --plan " + plan);
  }
  Trace longer = toy_llama({.layers = 5, .tokens = 64});
  longer.model = "llama_small";
  longer.dimensions["layers"] = trace.dimensions["layers"] + 1;
  check_usage_error("describe --plan " + plan + " --trace " + stored(scratch, longer, "5.json"),
                    "the plan says layers " + std::to_string(trace.dimensions["layers"]));
}

TEST_CASE(
    "the error for a file of another kind names the file, and an empty baseline list is refused") {
  const ScratchFolder scratch;
  const std::string file = stored(scratch, toy_llama({.layers = 2}), "trace.json");
  const std::string other = scratch.file("other.json");
  write_json_file(other, Json{{"schema", "rematch.report/1.0"}});
  const std::string search = "search --trace " + file;
  for (const std::string& arguments :
       {"describe full --trace " + other, "describe full --plan " + other,
        "search --device h100 --trace " + other, search + " --profile " + other}) {
    const Outcome outcome = rematch(arguments);
    CAPTURE(arguments, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(is_one_clear_line(outcome));
    CHECK_THAT(outcome.err, Catch::Contains("other.json"));
  }
  check_usage_error(search + " --device h100 --baselines ''", "the list is empty");
}

TEST_CASE("a slowdown of zero is accepted") {
  const ScratchFolder scratch;
  const std::string file = stored(scratch, toy_llama({.layers = 4, .tokens = 64}), "trace.json");
  const std::string search = "search --json --device h100 --trace " + file + " --max-slowdown ";
  const Outcome outcome = rematch(search + "0%");
  REQUIRE(outcome.code == 0);
  const Json front = Json::parse(outcome.out);
  CHECK(front["answer"]["predicted_step_time_ns"] ==
        front["nothing_recomputed"]["predicted_step_time_ns"]);
  check_usage_error(search + "-1%", "is not a percentage from 0% to 100%");
}

// toy_llama has 12,432 float32 parameters in 4 x 9 + 3 tensors: each of 4 blocks has two norms and
// seven weights. AdamW adds two moments to each parameter, and a step count of 4 bytes to each
// tensor.
TEST_CASE(
    "--free states how much memory is available in addition to the bytes that every plan holds") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama();
  const std::string search =
      "search --json --device h100 --trace " + stored(scratch, trace, "trace.json");
  const auto budget = [&](const std::string& flags) {
    const Outcome outcome = rematch(search + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out).at("budget_bytes").get<std::int64_t>();
  };
  constexpr std::int64_t kMiB = 1 << 20;
  const std::int64_t parameters = 12'432 * 4;
  REQUIRE(trace.parameter_bytes == Bytes{parameters});
  const std::int64_t held = parameters + trace.constant_bytes.count;
  const std::int64_t adamw = 2 * parameters + 39 * 4;
  CHECK(budget(" --budget 1MiB") == kMiB);
  CHECK(budget(" --free 1MiB") == held + adamw + kMiB);
  CHECK(budget(" --activation-budget 1MiB") == held + adamw + trace.gradient_bytes.count + kMiB);
  CHECK(budget(" --free 1MiB --optimizer sgd") == held + kMiB);
  CHECK(budget(" --free 1MiB --optimizer 'sgd(momentum=0.9)'") == held + parameters + kMiB);

  const std::string front = scratch.file("front.json");
  REQUIRE(rematch(search + " --optimizer 'adamw(state=bfloat16)' -o " + front).code == 0);
  CHECK(front_from_json(read_json_file(front)).optimizer == OptimizerKind::kAdamWBfloat16);
  CHECK(rematch("validate " + front).code == 0);
}

TEST_CASE("two budgets, a budget without a unit and an unknown optimizer are refused") {
  const ScratchFolder scratch;
  const std::string search =
      "search --device h100 --trace " + stored(scratch, toy_llama(), "trace.json");
  check_usage_error(search + " --free 16", "--free '16' has no unit; write 16GiB");
  check_usage_error(search + " --free -1GiB", "'-1GiB' is not a size");
  check_usage_error(search + " --activation-budget 1GiB --budget 2GiB",
                    "give --budget or --activation-budget, not both");
  check_usage_error(search + " --free 1GiB --max-slowdown 5%", "give only one of the two flags");
  check_usage_error(search + " --maximize tokens_per_second --batch 1:2 --free 1GiB",
                    "--maximize takes --budget, not --free");
  check_usage_error(search + " --optimizer adamw8bi", "did you mean 'adamw8bit'");
}

TEST_CASE("search --doctor takes the device's memory from the output of doctor") {
  const ScratchFolder scratch;
  const std::string search =
      "search --json --device h100 --trace " + stored(scratch, toy_llama(), "trace.json");
  const std::string file = scratch.file("doctor.json");
  const auto found = [&](const Json& environment) {
    write_json_file(file, Json{{"engine", "ok"}, {"environment", environment}});
  };
  CHECK(Json::parse(rematch(search).out).at("device_memory_bytes") == 84'943'715'696);
  found({{"device", "NVIDIA H100 80GB HBM3"}, {"device_memory_bytes", 84'929'347'584}});
  CHECK(Json::parse(rematch(search + " --doctor " + file).out).at("device_memory_bytes") ==
        84'929'347'584);
  found({{"device", "NVIDIA L40S"}, {"device_memory_bytes", 47'000'000'000}});
  check_usage_error(search + " --doctor " + file, "describes 'NVIDIA L40S', but --device is h100");
  found({{"device", nullptr}, {"device_memory_bytes", nullptr}});
  check_usage_error(search + " --doctor " + file, "contains no GPU memory size");
}

// Two ranks each hold half of the parameters and half of their optimizer state.
TEST_CASE("a search that finds no fitting plan prints one line about it and exits with code 3") {
  const ScratchFolder scratch;
  const std::string search =
      "search --device h100 --trace " + stored(scratch, toy_llama(), "trace.json");
  const Outcome all = rematch(search + " --json --points 2");
  REQUIRE(all.code == 0);
  const Json front = Json::parse(all.out);
  const auto peak_of = [](const Json& point) {
    return point.at("predicted_peak_allocated_bytes").get<std::int64_t>();
  };
  std::int64_t lowest = peak_of(front.at("points")[0]);
  for (const Json& baseline : front.at("baselines")) lowest = std::min(lowest, peak_of(baseline));
  const Outcome none = rematch(search + " --budget " + std::to_string(lowest - 1) + "B");
  CAPTURE(none.err);
  CHECK(none.code == 3);
  CHECK(none.out.empty());
  CHECK(none.err.find('\n') == none.err.size() - 1);
  CHECK_THAT(none.err, Catch::Contains("no plan fits") && Catch::Contains("the lowest peak is") &&
                           Catch::Contains("what fits: --world 2 ("));
  CHECK_THAT(none.err, !Catch::Contains("the lowest peak is " + format_bytes({lowest - 1}) + ";"));
  // With the suggested flag, a plan must fit.
  CHECK(rematch(search + " --world 2 --budget " + std::to_string(lowest - 1) + "B").code == 0);
  const Outcome nothing = rematch(search + " --budget 1B");
  CHECK(nothing.code == 3);
  CHECK_THAT(nothing.err, Catch::Contains("do not make it fit"));
}

TEST_CASE(
    "a search for torch names the layers that it does not checkpoint because they run twice") {
  const ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 4, .tokens = 64});
  const auto search = [&](const std::string& name, const std::string& flags) {
    return rematch("search --device h100 --points 2 --trace " + stored(scratch, trace, name) +
                   flags);
  };
  CHECK_THAT(search("once.json", " --for torch").err, !Catch::Contains("several times"));
  const std::string first = trace.scopes[trace.blocks[0].scope].path;
  const std::string second = trace.scopes[trace.blocks[2].scope].path;
  for (TracedScope& scope : trace.scopes) {
    if (scope.path.starts_with(second)) scope.path.replace(0, second.size(), first);
  }
  trace.blocks[2].index = trace.blocks[0].index;
  const Outcome found = search("twice.json", " --for torch");
  CAPTURE(found.err);
  CHECK(found.code == 0);
  CHECK_THAT(found.err,
             Catch::Contains("no block that runs several times in a step: " + first + ";"));
  CHECK_THAT(search("twice.json", "").err, !Catch::Contains("several times"));
}

TEST_CASE(
    "a search prints its front and the best simple plan; with --simple it prints only that plan") {
  const ScratchFolder scratch;
  const std::string front = scratch.file("front.json");
  const std::string trace =
      " --trace " + stored(scratch, toy_llama({.layers = 6, .tokens = 64}), "trace.json");
  const std::string search = "search --device h100 -o " + front + trace;
  const Outcome beside = rematch(search);
  REQUIRE(beside.code == 0);
  CHECK_THAT(beside.out, Catch::Contains("\nsimple ") && Catch::Contains("Schedule: on_demand: "));
  const FrontRecord record = front_from_json(read_json_file(front));
  REQUIRE(record.simple.has_value());
  CHECK(record.simple->more_peak >= Bytes{});
  CHECK(rematch("validate " + front).code == 0);
  CHECK(rematch("describe --plan " + front + "#simple" + trace).code == 0);
  const Outcome alone = rematch(search + " --simple --max-slowdown 10%");
  CAPTURE(alone.out);
  REQUIRE(alone.code == 0);
  CHECK_THAT(alone.out, Catch::Contains("Plan: layers ") && Catch::Contains("front.json#simple") &&
                            Catch::Contains("whole_region") && !Catch::Contains("baseline"));
}

TEST_CASE("the output of search --for TRAINER ends with lines for the trainer's configuration") {
  const ScratchFolder scratch;
  const std::string search = "search --device h100 --trace " +
                             stored(scratch, toy_llama({.layers = 6, .tokens = 64}), "trace.json");
  const Json modes = Json::parse(rematch(search + " --for torchtune --json").out);
  std::int64_t full = 0;
  std::int64_t highest = 0;
  for (const Json& mode : modes.at("modes")) {
    const std::int64_t peak = mode.at("predicted_peak_allocated_bytes");
    if (mode.at("mode") == "torchtune(enable_activation_checkpointing=true)") full = peak;
    highest = std::max(highest, peak);
  }
  REQUIRE(highest > full);
  // The 7 modes: five values of ac_option, full, and full with offloaded inputs. ac_option 1 is not
  // listed, because it equals full.
  CHECK(modes.at("modes").size() == 7);
  CHECK(modes.at("schedule") == "whole_region");
  const auto ends = [&](std::int64_t budget, const std::string& lines) {
    const Outcome outcome =
        rematch(search + " --for torchtune --budget " + std::to_string(budget) + "B");
    CAPTURE(outcome.err, outcome.out);
    CHECK(outcome.code == 0);
    CHECK_THAT(outcome.out, Catch::EndsWith("\n\n" + lines + "\n") &&
                                Catch::Contains("on_demand: this engine only"));
  };
  // ac_option 4, 5 and 6 each checkpoint only one layer. The peak is lowest with 4.
  ends(highest, "enable_activation_checkpointing: false\nac_mode: selective\nac_option: 4");
  const Outcome nothing =
      rematch(search + " --for torchtune --budget " + std::to_string(full / 2) + "B");
  CHECK(nothing.code == 3);
  CHECK_THAT(rematch(search + " --for torchtune").out,
             Catch::Contains("Without checkpointing the step fits too"));
  CHECK_THAT(rematch(search + " --for torchtune --budget " + std::to_string(full) + "B").out,
             !Catch::Contains("Without checkpointing"));
  // The table lists modes of all versions of torchtitan, each with its versions. The best mode is
  // last.
  const Outcome titan = rematch(search + " --for torchtitan");
  CHECK(titan.code == 0);
  CHECK_THAT(titan.err, Catch::Contains("rematch: the fastest of ") &&
                            Catch::Contains(" modes of torchtitan that fits ") &&
                            Catch::Contains("; comparing it with the exact front\n"));
  // With -o the command prints the same text and writes the whole front to the file.
  const std::string file = scratch.file("front.json");
  CHECK(rematch(search + " --for torchtitan -o " + file).out == titan.out);
  const Json front = read_json_file(file);
  CHECK(front["baselines"].size() > 10);
  CHECK(front["points"].size() > 2);
  CHECK_THAT(titan.out, Catch::Contains("(until June 2026): peak ") &&
                            Catch::Contains("(since July 2026, based on torch_remat): peak "));
  for (const char* trainer :
       {"fastvideo", "diffusers", "modalities", "transformers", "axolotl", "megatron", "remat"}) {
    CAPTURE(trainer);
    CHECK(rematch(search + " --for " + trainer).code == 0);
  }
  check_usage_error(search + " --for torchtun", "did you mean 'torchtune'?");
}

// Searches random models and budgets with --hull, which is faster but finds fewer plans.
TEST_CASE("no row of a search's table is better than the point in the headline") {
  const ScratchFolder scratch;
  int num_leads = 0;
  for (int seed = 0; seed < 50; ++seed) {
    const std::string file = scratch.file("front.json");
    const std::string trace = stored(
        scratch, toy_llama({.layers = 2 + seed % 7, .tokens = 16 << (seed % 4)}), "trace.json");
    const std::string search =
        "search --hull --points 3 --device h100 --trace " + trace + " --overwrite -o " + file;
    REQUIRE(rematch(search).code == 0);
    const std::vector<FrontPoint> points = front_from_json(read_json_file(file)).front.points;
    const std::int64_t lowest = points.front().figures.peak.count;
    const std::int64_t budget =
        lowest + (points.back().figures.peak.count - lowest) * (seed * 37 % 100) / 100;
    REQUIRE(rematch(search + " --budget " + std::to_string(budget) + "B").code == 0);
    const FrontRecord record = front_from_json(read_json_file(file));
    const std::optional<Lead> lead = lead_of(record);
    REQUIRE(lead);
    ++num_leads;
    const auto is_beaten_by = [&](const FrontPoint& row) {
      return row.figures.peak <= lead->point.figures.peak &&
             row.step_time <= lead->point.step_time &&
             (row.figures.peak < lead->point.figures.peak || row.step_time < lead->point.step_time);
    };
    CAPTURE(seed, budget, lead->name);
    for (const FrontPoint& point : record.front.points) CHECK_FALSE(is_beaten_by(point));
    for (const Baseline& baseline : record.front.baselines) {
      CHECK_FALSE(is_beaten_by(baseline.point));
    }
    REQUIRE(record.simple);
    CHECK_FALSE(is_beaten_by(record.simple->point));
  }
  CHECK(num_leads == 50);
}

TEST_CASE("measured times are compared with a roofline only if their devices are the same") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 2});
  const std::string file = stored(scratch, trace, "trace.json");
  Profile measured = made_up_profile(trace, 1);
  const std::string against = "profile --trace " + file + " --device h100 --against " +
                              scratch.file("measured.json") + " -o " + scratch.file("out.json");
  const auto store = [&] {
    write_json_file(scratch.file("measured.json"), profile_to_json(measured, trace));
  };
  measured.device = "cpu";
  store();
  check_usage_error(against, "has times of cpu, but the roofline is computed for h100");
  measured.device = "h100";
  store();
  CHECK_THAT(rematch(against).err, Catch::Contains("times the roofline"));
  const Outcome outcome =
      rematch("search --trace " + file + " --profile " + scratch.file("measured.json"));
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("measured on h100, against its roofline"));
  measured.device = "cpu";
  store();
  CHECK_THAT(rematch("search --trace " + file + " --profile " + scratch.file("measured.json")).err,
             !Catch::Contains("roofline"));
}

// An L40S has 44.39 GiB. Driver and context take 0.5 GiB. The rest divided by 1.2 gives 36.6 GiB
// for tensors.
TEST_CASE("a search leaves a card's reserve free, and states the reserve") {
  const ScratchFolder scratch;
  const std::string search =
      "search --device l40s --trace " + stored(scratch, toy_llama(), "trace.json");
  const auto front_of = [&](const std::string& flags) {
    const Outcome outcome = rematch(search + " --json --points 2 " + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out);
  };
  CHECK_THAT(rematch(search).out, Catch::Contains("36.6 GiB (l40s's 44.4 GiB less 512 MiB"));
  const Json usual = front_of("").at("reserve");
  CHECK(usual.at("context_bytes") == 512 << 20);
  CHECK(usual.at("communicators_bytes") == 0);
  CHECK(usual.at("asked_bytes").is_null());
  CHECK(front_of("--world 2").at("reserve").at("communicators_bytes") == 1 << 30);
  CHECK(front_of("--reserve 2GiB").at("reserve").at("asked_bytes") == std::int64_t{2} << 30);
  CHECK(front_of("--reserve 0B").at("reserve").at("asked_bytes") == 0);
  // Tensors may use the whole budget by default. --reserve leaves a part of it free.
  CHECK(front_of("--budget 24GiB").at("budget_bytes") == std::int64_t{24} << 30);
  CHECK(front_of("--budget 24GiB --reserve 2GiB").at("budget_bytes") == std::int64_t{22} << 30);
  CHECK_THAT(rematch(search + " --budget 24GiB --reserve 2GiB").out,
             Catch::Contains("fits 22.0 GiB (24.0 GiB less 2.00 GiB of --reserve)"));
  check_usage_error(search + " --budget 2GiB --reserve 2GiB", "uses up the whole budget");
  check_usage_error(search + " --reserve 2", "'2' has no unit");
}

TEST_CASE("predict marks the plans that fit a card and leave its reserve free") {
  const ScratchFolder scratch;
  const std::string predict =
      "predict --policy none,full --trace " +
      stored(scratch, toy_llama({.layers = 4, .tokens = 512}), "trace.json");
  const Json steps = Json::parse(rematch(predict + " --device l40s --json").out);
  for (const Json& step : steps) {
    CHECK(step.at("fits_device") == true);
    CHECK(step.at("device_memory_bytes") == 47663399567);
  }
  CHECK_THAT(rematch(predict + " --device l40s").out,
             Catch::Contains("l40s's 44.4 GiB less 512 MiB for the driver and the CUDA context") &&
                 Catch::Contains("fits: tensors may take 36.6 GiB: "));
  // The budget is exactly the peak of policy full, so policy none does not fit.
  const std::int64_t full = steps[1]["predicted_memory"]["peak_allocated_bytes"];
  const std::string reserve = " --reserve " + std::to_string(47663399567 - full) + "B";
  const std::string table = with_single_spaces(rematch(predict + " --device l40s" + reserve).out);
  CHECK_THAT(table, Catch::Contains("MiB no the") && Catch::Contains("MiB yes the"));
  CHECK(Json::parse(rematch(predict + " --device l40s --json" + reserve).out)[0]["fits_device"] ==
        false);
  CHECK(Json::parse(rematch(predict + " --json").out)[0]["fits_device"].is_null());
  check_usage_error(predict + " --reserve 1GiB", "give --device h100");
}

// The file claims that its times were measured on an H100, but they were not measured.
TEST_CASE("times of another card are refused unless allowed") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 2});
  const std::string file = stored(scratch, trace, "trace.json");
  Profile measured = made_up_profile(trace, 1);
  measured.device = "cuda";
  measured.card = "NVIDIA H100 80GB HBM3";
  const std::string profile = scratch.file("h100.json");
  write_json_file(profile, profile_to_json(measured, trace));
  const std::string times = " --trace " + file + " --profile " + profile;
  const std::string front = scratch.file("front.json");
  const std::string doctor = scratch.file("doctor.json");
  write_json_file(
      doctor, {{"environment", {{"device", "NVIDIA L40S"}, {"device_memory_bytes", 47696576512}}}});

  const Outcome same = rematch("search" + times + " --device h100 -o " + front);
  CAPTURE(same.err);
  CHECK(same.code == 0);
  CHECK_THAT(same.err, Catch::Contains("measured on NVIDIA H100 80GB HBM3, against its roofline"));
  CHECK(read_json_file(front)["card"] == "NVIDIA H100 80GB HBM3");
  CHECK(rematch("validate " + front + " " + profile).code == 0);
  CHECK(rematch("predict --policy full" + times).code == 0);
  const Outcome alone = rematch("search" + times);
  CHECK(alone.code == 0);
  CHECK_THAT(alone.out, Catch::Contains("on cuda (79.1 GiB, 65.5 GiB for tensors)"));

  const std::string refused =
      "'" + profile + "' has times of NVIDIA H100 80GB HBM3, and --device says l40s; ";
  check_usage_error("search --device l40s" + times, refused);
  check_usage_error("predict --policy full --device l40s" + times, refused);
  check_usage_error("search --doctor " + doctor + times, "--doctor's machine has NVIDIA L40S; ");
  REQUIRE(rematch("search --device l40s --any-card" + times + " -o " + front).code == 0);
  CHECK(read_json_file(front)["device_memory_bytes"] == 47663399567);
  CHECK(rematch("predict --policy full --device l40s --any-card" + times).code == 0);
  CHECK(rematch("search --any-card --doctor " + doctor + times).code == 0);
  check_usage_error("search --any-card --device h100 --trace " + file, "requires --profile FILE");

  measured.card.clear();
  write_json_file(profile, profile_to_json(measured, trace));
  check_usage_error("search --device h100" + times, "a GPU without a name");
  CHECK(rematch("search" + times).code == 0);
}

TEST_CASE("float32 on a device that supports bfloat16 gives a hint, only on stderr") {
  const ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 2});
  const auto search = [&](const std::string& dtype) {
    trace.dtype = dtype;
    return rematch("search --json --device h100 --trace " +
                   stored(scratch, trace, dtype + ".json"));
  };
  const Outcome outcome = search("float32");
  CHECK_THAT(outcome.err,
             Catch::Contains("hint: this step uses float32; most training uses bfloat16"));
  CHECK_NOTHROW(Json::parse(outcome.out));
  CHECK(without_progress(search("bfloat16").err).empty());
}

// Starts a search that reads its trace from a pipe, so the search waits until the test writes the
// trace.
class HeldSearch {
 public:
  HeldSearch(const ScratchFolder& scratch, const std::string& name)
      : front(scratch.file(name + ".json")),
        pipe_(scratch.file(name + ".pipe")),
        out_(scratch.file(name + ".out")),
        err_(scratch.file(name + ".err")) {
    REQUIRE(mkfifo(pipe_.c_str(), S_IRUSR | S_IWUSR) == 0);
    child_ = fork();
    if (child_ != 0) return;
    if (freopen(out_.c_str(), "w", stdout) == nullptr) _exit(99);
    if (freopen(err_.c_str(), "w", stderr) == nullptr) _exit(99);
    execl(binary(), binary(), "search", "--trace", pipe_.c_str(), "--device", "h100", "--points",
          "3000", "-o", front.c_str(), static_cast<char*>(nullptr));
    _exit(99);
  }

  ~HeldSearch() {
    if (child_ > 0) end_with(SIGKILL, std::chrono::milliseconds(0));
  }
  HeldSearch(const HeldSearch&) = delete;
  HeldSearch& operator=(const HeldSearch&) = delete;

  // Waits until the process has installed a handler.
  bool is_guarded(int signal_number) const {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < give_up) {
      const std::string status = text_of("/proc/" + std::to_string(child_) + "/status");
      const std::size_t caught = status.find("SigCgt:");
      if (caught != std::string::npos &&
          (std::stoull(status.substr(caught + 7), nullptr, 16) >> (signal_number - 1) & 1) != 0) {
        return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  void feed(const Trace& trace) const {
    std::ofstream pipe(pipe_);
    pipe << trace_to_json(trace).dump();
  }

  // Sends the signal and waits for the search. The returned code is the search's exit code, or 128
  // + the number of the signal that killed it.
  Outcome end_with(int signal_number, std::chrono::milliseconds after) {
    std::this_thread::sleep_for(after);
    kill(child_, signal_number);
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text_of(out_),
            text_of(err_)};
  }

  std::string front;

 private:
  std::string pipe_;
  std::string out_;
  std::string err_;
  pid_t child_ = 0;
};

TEST_CASE("Ctrl-C at any time after the start prints and writes the best front so far") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 80, .tokens = 64});
  for (const int wait : {0, 100, 400}) {
    CAPTURE(wait);
    HeldSearch search(scratch, "after" + std::to_string(wait));
    // The search's own handler is installed before the search reads the trace.
    REQUIRE(search.is_guarded(SIGINT));
    search.feed(trace);
    const Outcome outcome = search.end_with(SIGINT, std::chrono::milliseconds(wait));
    CAPTURE(outcome.out, outcome.err);
    const FrontRecord record = front_from_json(read_json_file(search.front));
    CHECK(record.front.points.size() >= 2);
    CHECK_THAT(outcome.out, Catch::Contains("Verdict: "));
    // On a fast machine the search may have ended before the signal arrived.
    const bool is_stopped = wait == 0 || !record.front.is_complete;
    CHECK(outcome.code == (is_stopped ? 128 + SIGINT : 0));
    CHECK(record.front.is_complete == !is_stopped);
    const std::string stopped = "the search was stopped";
    CHECK((outcome.out.find(stopped) != std::string::npos) == is_stopped);
    if (!is_stopped) continue;
    CHECK(without_progress(outcome.err) ==
          "rematch: interrupted; the front found so far is in " + search.front + "\n");
  }
}

TEST_CASE("a killed search leaves no partial file") {
  const ScratchFolder scratch;
  HeldSearch search(scratch, "killed");
  REQUIRE(search.is_guarded(SIGINT));
  search.feed(toy_llama({.layers = 80, .tokens = 64}));
  CHECK(search.end_with(SIGKILL, std::chrono::milliseconds(300)).code == 128 + SIGKILL);
  for (const auto& entry : std::filesystem::directory_iterator(scratch.path())) {
    CAPTURE(entry.path().string());
    if (entry.path().extension() == ".json") CHECK_NOTHROW(read_json_file(entry.path().string()));
  }
}

}  // namespace
}  // namespace rematch::testing
