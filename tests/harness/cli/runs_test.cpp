// Tests `rematch run`: its reports, its gate, its shards, rejected input, faults and signals.
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

TEST_CASE("gate passes a run that repeats its reference, and fails if an expected count is wrong") {
  const ScratchFolder scratch;
  const std::string report = scratch.file("report.json");
  REQUIRE(rematch("run " + kTinyLlama +
                  "--policy none,full --steps 2 --rounds 0 --repeat-reference 3 -o " + report)
              .code == 0);
  const std::string gate = "gate " + report + " --reference " + report;
  for (const char* tier : {"bitwise", "envelope"}) {
    const Outcome passed = rematch(gate + " --loss " + tier);
    CAPTURE(tier, passed.out, passed.err);
    CHECK(passed.code == 0);
    CHECK_THAT(passed.out, Catch::Contains("PASS: 1 of 1 points pass."));
  }
  // The model has two layers and runs two steps: 4 attentions in forward, and 4 in recompute.
  CHECK(rematch(gate + " --expect attention_forward=8,recompute.attention_forward=4").code == 0);
  CHECK(rematch(gate + " --expect attention_forward=4").code == 3);
  CHECK(rematch(gate + " --loss equivalence").code == 4);  // policy `full` ran only once, so its
                                                           // noise is unknown
  CHECK(rematch("validate " + report).code == 0);
}

TEST_CASE("rematch run counts ops, compares bits and writes a valid report") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome = rematch("run " + kTinyDit +
                                  "--policy none,full,attn_only --schedule whole_region --steps 3 "
                                  "--rounds 2 -o " +
                                  file);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(rematch("validate " + file).code == 0);
  const Json report = read_json_file(file);
  // 12 attentions: self and cross attention in each of 2 layers and 3 steps.
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
    CHECK(record["warm_up_steps"] == 2);
    CHECK(attention(point, "backward", "attention_backward") == 12);
    CHECK(record["parity"]["loss_bits_equal"] == true);
    CHECK(record["parity"]["gradient_bits_equal"] == true);
    CHECK(record["memory"]["peak_allocated_bytes"] ==
          record["memory"]["predicted_peak_allocated_bytes"]);
    CHECK(record["time"]["samples_ns"].size() == 2);
    CHECK(record["time"]["control"].is_object() == (point == 0));
  }
  const Json& control = report["points"][0]["time"]["control"];
  REQUIRE(control["interval"].size() == 2);
  CHECK(control["interval"][0] <= control["ratio"]);
  CHECK(control["ratio"] <= control["interval"][1]);
}

// Every child process exceeds its time limit of 1 ms.
TEST_CASE("a long run first prints how long it may take") {
  const Outcome refused =
      rematch("run --model wan_small --policy none,full,save_mm --timeout 1ms --retries 0");
  const std::string line = "rematch: this run takes up to ";
  CAPTURE(refused.err);
  CHECK(refused.err.starts_with(line));
  CHECK_THAT(refused.err, Catch::Contains(" on an idle machine (estimate)\n1/"));
  const Outcome quick =
      rematch("run --model wan_small --policy none --steps 1 --rounds 0 --layers 2");
  CHECK(quick.code == 0);
  CHECK_THAT(quick.err, !Catch::Contains("takes up to"));
}

TEST_CASE("a run writes its report even without standard streams") {
  const ScratchFolder scratch;
  const std::string command = std::string(binary()) + " run " + kTinyLlama +
                              "--policy none,full --steps 1 --rounds 0 -o " +
                              scratch.file("report.json");
  CHECK(run_program("sh", "-c '" + command + " <&-'").code == 0);
  // All three standard streams are closed, so printing the table fails. If the report's file got
  // the descriptor of the closed stdout, the table would be written into the report.
  CHECK(run_program("sh", "-c '" + command + " <&- >&- 2>&-'").code == 1);
  CHECK(rematch("validate " + scratch.file("report.json")).code == 0);
}

TEST_CASE("a run never replaces a report of another model") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  REQUIRE(rematch("run " + kTinyLlama + "--policy none --steps 1 --rounds 0 -o " + file).code == 0);
  check_usage_error(
      "run --model wan_small --layers 2 --policy none --steps 1 --rounds 0 -o " + file,
      "is for model llama_small, and this command writes a file for model wan_small");
}

TEST_CASE("a refused mode becomes a point of the report, and the run continues") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome = rematch(
      "run --model wan_small --layers 2 --policy none,fastvideo:ops,full --steps 1 "
      "--rounds 0 -o " +
      file);
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.out, Catch::Contains("refused: ") && Catch::Contains("ops_block"));
  const Json points = read_json_file(file)["points"];
  REQUIRE(points.size() == 3);
  CHECK(points[0]["status"] == "ok");
  CHECK(points[1]["status"] == "ok");
  CHECK(points[2]["policy"] == "fastvideo:ops");
  CHECK(points[2]["status"] == "refused");
  CHECK(rematch("validate " + file).code == 0);
  CHECK(rematch("render " + file + " -o " + scratch.file("page.html")).code == 0);
  CHECK(rematch("compare " + file + " " + file).code == 0);
  check_usage_error("run --model wan_small --layers 2 --policy none,fastvideo:ops --steps 1",
                    "ops_block does what was intended");
}

TEST_CASE("a mode of another system runs under that system's schedule") {
  const Outcome outcome = rematch(
      "run --model llama_small --layers 2 --policy none,full,titan:full --steps 1 --rounds 0 "
      "--json");
  REQUIRE(outcome.code == 0);
  const Json points = Json::parse(outcome.out)["points"];
  REQUIRE(points.size() == 3);
  CHECK(points[1]["schedule"] == "on_demand");
  CHECK(points[2]["schedule"] == "whole_region");
  CHECK_THAT(rematch("run --model llama_small --layers 2 --policy none,titan:full --steps 1 "
                     "--rounds 0 --schedule on_demand")
                 .out,
             Catch::Contains("this engine only"));
}

TEST_CASE("a run with fused ops reports and counts the fused ops, and holds the predicted bytes") {
  for (const std::string& model : {kTinyLlama, kTinyDit}) {
    const Outcome outcome = rematch("run " + model +
                                    "--ops fused --policy none,full --schedule both --steps 2 "
                                    "--rounds 0 --json");
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

TEST_CASE("a plan file runs as its policy, and only on its own model") {
  const ScratchFolder scratch;
  const std::string plan = scratch.file("plan.json");
  REQUIRE(rematch("plan " + kTinyLlama + "--policy save_mm -o " + plan).code == 0);
  const Outcome outcome =
      rematch("run " + kTinyLlama + "--plan " + plan + " --steps 1 --rounds 0 --json");
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  const Json report = Json::parse(outcome.out);
  REQUIRE(report["points"].size() == 2);  // the reference always runs, so there are two points
  CHECK(report["points"][0]["policy"] == "none");
  CHECK(report["points"][1]["policy"] == "save_mm");

  const Outcome other = rematch("run " + kTinyDit + "--plan " + plan + " --steps 1 --rounds 0");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, Catch::Contains("was made for llama_small, and this is wan_small"));
}

// The math kernel and flash attention round differently, so their bits differ. But with either
// kernel, a policy does not change the bits.
TEST_CASE("a second attention kernel gives a second point, with the same executed ops and bytes") {
  const std::string run = "run " + kTinyLlama + "--policy attn_only --steps 1 --rounds 0 --json";
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

// Each task of a job array may run a different, complete command. So a run must not take its shard
// from the variables of the array.
TEST_CASE("in a job array a run measures all points unless --shard is given") {
  const ScratchFolder scratch;
  const std::string task =
      "SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=0 "
      "SLURM_ARRAY_TASK_MAX=1 ";
  const std::string command = "run " + kTinyLlama +
                              "--policy none,full,attn_only --steps 1 --rounds 0 -o " +
                              scratch.file("mine.json");
  REQUIRE(rematch(command, task).code == 0);
  CHECK(read_json_file(scratch.file("mine.json")).at("points").size() == 3);
  check_usage_error(command + " --shard slurm", "SLURM_ARRAY_TASK_ID is not set");
  // In a script, a variable that is not set becomes an empty value.
  check_usage_error(command + " --shard \"$SHARD_OF_NOBODY\"", "'' is not a shard");
}

TEST_CASE("the shards of a run merge into the whole run, and a missing shard is reported") {
  const ScratchFolder scratch;
  const std::string command = "run " + kTinyLlama +
                              "--policy none,full,attn_only,save_mm --steps 2 --rounds 0 -o " +
                              scratch.file("mine.json");
  REQUIRE(rematch(command + " --shard 0/2").code == 0);
  const std::string first = scratch.file("mine.shard-0-of-2.json");
  const Outcome half = rematch("merge " + first + " -o " + scratch.file("half.json"));
  CHECK(half.code == 5);
  CHECK_THAT(half.err, Catch::Contains("missing: attn_only, on_demand, key ") &&
                           Catch::Contains("1 of 4 points are missing"));

  REQUIRE(rematch(command + " --shard slurm",
                  "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=2 SLURM_ARRAY_TASK_MIN=1 "
                  "SLURM_ARRAY_TASK_MAX=2 ")
              .code == 0);
  const std::string second = scratch.file("mine.shard-1-of-2.json");
  CHECK_THAT(read_json_file(second)["reproduce"].get<std::string>(),
             Catch::StartsWith(std::string(binary()) + " run --model ") &&
                 Catch::EndsWith(" --shard 1/2") && !Catch::Contains("slurm"));
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

TEST_CASE("bad inputs are refused with a one-line error") {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("empty.txt"));
  const std::string steps = " --steps 1 --rounds 0";
  check_usage_error("run --model lama_small --policy full" + steps, "did you mean 'llama_small'");
  check_usage_error("run " + kTinyLlama + "--policy ful" + steps, "did you mean 'full'");
  check_usage_error("run " + kTinyLlama + "--policy full --device cpuu" + steps,
                    "did you mean 'cpu'");
  check_usage_error("run " + kTinyLlama + "--policy full --schedule demand" + steps,
                    "did you mean 'on_demand'");
  check_usage_error("run " + kTinyLlama + "--policy full --ops fusd" + steps,
                    "allowed: eager, fused");
  check_usage_error("run " + kTinyLlama + "--policy full --attention cudnn" + steps,
                    "unknown attention backend 'cudnn' for float32 on cpu; allowed: flash, math");
  check_usage_error("run " + kTinyLlama + "--policy full --optimizer sgd" + steps, "adamw");
  check_usage_error("run " + kTinyLlama + "--policy full --steps 0", "--steps");
  check_usage_error("run " + kTinyLlama + "--policy full --timeout 10" + steps, "unit");
  check_usage_error("run " + kTinyLlama + "--policy full --rounds 8:4", "'8:4'");
  check_usage_error("run " + kTinyLlama + "--policy full --rounds many", "such as 4:8");
  check_usage_error("run " + kTinyLlama + "--policy full --precision 0%", "'0%'");
  check_usage_error("run " + kTinyLlama + "--policy full --precision 0.02", "such as 2%");
  check_usage_error("run " + kTinyLlama + "--policy full --allocator caching" + steps,
                    "--allocator requires device cuda");
  check_usage_error("run " + kTinyLlama + "--policy full --snapshot x.pickle" + steps,
                    "--snapshot needs a CUDA device; device is cpu");
  check_usage_error("run " + kTinyLlama + "--policy full --cuda-graph" + steps,
                    "--cuda-graph needs a CUDA device; device is cpu; leave it out, or use");
  check_usage_error(
      "run --model llama_small --parallel tp=2 --policy full --device cuda --cuda-graph",
      "single rank only");
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

TEST_CASE("device cuda on a machine without CUDA is refused with the reason") {
  const Json doctor = Json::parse(rematch("doctor --json").out);
  const auto state = doctor.at("devices").at("cuda").get<std::string>();
  if (state == "ok") return;
  check_usage_error("run " + kTinyLlama + "--policy full --device cuda", state);
}

// A single weight takes 256 GiB. Some machines overcommit memory and would try to allocate it; the
// ulimit prevents this.
const std::string kTooLarge =
    "run --model llama_small --dim 65536 --ffn 1048576 --steps 1 --rounds 0 ";

TEST_CASE("a run that exceeds the machine's memory does not start") {
  const Outcome outcome = rematch(kTooLarge + "--policy full", "ulimit -v 16000000; ");
  CHECK(outcome.code == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, Catch::Contains("no point fits; the smallest, ") &&
                              Catch::Contains("the predicted peak is ") &&
                              Catch::Contains("available on this machine: ") &&
                              Catch::Contains("--force"));
  CHECK_THAT(outcome.err, !Catch::Contains("exact"));
}

// A merged report also includes points that no shard measured, so the shard must say why it did not
// measure a point.
TEST_CASE("a shard skips its points if they exceed the machine's memory") {
  const Outcome outcome =
      rematch(kTooLarge + "--policy none,full --shard 0/2 --json", "ulimit -v 16000000; ");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = Json::parse(outcome.out);
  CHECK_FALSE(report["points"].empty());
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "skipped");
    CHECK_THAT(point["reason"].get<std::string>(),
               Catch::Contains("the predicted peak is ") && Catch::Contains("--force"));
  }
}

TEST_CASE("a point that runs out of memory is a result, and the run has a special exit code") {
  const Outcome outcome =
      rematch(kTooLarge + "--policy full --force --json", "ulimit -v 16000000; ");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = Json::parse(outcome.out);
  CHECK(report["points"][0]["status"] == "oom");
  CHECK_THAT(report["points"][0]["reason"].get<std::string>(), Catch::Contains("out of memory"));
  CHECK(report["points"][0]["failure"]["requested_bytes"] >= std::int64_t{1} << 34);
}

// With a learning rate of 1e30, parameters become so large that their squares overflow float32.
TEST_CASE("a point whose loss is not finite fails, even if its bits are equal") {
  const Outcome outcome = rematch("run " + kTinyLlama +
                                  "--policy full --optimizer 'adamw(learning_rate=1e30)' "
                                  "--steps 4 --rounds 1 --json");
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

TEST_CASE("a point that exceeds the time limit is a result") {
  const Outcome outcome =
      rematch("run " + kTinyLlama +
              "--policy full --steps 100000 --rounds 0 --timeout 1s --retries 0 --json");
  CHECK(outcome.code == 5);
  CHECK_THAT(outcome.err, !Catch::Contains("measuring it again"));
  CHECK(Json::parse(outcome.out)["points"][0]["status"] == "timeout");
}

// Kills the first child process that measures.
const std::string kKillFirstChild =
    "i=0; child=; while [ -z \"$child\" ] && [ $i -lt 6000 ]; do sleep 0.01; i=$((i+1)); "
    "for each in $(cat /proc/[0-9]*/stat 2>/dev/null | "
    "awk -v parent=$pid '$4 == parent { print $1 }'); do "
    "grep -qs /proc/self/fd/ /proc/$each/cmdline && child=$each; done; done; kill -KILL $child; ";

Outcome run_with_a_killed_child(const std::string& flags) {
  const ScratchFolder scratch;
  Outcome outcome =
      rematch("run " + kTinyLlama + "--policy none,full --steps 20 --rounds 0 --json " + flags +
              " >" + scratch.file("out") + " 2>" + scratch.file("err") + " & pid=$!; " +
              kKillFirstChild + "wait $pid");
  outcome.out = text_of(scratch.file("out"));
  outcome.err = text_of(scratch.file("err"));
  return outcome;
}

TEST_CASE("a killed child is started once more and the point is measured") {
  const Outcome outcome = run_with_a_killed_child("");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("none: killed while memory was free") &&
                              Catch::Contains("measuring it again"));
  const Json report = Json::parse(outcome.out);
  CHECK(report["points"][0]["status"] == "ok");
  CHECK(report["points"][1]["parity"]["reference"] == "none");
}

TEST_CASE(
    "without retries a killed child counts as a crash, and policy full becomes the reference") {
  const Outcome outcome = run_with_a_killed_child("--retries 0");
  CAPTURE(outcome.err);
  CHECK(outcome.code == 5);
  const Json report = Json::parse(outcome.out);
  CHECK(report["points"][0]["status"] == "crash");
  CHECK(report["points"][0]["failure"]["signal"] == SIGKILL);
  CHECK(report["points"][1]["parity"]["reference"] == "full");
}

// The signal arrives while a child is measuring. Finished measurements must be kept, and no file
// may be incomplete.
TEST_CASE("an interrupted run leaves no partial file and can be resumed") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const std::string command =
      "run " + kTinyLlama + "--policy none,full --steps 200 --rounds 2 -o " + file;
  Outcome interrupted;
  interrupted = rematch(command + " & pid=$!; i=0; while [ ! -d " + scratch.file("report.points") +
                        " ] || [ -z \"$(ls " + scratch.file("report.points") +
                        ")\" ]; do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || break; done; "
                        "kill -TERM $pid; wait $pid");
  CHECK(interrupted.code == 128 + SIGTERM);
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
  CHECK_THAT(resumed.err,
             Catch::Contains(" parts are reused from " + scratch.file("report.points")) &&
                 Catch::Contains(": ok, reused\n"));
  CHECK(std::filesystem::exists(file));
}

// One pass has ended when the signal arrives. With -o, the run keeps this pass in a folder. Without
// -o there is no such folder.
TEST_CASE("an interrupted run says what it keeps, with and without -o") {
  const ScratchFolder scratch;
  const std::string said = scratch.file("said");
  const auto interrupted = [&](const std::string& flags) {
    // Removes the output of the previous run. Otherwise the loop below would find it and end at
    // once.
    std::filesystem::remove(said);
    rematch(
        "run " + kTinyLlama + "--policy none,full --steps 200 --rounds 0 " + flags + " 2>" + said +
        " & pid=$!; i=0; until grep -qs exact " + said +
        "; do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || break; done; kill -TERM $pid; wait $pid");
    const std::string text = text_of(said);
    return text.substr(text.rfind("rematch: "));
  };
  CHECK(interrupted("") ==
        "rematch: interrupted; nothing is kept; use -o FILE to make a run resumable\n");
  const std::string mine = scratch.file("mine.json");
  const std::string kept = "rematch: interrupted; finished work is kept in " +
                           scratch.file("mine.points") + "; rerun the command ";
  CHECK(interrupted("-o " + mine) ==
        kept + "to resume; " + mine + " is the report of 1 of 2 points\n");
  CHECK(interrupted("--fresh -o " + mine) ==
        kept + "without --fresh to resume; " + mine + " is from an earlier run and is kept\n");
}

// There are two shards. The first is interrupted after its first point. The second ends normally.
TEST_CASE(
    "the report of an interrupted shard has the finished points, and merges with the reports of "
    "other shards") {
  const ScratchFolder scratch;
  const std::string said = scratch.file("said");
  const auto quoted = [&](const std::string& share, const char* steps) {
    return std::string("run ") + kTinyLlama +
           "--policy 'none,full,attn_only,nth_last(1)' --rounds 0 --steps " + steps + " -o " +
           scratch.file("mine.json") + " --shard " + share;
  };
  REQUIRE(rematch(quoted("1/2", "300")).code == 0);
  const Outcome outcome =
      rematch(quoted("0/2", "300") + " 2>" + said + " & pid=$!; i=0; until grep -qs exact " + said +
              "; do sleep 0.02; i=$((i+1)); [ $i -lt 3000 ] || break; done; kill -TERM $pid; "
              "wait $pid");
  CHECK(outcome.code == 128 + SIGTERM);
  const std::string partial = scratch.file("mine.shard-0-of-2.json");
  REQUIRE(std::filesystem::exists(partial));
  CHECK(rematch("validate " + partial).code == 0);
  const auto policies_in = [](const std::string& file) {
    std::set<std::string> policies;
    const Json report = Json::parse(text_of(file));
    for (const Json& point : report["points"]) policies.insert(point["policy"]);
    return policies;
  };
  const std::string other = scratch.file("mine.shard-1-of-2.json");
  std::set<std::string> expected = policies_in(partial);
  CHECK(expected.size() >= 1);
  CHECK(expected.size() < 4);
  CHECK(Json::parse(text_of(partial))["planned"].size() == 4);
  expected.merge(policies_in(other));
  const std::string all = scratch.file("all.json");
  const Outcome merged = rematch("merge " + partial + " " + other + " -o " + all);
  CAPTURE(merged.err);
  CHECK(merged.code == (expected.size() == 4 ? 0 : 5));
  CHECK(policies_in(all) == expected);
}

// Edits a file of policy `none`. Its rounds then seem to come from one start of the command, and
// the rounds of policy `full` and of the control from another start. Two commands that write into
// one folder could leave such files.
TEST_CASE("rounds from two separate starts are not paired but measured again") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const std::string command =
      "run " + kTinyLlama + "--policy none,full --steps 2 --rounds 2 -o " + file;
  REQUIRE(rematch(command).code == 0);
  const auto starts_of = [&file](std::size_t point) {
    return Json::parse(text_of(file))["points"][point]["time"]["starts"];
  };
  const Json first = starts_of(0);
  CHECK(first == starts_of(1));
  CHECK(first.size() == 2);
  // All rounds are reused, because nothing is edited yet.
  CHECK_THAT(rematch(command).err, !Catch::Contains(": ok\n"));
  CHECK(starts_of(0) == first);
  int num_edited = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch.file("report.points"))) {
    const std::string name = entry.path().filename();
    if (name.find("-none.round1-") == std::string::npos) continue;
    Json json = Json::parse(text_of(entry.path()));
    for (Json& start : json["point"]["time"]["starts"]) start = "0123456789abcdef";
    std::ofstream(entry.path()) << json;
    ++num_edited;
  }
  REQUIRE(num_edited == 1);
  REQUIRE(rematch(command).code == 0);
  CHECK(starts_of(0) == starts_of(1));
  CHECK(starts_of(0)[0] == first[0]);
  CHECK(starts_of(0)[1] != first[1]);
  CHECK(starts_of(0)[1] != "0123456789abcdef");
}

TEST_CASE(
    "with --in-process, points alternate in one process, and a fresh process is the control") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const std::string command = "run " + kTinyLlama +
                              "--policy none,full,save_mm --steps 1 --timed-steps 3 --rounds 2 "
                              "--in-process -o " +
                              file;
  const Outcome outcome = rematch(command);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK_THAT(outcome.err, Catch::Contains("4/5 3 points alternately in one process: ok"));
  CHECK_THAT(outcome.err, Catch::Contains("5/5 none again, in a fresh process: ok"));
  CHECK(rematch("validate " + file).code == 0);
  const Json report = Json::parse(text_of(file));
  for (const Json& point : report["points"]) {
    CAPTURE(point["policy"]);
    const Json& samples = point["time"]["samples_ns"];
    REQUIRE(samples.size() == 2);
    CHECK(samples[0].size() == 3);
    CHECK(point["time"]["step_ratio"]["interval"].size() == 2);
    CHECK(point["parity"]["gradient_bits_equal"] == true);
    CHECK(point["time"]["control"].is_object() == (point["policy"] == "none"));
  }
  CHECK(report["points"][0]["time"]["control"]["interval"].is_null());
  const Outcome again = rematch(command);
  CHECK(again.code == 0);
  CHECK_THAT(again.err, Catch::Contains("4/5 3 points alternately in one process: ok, reused"));
  CHECK(Json::parse(text_of(file))["points"] == report["points"]);
}

TEST_CASE("a comparison with --times-only has only times") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome =
      rematch("run " + kTinyLlama +
              "--policy none,full --times-only --timed-steps 2 --rounds 2 -o " + file);
  CAPTURE(outcome.err);
  REQUIRE(outcome.code == 0);
  CHECK(rematch("validate " + file).code == 0);
  const Json report = Json::parse(text_of(file));
  for (const Json& point : report["points"]) {
    CHECK(point["status"] == "ok");
    CHECK(point["warm_up_steps"] == 2);
    CHECK(point["time"]["samples_ns"].size() == 2);
    for (const char* absent : {"counts", "memory", "parity", "kernels"}) {
      CAPTURE(absent);
      CHECK(point[absent].is_null());
    }
  }
}

TEST_CASE("contradictory timing flags are refused") {
  const std::string times_only = "run " + kTinyLlama + "--policy none --times-only ";
  check_usage_error(times_only + "--rounds 0", "give 1 or more rounds");
  check_usage_error(times_only + "--repeat-reference 2", "--repeat-reference");
  check_usage_error(times_only + "--device meta", "allowed: cpu and cuda");
  check_usage_error("run " + kTinyLlama + "--policy none --timed-steps 0", "--timed-steps");
  check_usage_error("run --model llama_small --parallel fsdp=2 --policy none --in-process",
                    "--pretend-rank");
}

// The run is killed while a child is measuring, and the child ends with it.
TEST_CASE("a killed run leaves no temporary files") {
  const ScratchFolder scratch;
  const std::string temporary = scratch.file("tmp");
  std::filesystem::create_directory(temporary);
  const std::string points = scratch.file("report.points");
  const Outcome outcome =
      rematch("run " + kTinyLlama + "--policy none,full --steps 300 --rounds 1 -o " +
                  scratch.file("report.json") + " & pid=$!; i=0; until [ -n \"$(ls " + points +
                  " 2>/dev/null)\" ]; do sleep 0.05; i=$((i+1)); [ $i -lt 1200 ] || break; done; "
                  "kill -KILL $pid; wait $pid",
              "TMPDIR=" + temporary + " ");
  CHECK(outcome.code == 128 + SIGKILL);
  CHECK(std::filesystem::is_empty(temporary));
  for (const auto& entry : std::filesystem::directory_iterator(points)) {
    CAPTURE(entry.path());
    CHECK(entry.path().extension() == ".json");
  }
}

TEST_CASE("doctor lists the usable devices and prints the same facts as JSON") {
  const Outcome outcome = rematch("doctor");
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("device cuda"));
  const Json json = Json::parse(rematch("doctor --json").out);
  CHECK_THAT(outcome.out,
             Catch::Contains(json["environment"]["libtorch_version"].get<std::string>()));
  CHECK(json["engine"] == "ok");
  CHECK(json["devices"]["cpu"] == "ok");
}

}  // namespace
}  // namespace rematch::testing
