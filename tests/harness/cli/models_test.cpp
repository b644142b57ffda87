// The binary where it can run models: trace, plan, describe, predict, run, and what it refuses.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

// Two layers, small enough for a step in milliseconds.
const std::string kTinyLlama =
    "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 16 --batch "
    "1 ";
const std::string kTinyDit =
    "--model wan_small --layers 2 --dim 32 --heads 2 --ffn 64 --frames 2 --height 2 --width 4 "
    "--batch 1 ";

TEST_CASE("a model's trace makes the same plan as the model itself") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  const Outcome from_file = rematch("plan --policy save_mm --trace " + trace);
  const Outcome from_model = rematch("plan --policy save_mm " + kTinyLlama);
  CHECK(from_file.code == 0);
  CHECK(from_file.out == from_model.out);
  CHECK(rematch("validate " + trace).code == 0);
}

TEST_CASE("describe says which layers are checkpointed and what is kept in them") {
  const Outcome outcome = rematch("describe llama_small 'nth_first(2)'");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("nth_first(2)") && Catch::Contains("keeps 1"));
}

TEST_CASE("what a plan's author may not have meant is said, data stays data") {
  const Outcome predicted = rematch("predict " + kTinyLlama + "--policy 'nth_last(2)' --json");
  CHECK(predicted.code == 0);
  CHECK_THAT(predicted.err, Catch::Contains("rematch: warning: nth_last(2) checkpoints the last"));
  CHECK(Json::parse(predicted.out).size() == 1);
  const Outcome planned = rematch("plan " + kTinyLlama + "--policy fastvideo:block_skip");
  CHECK_THAT(planned.err, Catch::Contains("no option sets it, so this is full"));
  const Outcome described = rematch("describe llama_small root --json");
  CHECK_THAT(Json::parse(described.out)["warnings"][0].get<std::string>(),
             Catch::Contains("its peak is like none's"));
  CHECK(described.err.empty());
  const Outcome in_words = rematch("describe llama_small root");
  CHECK_THAT(in_words.err, Catch::Contains("rematch: warning: root: one"));
  CHECK_THAT(in_words.out, !Catch::Contains("warning"));
}

TEST_CASE("a run with repeats of the reference passes the gate, and fails it on a wrong count") {
  const ScratchFolder scratch;
  const std::string report = scratch.file("report.json");
  REQUIRE(rematch("run " + kTinyLlama +
                  "--policy none,full --steps 2 --blocks 0 --repeat-reference 3 -o " + report)
              .code == 0);
  const std::string gate = "gate " + report + " --reference " + report;
  for (const char* tier : {"bitwise", "envelope"}) {
    const Outcome passed = rematch(gate + " --loss " + tier);
    CAPTURE(tier, passed.out, passed.err);
    CHECK(passed.code == 0);
    CHECK_THAT(passed.out, Catch::Contains("PASS: 1 of 1 points pass."));
  }
  // Two layers in two steps, forward and again in recompute.
  CHECK(rematch(gate + " --expect attention_forward=8,recompute.attention_forward=4").code == 0);
  CHECK(rematch(gate + " --expect attention_forward=4").code == 3);
  CHECK(rematch(gate + " --loss equivalence").code == 4);  // full itself ran once
  CHECK(rematch("validate " + report).code == 0);
}

TEST_CASE("predict tells peak, place and executed ops without data") {
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
        192);  // 7 a layer, the last not needed
}

// On a GPU kernels allocate inside as well. A profile made up from a data sheet's says how much: 64
// bytes in every op.
TEST_CASE("a prediction for a GPU says whether what kernels allocate inside is in it") {
  constexpr const char* kNote = "temporaries not measured: a bound";
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
             Catch::Contains("kernels allocate at most 64 B inside on top"));
  check_usage_error(predict + "--profile " + file, "give --round-512 with it");
  check_usage_error("predict --model wan_small --policy full --round-512 --profile " + file,
                    "the profile is of model llama_small");
  profile.erase("forward");
  write_json_file(file, profile);
  check_usage_error(rounded + "--profile " + file, file);
}

TEST_CASE("a plan from a file is taken where sizes are rounded as a GPU's are") {
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

TEST_CASE("predict of one of several ranks: its shares shrink, its activations do not") {
  const std::string predict = "predict --model llama_small --policy none,full --json";
  const Json alone = Json::parse(rematch(predict).out);
  const Outcome outcome = rematch(predict + " --world 8");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json rank = Json::parse(outcome.out);
  REQUIRE(rank.size() == alone.size());
  for (std::size_t index = 0; index < alone.size(); ++index) {
    CAPTURE(index);
    CHECK(alone[index]["world"] == 1);
    CHECK(rank[index]["world"] == 8);
    CHECK(rank[index]["predicted_ops"] == alone[index]["predicted_ops"]);
    const Json& memory = rank[index]["predicted_memory"];
    const Json& whole = alone[index]["predicted_memory"];
    const auto activations = [](const Json& record) {
      return record["after_forward_bytes"].get<std::int64_t>() -
             record["baseline_bytes"].get<std::int64_t>();
    };
    CHECK(activations(memory) == activations(whole));
    CHECK(memory["peak_allocated_bytes"] < whole["peak_allocated_bytes"]);
    CHECK(8 * memory["parameter_bytes"].get<std::int64_t>() >=
          whole["parameter_bytes"].get<std::int64_t>());
    CHECK(7 * memory["parameter_bytes"].get<std::int64_t>() <
          whole["parameter_bytes"].get<std::int64_t>());
  }
  const Outcome text = rematch("predict --model llama_small --policy full --world 8");
  CHECK_THAT(text.out, Catch::Contains("one of 8 ranks"));
  check_usage_error("predict --model llama_small --policy full --world 0", "--world");
  check_usage_error("predict --model llama_small --policy full --world 8 --round-512",
                    "leave out --round-512 or --world");
}

TEST_CASE("run counts, compares bits and writes a valid report") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome = rematch("run " + kTinyDit +
                                  "--policy none,full,attn_only --schedule whole_region --steps 3 "
                                  "--blocks 1 -o " +
                                  file);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(rematch("validate " + file).code == 0);
  const Json report = read_json_file(file);
  // Self and cross attention: 2 x 2 layers x 3 steps.
  const auto attention = [&](std::size_t point, const char* phase, const char* name) {
    const Json& counts = report["points"][point]["counts"][phase];
    return counts.contains(name) ? counts[name].get<int>() : 0;
  };
  CHECK(attention(0, "forward", "attention_forward") == 12);
  CHECK(attention(0, "recompute", "attention_forward") == 0);
  CHECK(attention(1, "recompute", "attention_forward") == 12);
  CHECK(attention(2, "recompute", "attention_forward") == 0);
  for (std::size_t point = 0; point < 3; ++point) {
    const Json& record = report["points"][point];
    CAPTURE(record["policy"]);
    CHECK(record["status"] == "ok");
    CHECK(attention(point, "backward", "attention_backward") == 12);
    CHECK(record["parity"]["loss_bits_equal"] == true);
    CHECK(record["parity"]["gradient_bits_equal"] == true);
    CHECK(record["memory"]["peak_allocated_bytes"] ==
          record["memory"]["predicted_peak_allocated_bytes"]);
    CHECK(record["time"]["samples_ns"].size() == 1);
  }
}

TEST_CASE("a run with fused ops says so, counts them and holds what was predicted") {
  for (const std::string& model : {kTinyLlama, kTinyDit}) {
    const Outcome outcome = rematch("run " + model +
                                    "--ops fused --policy none,full --schedule both --steps 2 "
                                    "--blocks 0 --json");
    CAPTURE(model, outcome.err);
    REQUIRE(outcome.code == 0);
    const Json report = Json::parse(outcome.out);
    for (const Json& point : report["points"]) {
      CAPTURE(point["policy"]);
      CHECK(point["identity"]["ops"] == "fused");
      CHECK(point["identity"]["dimensions"]["fused_ops"] == 1);
      CHECK(point["parity"]["gradient_bits_equal"] == true);
      CHECK(point["counts"] == point["predicted_counts"]);
      CHECK(point["memory"]["peak_allocated_bytes"] ==
            point["memory"]["predicted_peak_allocated_bytes"]);
      const Json& backward = point["ops"]["backward"];
      CHECK(point["ops"]["forward"]["rematch::rms_norm"] == backward["rematch::rms_norm_backward"]);
      CHECK_FALSE(point["ops"]["forward"].contains("aten::rsqrt"));
    }
  }
}

TEST_CASE("a run of a plan file is the run of its policy") {
  const ScratchFolder scratch;
  const std::string plan = scratch.file("plan.json");
  REQUIRE(rematch("plan " + kTinyLlama + "--policy save_mm -o " + plan).code == 0);
  const Outcome outcome =
      rematch("run " + kTinyLlama + "--plan " + plan + " --steps 1 --blocks 0 --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json report = Json::parse(outcome.out);
  REQUIRE(report["points"].size() == 2);  // the reference is run, asked for or not
  CHECK(report["points"][0]["policy"] == "none");
  CHECK(report["points"][1]["policy"] == "save_mm");

  const Outcome other = rematch("run " + kTinyDit + "--plan " + plan + " --steps 1 --blocks 0");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("was made for llama_small, this is wan_small"));
}

// Other arithmetic, so other bits than flash; but with a policy those without.
TEST_CASE("another attention kernel is another point, with the same executed ops and bytes") {
  const std::string run = "run " + kTinyLlama + "--policy attn_only --steps 1 --blocks 0 --json";
  const Json flash = Json::parse(rematch(run).out)["points"][1];
  const Json math = Json::parse(rematch(run + " --attention math").out)["points"][1];
  CHECK(flash["identity"]["attention_backend"] == "flash");
  CHECK(math["identity"]["attention_backend"] == "math");
  CHECK(math["key"] != flash["key"]);
  CHECK(math["parity"]["gradient_bits_equal"] == true);
  CHECK(math["counts"] == flash["counts"]);
  CHECK(math["memory"]["peak_allocated_bytes"] == flash["memory"]["peak_allocated_bytes"]);
  CHECK(math["memory"]["peak_transient_bytes"] > flash["memory"]["peak_transient_bytes"]);
  CHECK(math["steps"][0]["loss"].get<double>() ==
        Approx(flash["steps"][0]["loss"].get<double>()).epsilon(1e-5));
}

TEST_CASE("the shards of a run merge into the run, and a missing one is missed") {
  const ScratchFolder scratch;
  const std::string command = "run " + kTinyLlama +
                              "--policy none,full,attn_only,save_mm --steps 2 --blocks 0 -o " +
                              scratch.file("mine.json");
  REQUIRE(rematch(command + " --shard 0/2").code == 0);
  const std::string first = scratch.file("mine.shard-0-of-2.json");
  const Outcome half = rematch("merge " + first + " -o " + scratch.file("half.json"));
  CHECK(half.code == 5);
  CHECK_THAT(half.err, Catch::Contains("missing: attn_only, on_demand, key ") &&
                           Catch::Contains("1 of 4 points are missing"));

  // A task of a job array needs no flag.
  REQUIRE(rematch(command,
                  "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=1 "
                  "SLURM_ARRAY_TASK_MAX=2 ")
              .code == 0);
  const std::string second = scratch.file("mine.shard-1-of-2.json");
  CHECK_THAT(read_json_file(second)["reproduce"].get<std::string>(),
             Catch::EndsWith(" --shard 1/2"));
  const Outcome all = rematch("merge " + second + " " + first);
  CAPTURE(all.err);
  CHECK(all.code == 0);
  CHECK(rematch("merge " + first + " " + second).out == all.out);
  const Json points = Json::parse(all.out)["points"];
  REQUIRE(points.size() == 4);
  CHECK(points[1]["policy"] == "full");
  CHECK(points[2]["policy"] == "attn_only");
  for (const Json& point : points) CHECK(point["parity"]["gradient_bits_equal"] == true);
}

TEST_CASE("bad inputs are refused in one line") {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("empty.txt"));
  const std::string steps = " --steps 1 --blocks 0";
  check_usage_error("run --model lama_small --policy full" + steps, "did you mean 'llama_small'");
  check_usage_error("run " + kTinyLlama + "--policy ful" + steps, "did you mean 'full'");
  check_usage_error("run " + kTinyLlama + "--policy full --device cpuu" + steps,
                    "did you mean 'cpu'");
  check_usage_error("run " + kTinyLlama + "--policy full --schedule demand" + steps,
                    "did you mean 'on_demand'");
  check_usage_error("run " + kTinyLlama + "--policy full --ops fusd" + steps,
                    "allowed are eager, fused");
  check_usage_error("run " + kTinyLlama + "--policy full --attention cudnn" + steps,
                    "no attention 'cudnn' for float32 on cpu; allowed are flash, math");
  check_usage_error("run " + kTinyLlama + "--policy full --optimizer sgd" + steps, "adamw");
  check_usage_error("run " + kTinyLlama + "--policy full --steps 0", "--steps");
  check_usage_error("run " + kTinyLlama + "--policy full --timeout 10" + steps, "unit");
  check_usage_error("run " + kTinyLlama + "--policy full --blocks 8:4", "'8:4'");
  check_usage_error("run " + kTinyLlama + "--policy full --blocks many", "such as 4:8");
  check_usage_error("run " + kTinyLlama + "--policy full --precision 0%", "'0%'");
  check_usage_error("run " + kTinyLlama + "--policy full --precision 0.02", "such as 2%");
  check_usage_error("run " + kTinyLlama + "--policy full --allocator caching" + steps,
                    "choice of device cuda");
  check_usage_error("run " + kTinyLlama + "--policy full --shard 2/2" + steps, "such as 0/4");
  check_usage_error("run " + kTinyLlama + "--policy full --heads 3" + steps, "heads");
  check_usage_error("run " + kTinyLlama + "--policy full --layers 0" + steps, "layers");
  check_usage_error("run " + kTinyLlama + "--policy 'nth_last(0)'" + steps, "0");
  check_usage_error("run " + kTinyLlama + "--policy 'nth_last(3)'" + steps, "3");
  check_usage_error("run " + kTinyLlama + "--policy 'skip_list([7])'" + steps, "7");
  check_usage_error("run " + kTinyLlama + "--policy full,full" + steps, "full");
  check_usage_error("run " + kTinyLlama + "--policy full --data /no/such/file" + steps,
                    "/no/such/file");
  check_usage_error(
      "run " + kTinyLlama + "--policy full --data " + scratch.file("empty.txt") + steps,
      "is empty");
  check_usage_error("run " + kTinyLlama + "--policy full --data /tmp" + steps, "/tmp");
  check_usage_error("run " + kTinyDit + "--policy full --data /etc/passwd" + steps, "leave it out");
  check_usage_error("run " + kTinyLlama + steps, "nothing to run");
  check_usage_error("run " + kTinyLlama + "--policy full -o /no/such/folder/r.json" + steps,
                    "/no/such/folder");
}

TEST_CASE("CUDA where there is none is refused with the reason") {
#ifndef REMATCH_CUDA
  check_usage_error("run " + kTinyLlama + "--policy full --device cuda", "no CUDA");
#endif
}

// One weight is 256 GiB; the limit keeps a machine with generous overcommit from trying.
TEST_CASE("a point that needs more memory than there is is a result, and the code says so") {
  const Outcome outcome = rematch(
      "run --model llama_small --dim 65536 --ffn 1048576 --policy full "
      "--steps 1 --blocks 0 --json",
      "ulimit -v 16000000; ");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = Json::parse(outcome.out);
  CHECK(report["points"][0]["status"] == "oom");
  CHECK_THAT(report["points"][0]["reason"].get<std::string>(), Catch::Contains("out of memory"));
  CHECK(report["points"][0]["failure"]["requested_bytes"] >= std::int64_t{1} << 34);
}

// A step of 1e30 sends every parameter far beyond what float32 can square.
TEST_CASE("a loss that is not finite fails its point, whatever its bits say") {
  const Outcome outcome = rematch("run " + kTinyLlama +
                                  "--policy full --optimizer 'adamw(learning_rate=1e30)' "
                                  "--steps 4 --blocks 1 --json");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = Json::parse(outcome.out);
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "invalid");
    CHECK_THAT(point["reason"].get<std::string>(), Catch::Contains("the loss of step"));
    CHECK(point["steps"].back()["loss"].is_null());
    CHECK(point["steps"].back()["loss_bits"].get<std::string>().starts_with("0x"));
  }
}

TEST_CASE("a point that takes too long is a result") {
  const Outcome outcome =
      rematch("run " + kTinyLlama + "--policy full --steps 100000 --blocks 0 --timeout 1s --json");
  CHECK(outcome.code == 5);
  CHECK(Json::parse(outcome.out)["points"][0]["status"] == "timeout");
}

// The signal comes in the middle of a child's work; what is finished stays, nothing is half there.
TEST_CASE("an interrupted run leaves no half-written file and goes on where it was") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const std::string command =
      "run " + kTinyLlama + "--policy none,full --steps 200 --blocks 2 -o " + file;
  Outcome interrupted;
  interrupted = rematch(command + " & pid=$!; i=0; while [ ! -d " + scratch.file("report.points") +
                        " ] || [ -z \"$(ls " + scratch.file("report.points") +
                        ")\" ]; do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || break; done; "
                        "kill -TERM $pid; wait $pid");
  CHECK(interrupted.code == 128 + SIGTERM);
  CHECK_FALSE(std::filesystem::exists(file));
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.file("report.points"))) {
    CAPTURE(entry.path().string());
    CHECK(rematch("validate " + entry.path().string()).code == 0);
    ++kept;
  }
  CHECK(kept > 0);
  const Outcome resumed = rematch(command);
  CAPTURE(resumed.err);
  CHECK(resumed.code == 0);
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("doctor names what can be used and why not the rest") {
  const Outcome outcome = rematch("doctor");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("2.11.0") && Catch::Contains("device cuda"));
  const Json json = Json::parse(rematch("doctor --json").out);
  CHECK(json["engine"] == "ok");
  CHECK(json["devices"]["cpu"] == "ok");
}

TEST_CASE("a profile is measured, searched, and a point of the front is run as predicted") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.json");
  const std::string front = scratch.file("front.json");
  const Outcome profiled = rematch("profile " + kTinyLlama + "--steps 3 -o " + profile);
  CAPTURE(profiled.err);
  REQUIRE(profiled.code == 0);
  CHECK_THAT(profiled.err, Catch::Contains("measured, medians over 3 steps"));
  const Outcome searched =
      rematch("search " + kTinyLlama + "--points 3 --profile " + profile + " -o " + front);
  CAPTURE(searched.err);
  REQUIRE(searched.code == 0);
  CHECK_THAT(searched.out, Catch::Contains("predicted step") && Catch::Contains("Verdict: "));
  CHECK(rematch("validate " + profile + " " + front).code == 0);
  const Json point = read_json_file(front)["points"][0];
  const Outcome described =
      rematch("describe llama_small " + kTinyLlama.substr(20) + " --plan " + front + "#0");
  CAPTURE(described.err);
  CHECK(described.code == 0);
  const Outcome run =
      rematch("run " + kTinyLlama + "--steps 2 --blocks 0 --json --plan " + front + "#0");
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  const Json measured = Json::parse(run.out)["points"].back();
  CHECK(measured["plan_sha256"] == point["plan_sha256"]);
  CHECK(measured["memory"]["peak_allocated_bytes"] == point["predicted_peak_allocated_bytes"]);
  check_usage_error("run " + kTinyLlama + "--plan " + front, "say which point of it");
  check_usage_error("run " + kTinyLlama + "--plan " + front + "#99", "has no point 99");
  check_usage_error("run " + kTinyDit + "--plan " + front + "#0", "was made for llama_small");
  check_usage_error("search " + kTinyDit + "--profile " + profile, "rematch profile");
}

TEST_CASE("the largest load is not searched by times that are measured for one") {
  check_usage_error(
      "search --model llama_small --device cpu --batch 1:8 --maximize tokens_per_second",
      "a measured profile is of one");
}

TEST_CASE("a profile measured on a few layers is one of the whole model") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.json");
  const std::string six_layers =
      "--model llama_small --layers 6 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 16 --batch "
      "1 ";
  const Outcome profiled =
      rematch("profile " + six_layers + "--measure-layers 2 --steps 2 -o " + profile);
  CAPTURE(profiled.err);
  REQUIRE(profiled.code == 0);
  CHECK_THAT(profiled.err, Catch::Contains("measured on 2 layers, the others as these"));
  CHECK(read_json_file(profile)["measured_layers"] == 2);
  CHECK(rematch("validate " + profile).code == 0);
  CHECK(rematch("search " + six_layers + "--points 2 --profile " + profile).code == 0);
  check_usage_error("profile " + six_layers + "--measure-layers 6",
                    "is not fewer than the 6 layers");
  check_usage_error("profile " + six_layers + "--measure-layers 0", "not in range");
  check_usage_error("profile " + six_layers + "--measure-layers 2 --device h100",
                    "a roofline is of");
  check_usage_error("profile --model deepseek_small --measure-layers 1", "measure more than 1");
}

TEST_CASE("a budget is met, or refused with the lowest peak and exit code 3") {
  const Outcome met =
      rematch("search " + kTinyLlama + "--device l40s --max-slowdown 20% --json --baselines full");
  REQUIRE(met.code == 0);
  const Json json = Json::parse(met.out);
  CHECK(json["answer"]["time_source"] == "roofline");
  CHECK(json["baselines"].size() == 1);
  const std::string lowest =
      std::to_string(json["points"][0]["predicted_peak_allocated_bytes"].get<std::int64_t>());
  const Outcome fits =
      rematch("search " + kTinyLlama + "--device l40s --json --budget " + lowest + "B");
  CHECK(fits.code == 0);
  CHECK(Json::parse(fits.out)["answer"]["predicted_peak_allocated_bytes"].dump() == lowest);
  const Outcome infeasible = rematch("search " + kTinyLlama + "--device l40s --budget 1kB");
  CHECK(infeasible.code == 3);
  CHECK_THAT(infeasible.err, Catch::Contains("no plan fits") && Catch::Contains("lowest peak is"));
}

// Activations are most of its peak, so there is a front.
const std::string kSearchedLlama =
    "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 64 "
    "--optimizer none ";

// The logits of 256 tokens over 4096 words are most of what this step needs.
TEST_CASE("a search whose peak is in the loss hints at fused ops, with what is predicted of both") {
  const std::string model =
      "--model llama_small --layers 1 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 64 --batch "
      "4 --vocab 4096 --dtype bfloat16 ";
  const auto peak_of_full = [&model](const std::string& ops) {
    const std::string text = rematch("predict " + model + "--policy full --ops " + ops).out;
    const std::size_t begin = text.find("peak ") + 5;
    return text.substr(begin, text.find(" in the") - begin);
  };
  const std::string how = "--device h100 --hull --points 2 --baselines full ";
  CHECK_THAT(rematch("search " + model + how).err,
             Catch::Contains("hint: peaks lie in the loss") && Catch::Contains("--ops fused") &&
                 Catch::Contains("the peak of full is " + peak_of_full("fused") +
                                 " with it instead of " + peak_of_full("eager")));
  CHECK(rematch("search " + model + how + "--ops fused").err.empty());
  // The peak is in a block; and in the head, where fused ops do not lower it.
  const std::string wide =
      "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 2048 --tokens 64 "
      "--batch 4 --vocab 256 --dtype bfloat16 ";
  CHECK(rematch("search " + wide + how).err.empty());
  CHECK(rematch("search " + kTinyDit + "--dtype bfloat16 " + how).err.empty());
  // A stored trace names no model to take other ops of.
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + model + "-o " + trace).code == 0);
  CHECK(rematch("search --trace " + trace + " " + how).err.empty());
}

// Whether times agree is a question for an idle machine; peaks and what is in the file are not.
TEST_CASE("a measured front has each peak as predicted, and goes on where it was") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.json");
  REQUIRE(
      rematch("profile " + kSearchedLlama + "--batch 4 --steps 2 --threads 1 -o " + profile).code ==
      0);
  const std::string front = scratch.file("front.json");
  const std::string search = "search " + kSearchedLlama + "--batch 4 --profile " + profile +
                             " --measure 4 --hull --baselines full,save_mm --steps 2 "
                             "--blocks 2 --threads 1 -o " +
                             front;
  const Outcome outcome = rematch(search);
  CAPTURE(outcome.out, outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("hypervolume of") && Catch::Contains("own points"));
  const Json json = read_json_file(front);
  CHECK(json.at("complete") == true);
  const Json& measurement = json.at("measurement");
  CHECK(measurement.at("num_equal_peaks") == measurement.at("num_measured"));
  CHECK(measurement.at("anchors").size() == 3);
  CHECK(measurement.at("baseline_families").size() == 2);
  CHECK(measurement.at("measured_hypervolume_ratio").is_number());
  int num_measured = 0;
  for (const Json& point : json.at("points")) {
    if (point.at("measured").is_null()) continue;
    ++num_measured;
    CHECK(point["measured"]["peak_equals_prediction"] == true);
    CHECK(point["measured"]["step_time_ns"] > 0);
    CHECK(point["measured"]["step_time_error_ratio"].is_number());
  }
  CHECK(num_measured == 4);
  for (const Json& baseline : json.at("baselines")) CHECK(baseline["measured"]["status"] == "ok");
  CHECK(rematch("validate " + front).code == 0);
  // A second start takes every run from disk: the very same figures.
  REQUIRE(rematch(search).code == 0);
  CHECK(read_json_file(front) == json);
}

TEST_CASE("what --measure cannot do is said in one line") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  const std::string search = "search " + kTinyLlama;
  check_usage_error(search + "--device cuda --measure 4",
                    "give --profile FILE from rematch profile --device cuda");
  check_usage_error(search + "--device h100 --measure 4", "not on h100");
  check_usage_error("search --trace " + trace + " --device cpu --measure 4", "give --model");
  check_usage_error(search + "--device cpu --measure 4 --world 8", "leave out one of them");
  const std::string roofline = scratch.file("roofline.json");
  REQUIRE(rematch("profile " + kTinyLlama + "--device h100 -o " + roofline).code == 0);
  check_usage_error(search + "--profile " + roofline + " --measure 4", "has times of h100");
  check_usage_error("search " + kTinyDit + "--profile " + roofline + " --measure 4",
                    "make the profile again");
}

TEST_CASE("the largest batch within a budget is the last whose lowest peak fits") {
  const std::string search =
      "search " + kSearchedLlama +
      "--device h100 --schedule whole_region --maximize tokens_per_second --json --batch ";
  const Outcome all = rematch(search + "1:8 --budget 1GiB");
  CAPTURE(all.err);
  REQUIRE(all.code == 0);
  const Json roomy = Json::parse(all.out);
  CHECK(roomy.at("largest_that_fits") == 8);
  CHECK(roomy.at("tried").size() == 8);
  const auto first_rate = roomy["tried"][0]["predicted_tokens_per_second"].get<double>();
  CHECK_THAT(all.err, Catch::Contains("batch 1: " + std::to_string(std::llround(first_rate)) +
                                      " tokens/s, peak "));
  // What batch 2 needs under the fastest of its plans is more than it needs at least.
  const auto bytes = roomy["tried"][1]["predicted_peak_allocated_bytes"].get<std::int64_t>();
  const Outcome tight = rematch(search + "1:8 --budget " + std::to_string(bytes) + "B");
  REQUIRE(tight.code == 0);
  const Json json = Json::parse(tight.out);
  CHECK(json.at("largest_that_fits") >= 2);
  CHECK(json.at("largest_that_fits") < 8);
  for (const Json& load : json.at("tried")) {
    if (!load["saves"].is_null()) CHECK(load["predicted_peak_allocated_bytes"] <= bytes);
  }
  const Outcome none = rematch(search + "4:8 --budget 1KiB");
  CHECK(none.code == 3);
  CHECK_THAT(none.err, Catch::Contains("batch 4: no plan fits") &&
                           Catch::Contains("not even batch 4 fits 1.00 KiB"));
}

}  // namespace
}  // namespace rematch::testing
