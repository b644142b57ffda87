// Tests commands on a stored trace, such as the trace of a user's own model. The commands need no
// LibTorch in any build.
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/predict/device/ceilings.h"
#include "policies/predict/step/step.h"
#include "policies/trace/accumulation.h"
#include "policies/trace/trace_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_ceilings.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

Plan plan_of(const std::string& policy, const Trace& trace) {
  return std::get<Plan>(resolve(std::get<Policy>(parse_policy(policy)), trace));
}

// Stores a toy model's trace, and plans for the model, in files.
class StoredTrace {
 public:
  StoredTrace() { write_json_file(file, trace_to_json(trace)); }

  std::string plan_file(const std::string& policy) const {
    const std::string path = scratch.file("plan.json");
    write_json_file(path, plan_to_json(plan_of(policy, trace)));
    return path;
  }

  ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 4, .tokens = 64});
  std::string file = scratch.file("trace.json");
};

TEST_CASE("predict on a stored trace agrees with the simulator") {
  const StoredTrace stored;
  const Outcome outcome = rematch("predict --trace " + stored.file +
                                  " --policy none,save_mm --schedule both --optimizer none --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json predicted = Json::parse(outcome.out);
  REQUIRE(predicted.size() == 3);  // policy none has no schedule, so it is predicted only once
  StepSimulator simulator(stored.trace, OptimizerKind::kNothing);
  const Plan save_mm = plan_of("save_mm", stored.trace);
  const auto peak = [&](std::size_t index) {
    return predicted[index]["predicted_memory"]["peak_allocated_bytes"].get<std::int64_t>();
  };
  CHECK(peak(0) == simulator.simulate(Plan{}, Schedule::kWholeRegion).peak_bytes().count);
  CHECK(peak(1) == simulator.simulate(save_mm, Schedule::kWholeRegion).peak_bytes().count);
  CHECK(peak(2) == simulator.simulate(save_mm, Schedule::kOnDemand).peak_bytes().count);
  CHECK(predicted[0]["predicted_ops"]["recompute"].empty());
  CHECK_FALSE(predicted[1]["predicted_ops"]["recompute"].contains("aten::mm"));

  const std::string with_rate =
      "predict --trace " + stored.file + " --policy none --json --optimizer 'adamw(learning_rate=";
  const Outcome rated = rematch(with_rate + "1e-4)'");
  CAPTURE(rated.err);
  REQUIRE(rated.code == 0);
  CHECK(Json::parse(rated.out)[0]["optimizer"] == "adamw");
  check_usage_error(with_rate + "-1)'", "unknown optimizer 'adamw(learning_rate=-1)'");

  const Outcome table = rematch("predict --trace " + stored.file + " --plan " +
                                stored.plan_file("save_mm") + " --world 2");
  CHECK(table.code == 0);
  CHECK_THAT(table.out, Catch::Contains("toy_llama") && Catch::Contains("save_mm") &&
                            Catch::Contains("one of 2 ranks"));
}

TEST_CASE("--accumulate adds micro-batches to a stored trace") {
  const StoredTrace stored;
  const auto predicted = [&](const std::string& flags) {
    const Outcome outcome =
        rematch("predict --trace " + stored.file + " --device h100 --json " + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out)[0];
  };
  const auto peak_of = [](const Json& step) {
    return step["predicted_memory"]["peak_allocated_bytes"].get<std::int64_t>();
  };
  const Json once = predicted("--policy full");
  const Json four = predicted("--policy full --accumulate 4");
  const Json eight = predicted("--policy full --accumulate 8");
  CHECK(four["dimensions"]["accumulate"] == 4);
  CHECK(peak_of(four) > peak_of(once));
  CHECK(peak_of(four) <= peak_of(once) + stored.trace.gradient_bytes.count);
  CHECK(peak_of(eight) == peak_of(four));
  CHECK(four["predicted_ops"]["recompute"]["aten::mm"] ==
        4 * once["predicted_ops"]["recompute"]["aten::mm"].get<int>());
  CHECK(predicted("--policy full --accumulate 1") == once);
  // A plan serves any number of micro-batches.
  CHECK(peak_of(predicted("--plan " + stored.plan_file("full") + " --accumulate 4")) ==
        peak_of(four));
  CHECK_THAT(rematch("predict --trace " + stored.file + " --policy none --accumulate 4").out,
             Catch::Contains(", 4 micro-batches, optimizer adamw"));
}

TEST_CASE("--ceilings replaces the rates of the data sheet, and all outputs name the file") {
  const StoredTrace stored;
  const std::string ceilings = stored.scratch.file("card.json");
  write_json_file(ceilings, ceilings_to_json(made_up_ceilings()));
  const std::string device = " --trace " + stored.file + " --device h200";
  const std::string measured = device + " --ceilings " + ceilings;
  const std::string named = ceilings + ": measured on NVIDIA H200; made up";
  const auto predicted = [&](const std::string& flags) {
    const Outcome outcome = rematch("predict --policy none --json" + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out)[0];
  };
  const Json by_sheet = predicted(device);
  const Json by_ceilings = predicted(measured);
  CHECK(by_sheet["ceilings"].is_null());
  CHECK(by_ceilings["ceilings"] == named);
  CHECK(by_ceilings["predicted_step_time_ns"].get<std::int64_t>() >
        by_sheet["predicted_step_time_ns"].get<std::int64_t>());
  const Outcome front = rematch("search --baselines full --json" + measured);
  REQUIRE(front.code == 0);
  CHECK(Json::parse(front.out)["ceilings"] == named);
  const Outcome table = rematch("search --baselines full" + measured);
  CHECK_THAT(table.out, Catch::Contains("measured ceilings (" + stored.scratch.file("card.json")));
  const Outcome profile = rematch("profile" + measured);
  REQUIRE(profile.code == 0);
  CHECK(Json::parse(profile.out)["ceilings"] == named);
  CHECK_THAT(rematch("predict --policy none" + device.substr(0, device.size() - 4) +
                     "h100 --ceilings " + ceilings)
                 .err,
             Catch::Contains("were measured on NVIDIA H200, but --device is h100"));
}

TEST_CASE("--accumulate, --gradient-dtype and --routing-skew refuse what a trace cannot have") {
  const StoredTrace stored;
  const std::string predict = "predict --policy none --trace ";
  check_usage_error(predict + stored.file + " --accumulate 0",
                    "--accumulate 0 is out of range; a step has at least 1 micro-batch");
  check_usage_error(predict + stored.file + " --accumulate 65537", "and at most 65536");
  check_usage_error(predict + stored.file + " --gradient-dtype float32",
                    "--gradient-dtype needs --model");
  check_usage_error(predict + stored.file + " --routing-skew 1.3", "--routing-skew needs --model");
  const std::string other = stored.scratch.file("accumulating.json");
  write_json_file(other, trace_to_json(accumulating(stored.trace, 2)));
  check_usage_error(predict + other + " --accumulate 4",
                    "this trace of toy_llama was recorded with --accumulate 2");
  CHECK(rematch(predict + other + " --accumulate 2").code == 0);
}

TEST_CASE("predict --trace refuses flags that do not apply to a trace, in one line") {
  const StoredTrace stored;
  const std::string predict = "predict --trace " + stored.file;
  check_usage_error(predict, "nothing to predict");
  check_usage_error(predict + " --policy full --round-512", "leave out --round-512");
  check_usage_error(predict + " --policy full --optimizer adamv", "did you mean 'adamw'?");
}

TEST_CASE("--trace refuses flags that choose a model or its dimensions") {
  const StoredTrace stored;
  const std::string predict = "predict --trace " + stored.file + " --policy full";
  check_usage_error(predict + " --layers 9", "leave out --layers, or record another trace");
  check_usage_error(predict + " --model llama_small --dtype bf16", "leave out --model, --dtype,");
  check_usage_error(predict + " --parallel tp=2,sp", "leave out --parallel, or");
  for (const std::string flag : {"--ops fused", "--video 9x480x832", "--batch 2"}) {
    check_usage_error(predict + " " + flag, "--trace already gives the model");
    check_usage_error("plan --policy full --trace " + stored.file + " " + flag, "leave out --");
    check_usage_error("describe full --trace " + stored.file + " " + flag, "leave out --");
    check_usage_error("search --device h100 --trace " + stored.file + " " + flag, "leave out --");
  }
}

TEST_CASE("every command prints the same error for a plan of another trace") {
  const StoredTrace stored;
  const std::string plan = stored.plan_file("full");
  Trace trace = stored.trace;
  trace.constant_bytes += Bytes{1};
  const std::string other = stored.scratch.file("other.json");
  write_json_file(other, trace_to_json(trace));
  for (const std::string command : {"predict --plan ", "describe --plan ", "export "}) {
    check_usage_error(command + plan + " --trace " + other,
                      "the plan of " + plan + " was made for ");
  }
}

TEST_CASE("a plan in place of a policy is refused with the --plan that works") {
  const StoredTrace stored;
  const std::string plan = stored.plan_file("full");
  const std::string front = stored.scratch.file("front.json");
  REQUIRE(rematch("search --simple --budget 100MiB --device h100 --trace " + stored.file + " -o " +
                  front)
              .code == 0);
  for (const std::string& asked : {"describe --trace " + stored.file + " ",
                                   "predict --trace " + stored.file + " --policy none,"}) {
    check_usage_error(asked + plan, "is a plan, not a policy; use --plan " + plan + "\n");
    check_usage_error(asked + plan + "#1", "is a plan, not a policy; use --plan " + plan + "\n");
    check_usage_error(asked + front, "choose one of its points: --plan " + front + "#0\n");
    check_usage_error(asked + front + "#0", "not a policy; use --plan " + front + "#0\n");
    check_usage_error(asked + front + "#simple", "use --plan " + front + "#simple\n");
    check_usage_error(asked + front + "#99", "has no point 99; its points are 0 to ");
    check_usage_error(asked + front + "#99", ", and simple\n");
  }
  for (const std::string& name : {plan, front + "#0", front + "#simple"}) {
    CHECK(rematch("describe --trace " + stored.file + " --plan " + name).code == 0);
  }
}

TEST_CASE("a plan is exported to a Python file, or to configuration lines") {
  const StoredTrace stored;
  const std::string plan = stored.plan_file("nth_last(2)");
  const std::string file = stored.scratch.file("mine.py");
  const Outcome to_torch =
      rematch("export " + plan + " --to torch --trace " + stored.file + " -o " + file);
  CAPTURE(to_torch.err);
  CHECK(to_torch.code == 0);
  CHECK(to_torch.out.empty());
  CHECK_THAT(text_of(file), Catch::Contains("mine.apply(model)") &&
                                Catch::Contains("\"blocks.1\": 0,\n    \"blocks.3\": 0,"));
  const Outcome lines = rematch("export " + plan + " --to torchtune --trace " + stored.file);
  CHECK(lines.code == 0);
  CHECK_THAT(lines.out, Catch::EndsWith("ac_mode: selective\nac_option: 2\n"));
}

TEST_CASE("a plan that no mode of axolotl expresses is exported to a Python file for its script") {
  const StoredTrace stored;
  const std::string file = stored.scratch.file("mine.py");
  const Outcome outcome = rematch("export " + stored.plan_file("save_mm") +
                                  " --to axolotl --trace " + stored.file + " -o " + file);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err,
             Catch::Contains("no mode of axolotl is equivalent to the plan; the nearest "
                             "is axolotl(gradient_checkpointing=true)") &&
                 Catch::Contains("its first lines say where to call apply()"));
  CHECK_THAT(text_of(file), Catch::Contains("--to axolotl") &&
                                Catch::Contains("            mine.apply(model)\n") &&
                                Catch::Contains("\"blocks.3\": 0,"));
  check_usage_error(
      "export " + stored.plan_file("save_mm") + " --to megatron --trace " + stored.file,
      "no mode of megatron is equivalent to the plan; the nearest is");
}

// No trainer's model has the modules and ops of rematch's own models.
TEST_CASE("a plan for a built-in model can be exported only as a mode of a trainer") {
  const ScratchFolder scratch;
  Trace preset = toy_llama({.layers = 4});
  preset.model = "llama_small";
  const std::string trace = scratch.file("trace.json");
  write_json_file(trace, trace_to_json(preset));
  const auto plan = [&](const std::string& policy) {
    std::string file = scratch.file(policy + ".json");
    REQUIRE(rematch("plan --policy " + policy + " --trace " + trace + " -o " + file).code == 0);
    return "export " + file + " --trace " + trace;
  };
  for (const char* target : {"torch", "remat"}) {
    check_usage_error(plan("save_mm") + " --to " + target, "trace your own model");
  }
  check_usage_error(plan("save_mm") + " --to torchtitan",
                    "or let rematch search --for torchtitan choose one of its modes");
  const Outcome mode = rematch(plan("titan:full") + " --to torchtitan");
  CHECK(mode.code == 0);
  CHECK_THAT(mode.out, Catch::Contains("# titan:full (until June 2026)\n[activation_checkpoint]\n"
                                       "mode = \"full\"\n"));
}

TEST_CASE("the error for an unsupported export is one line that names the reason") {
  const StoredTrace stored;
  const std::string at_trace = " --trace " + stored.file;
  const std::string segments = "export " + stored.plan_file("segments(2)") + at_trace;
  check_usage_error(segments + " --to torch", "region blocks.0 to blocks.1: the region spans");
  check_usage_error(segments + " --to axolotl",
                    "the nearest is axolotl(gradient_checkpointing=true)");
  check_usage_error(
      segments + " --to axolotl",
      "a Python file cannot run this plan either: region blocks.0 to blocks.1: the region spans");
  check_usage_error(segments + " --to torchtun", "did you mean 'torchtune'?");
  check_usage_error(segments + " --to quux", "unknown target 'quux'; known: torch, ");
  check_usage_error("export --to torch" + at_trace, "export takes a plan");
}

TEST_CASE("describe and predict use the part of a plan that was made for the trace's step shape") {
  const StoredTrace stored;
  Plan plan = plan_of("none", toy_llama({.layers = 2}));
  plan.other_shapes = {plan_of("save_mm", stored.trace)};
  const std::string file = stored.scratch.file("shapes.json");
  write_json_file(file, plan_to_json(plan));
  const Outcome described = rematch("describe --plan " + file + " --trace " + stored.file);
  CHECK(described.code == 0);
  CHECK_THAT(described.out, Catch::Contains("save_mm"));
  const Outcome predicted = rematch("predict --plan " + file + " --trace " + stored.file);
  CHECK(predicted.code == 0);
  CHECK_THAT(predicted.out, Catch::Contains("save_mm"));
}

TEST_CASE("plans and fronts record the hidden effects of a trace's ops") {
  ScratchFolder scratch;
  Trace trace = toy_llama({.layers = 2, .tokens = 64});
  trace.hidden = {{{"lib.ops:Rotary", std::vector<int>{1}}}, {{"lib::scale", {2}}}, {"lib::noisy"}};
  const std::string file = scratch.file("trace.json");
  write_json_file(file, trace_to_json(trace));
  const std::string front_file = scratch.file("front.json");
  const Outcome searched = rematch("search --trace " + file + " --device h100 -o " + front_file);
  CAPTURE(searched.err);
  REQUIRE(searched.code == 0);
  const Json front = read_json_file(front_file);
  REQUIRE(!front["points"].empty());
  for (const Json& point : front["points"]) {
    CHECK(plan_from_json(point["plan"]).hidden == trace.hidden);
  }
  const Outcome planned = rematch("plan --policy full --trace " + file);
  CAPTURE(planned.err);
  CHECK(plan_from_json(Json::parse(planned.out)).hidden == trace.hidden);
  const Outcome described = rematch("describe --plan " + front_file + "#0 --trace " + file);
  CAPTURE(described.err);
  CHECK_THAT(described.out, Catch::Contains("hidden: lib::scale writes to argument 2"));
}

TEST_CASE("export refuses a plan for several step shapes") {
  const StoredTrace stored;
  Plan plan = plan_of("full", stored.trace);
  plan.other_shapes = {plan};
  const std::string file = stored.scratch.file("shapes.json");
  write_json_file(file, plan_to_json(plan));
  check_usage_error("export " + file + " --to torch --trace " + stored.file,
                    "the plan has 2 step shapes; export supports a single shape");
}

TEST_CASE(
    "trace --check finds two traces equal, or names the first difference in each part of the "
    "traces") {
  const StoredTrace stored;
  const Outcome same = rematch("trace --check " + stored.file + " " + stored.file);
  CHECK(same.code == 0);
  CHECK_THAT(same.out, Catch::StartsWith("equal: "));
  const std::string other = stored.scratch.file("other.json");
  write_json_file(other, trace_to_json(toy_llama({.layers = 4, .tokens = 32})));
  const Outcome differs = rematch("trace --check " + stored.file + " " + other);
  CHECK(differs.code == 3);
  CHECK_THAT(differs.out, Catch::Contains("lifetimes: the first difference is at number 0: "));
  check_usage_error("trace --check " + stored.file, "--check");
}

TEST_CASE("the error for a plan of a user's own model says that the command needs the trace") {
  const StoredTrace stored;
  check_usage_error("export " + stored.plan_file("full"), "toy_llama, a model of your own");
}

TEST_CASE("search --for torch finds plans that can be exported, and refuses schedule on_demand") {
  const StoredTrace stored;
  const std::string front = stored.scratch.file("front.json");
  const std::string at_trace = " --trace " + stored.file;
  const std::string search =
      "search --device h100 --optimizer none --points 6 -o " + front + at_trace;
  const Outcome searched = rematch(search + " --for torch");
  CAPTURE(searched.err);
  REQUIRE(searched.code == 0);
  CHECK_THAT(searched.out, Catch::Contains("in Python runs it."));
  CHECK_THAT(searched.out, !Catch::Contains("rematch run"));
  const Json json = read_json_file(front);
  CHECK(json["schedule"] == "whole_region");
  REQUIRE(json["points"].size() > 3);
  for (std::size_t point = 0; point < json["points"].size(); ++point) {
    CHECK(rematch("export " + front + "#" + std::to_string(point) + at_trace).code == 0);
  }
  REQUIRE(rematch(search).code == 0);
  check_usage_error("export " + front + "#0" + at_trace, "search with --for torch");
  check_usage_error("export " + front + "#0 --to torchtune" + at_trace, "schedule on_demand");
  check_usage_error(search + " --for torch --schedule on_demand", "leave out --schedule or --for");
  check_usage_error(search + " --for quux", "--for has no trainer 'quux'; known: torch, ");
}

}  // namespace
}  // namespace rematch::testing
