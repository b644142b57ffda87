// Tests the subcommands of `rematch sweep`: their plans, reports and job scripts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "harness/sweep/claim_text.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

constexpr const char* kSweep =
    R"({"schema": "rematch.sweep/1.0", "run": ["--steps", "2", "--rounds", "1"],
  "groups": [{"model": "llama_small", "policies": ["none", "full"],
              "fixed": {"layers": 2, "heads": 2, "dim": 16, "batch": 1},
              "axes": {"tokens": [8, 16]}, "seeds": [0, 1]}]})";

std::string write_sweep(const ScratchFolder& scratch, const std::string& from = "",
                        const std::string& to = "") {
  std::string text = kSweep;
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  std::ofstream(scratch.file("sweep.json")) << text;
  return scratch.file("sweep.json");
}

TEST_CASE("the plan of a sweep has the same bytes each time, and is never overwritten") {
  const ScratchFolder scratch;
  const std::string file = write_sweep(scratch);
  const Outcome first = rematch("sweep plan " + file + " " + scratch.file("one"));
  CHECK(first.code == 0);
  CHECK_THAT(first.out, Catch::Contains("4 comparisons, 8 points"));
  CHECK(rematch("sweep plan " + file + " " + scratch.file("two")).code == 0);
  const std::string plan = text_of(scratch.file("one/plan.json"));
  CHECK(plan == text_of(scratch.file("two/plan.json")));
  CHECK(rematch("sweep plan " + file + " " + scratch.file("one")).code == 0);
  CHECK(rematch("validate " + file + " " + scratch.file("one/plan.json")).code == 0);
  write_sweep(scratch, "[8, 16]", "[8, 32]");
  check_usage_error("sweep plan " + file + " " + scratch.file("one"), "holds another plan");
  CHECK(text_of(scratch.file("one/plan.json")) == plan);
}

// For a video model, `rematch run` prints the grid that --tokens chooses. A sweep would print one
// grid for each of its comparisons.
TEST_CASE("sweep plan prints no token grids if a sweep varies the tokens of a video model") {
  const ScratchFolder scratch;
  write_sweep(scratch, "llama_small", "wan_small");
  Json sweep = read_json_file(scratch.file("sweep.json"));
  sweep["groups"][0].erase("fixed");
  sweep["groups"][0]["axes"] = {{"tokens", {64, 128}}};
  std::ofstream(scratch.file("sweep.json")) << sweep;
  const Outcome planned =
      rematch("sweep plan " + scratch.file("sweep.json") + " " + scratch.file("one"));
  CHECK(planned.code == 0);
  CHECK_THAT(planned.out, Catch::Contains("4 comparisons"));
  CHECK_THAT(planned.err, !Catch::Contains("token grid"));
}

// Without its policy file, every comparison fails, but the worker tries all of them. The worker
// runs `/bin/true` instead of a measurement.
TEST_CASE("a worker starts although a policy file of its plan is missing") {
  const ScratchFolder scratch;
  const std::string policy = scratch.file("own.json");
  std::ofstream(policy)
      << R"({"schema": "rematch.policy/1.0", "name": "own", "save": ["aten::mm"]})";
  const std::string sweep = write_sweep(scratch, "\"full\"", "\"" + policy + "\"");
  const std::string folder = scratch.file("one");
  REQUIRE(rematch("sweep plan " + sweep + " " + folder).code == 0);
  std::filesystem::remove(policy);
  CHECK(rematch("sweep run " + folder + " --program /bin/true").code == 5);
  CHECK_THAT(rematch("sweep status " + folder).out, Catch::Contains("4 failed"));
}

// Plans in version 1.0 of the format give times in milliseconds. The command without LibTorch
// predicts no times, so this test invents a time for the first comparison.
TEST_CASE("a sweep whose plan has version 1.0 of the format can be continued") {
  const ScratchFolder scratch;
  const std::string plan = "sweep plan " + write_sweep(scratch) + " " + scratch.file("one");
  REQUIRE(rematch(plan).code == 0);
  const Json current = read_json_file(scratch.file("one/plan.json"));
  CHECK(current["schema"] == "rematch.sweep_plan/1.1");
  CHECK(current["stale_after_ns"] == 180'000'000'000);
  const auto first_version = [&](const Json& time) {
    Json old = current;
    old["schema"] = "rematch.sweep_plan/1.0";
    old["stale_after_ms"] = 180'000;
    old.erase("stale_after_ns");
    for (Json& comparison : old["comparisons"]) {
      comparison["predicted_time_ms"] = nullptr;
      comparison.erase("predicted_time_ns");
    }
    old["comparisons"][0]["predicted_time_ms"] = time;
    old.erase("id");
    old["id"] = sha256_hex(old.dump());
    std::ofstream(scratch.file("one/plan.json")) << old.dump();
    return old["id"].get<std::string>();
  };
  const std::string id = first_version(nullptr);
  const std::string bytes = text_of(scratch.file("one/plan.json"));
  CHECK(rematch("validate " + scratch.file("one/plan.json")).code == 0);
  const Outcome again = rematch(plan);
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Catch::Contains("plan " + id.substr(0, 12)));
  CHECK(text_of(scratch.file("one/plan.json")) == bytes);

  first_version(9000);
  const Outcome status = rematch("sweep status " + scratch.file("one") + " --json");
  REQUIRE(status.code == 0);
  CHECK(Json::parse(status.out)["predicted_time_left_ns"] == 9'000'000'000);
  first_version("soon");
  check_usage_error("sweep status " + scratch.file("one"), "predicted_time_ms");
}

TEST_CASE("a folder name that is too long is a usage error in every sweep subcommand") {
  const ScratchFolder scratch;
  const std::string folder = scratch.file(std::string(300, 'x'));
  for (const std::string& verb :
       {"plan " + write_sweep(scratch), std::string("merge"), std::string("status"),
        std::string("emit --engine local"), std::string("run --program /bin/true")}) {
    CAPTURE(verb);
    check_usage_error("sweep " + verb + " " + folder, "File name too long");
  }
}

// The flags must be checked before the folder is created. Otherwise workers could start with an
// unusable plan.
TEST_CASE(
    "unusable values for a sweep's memory and reserve are refused before the plan is written") {
  const ScratchFolder scratch;
  const std::string plan = "sweep plan " + write_sweep(scratch) + " " + scratch.file("folder");
  const auto refuse = [&](const std::string& flags, const std::string& part) {
    check_usage_error(plan + flags, part);
    CHECK_FALSE(std::filesystem::exists(scratch.file("folder")));
  };
  refuse(" --memory 2GiB --reserve 2GiB", "a reserve of 2.00 GiB uses up");
  refuse(" --memory 2GiB --reserve 3GiB --json", "a reserve of 3.00 GiB uses up");
  refuse(" --memory 80", "'80' has no unit");
  refuse(" --memory 80GiB --reserve 2", "'2' has no unit");
  refuse(" --reserve 2GiB", "--reserve requires --memory");
  const Outcome fits = rematch(plan + " --memory 80GiB --reserve 2GiB");
  CHECK(fits.code == 0);
  CHECK_THAT(fits.out, Catch::Contains("do not fit into 78.0 GiB completely"));
}

TEST_CASE("the one-line error for an unusable sweep file names the file and the JSON path") {
  const ScratchFolder scratch;
  const std::string folder = " " + scratch.file("folder");
  const auto refuse = [&](const char* from, const char* to, const std::string& part) {
    const std::string file = write_sweep(scratch, from, to);
    check_usage_error("sweep plan " + file + folder, file + ": " + part);
    CHECK_FALSE(std::filesystem::exists(scratch.file("folder/plan.json")));
  };
  refuse("tokens", "tokenz", "groups[0].axes.tokenz: no axis 'tokenz'; did you mean 'tokens'?");
  refuse("[8, 16]", "[8, \"x\"]", "groups[0].axes.tokens[1]: found \"x\"");
  refuse("llama_small", "lama_small", "groups[0].model: unknown model");
  refuse("--steps", "--stepz", "run: rematch run has no flag '--stepz'; did you mean '--steps'?");
  refuse("\"2\", \"--rounds\"", "\"two\", \"--rounds\"", "run: ");
  refuse("\"--steps\", \"2\"", "\"--optimizer\", \"adam\"", "run: unknown optimizer 'adam'");
  check_usage_error("sweep plan " + scratch.file("none.json") + folder, "none.json");
  check_usage_error("sweep plan " + write_sweep(scratch) + folder + " --card h10",
                    "unknown device");
  check_usage_error("sweep", "needs a subcommand");
  check_usage_error("sweep pln", "unknown subcommand 'pln'; did you mean 'plan'?");
  check_usage_error("sweep plan a b c", "too many for sweep plan");
}

// A folder that looks like a finished sweep: it has a plan, and an invented report for each
// comparison.
struct FinishedSweep {
  explicit FinishedSweep(const std::string& from = "", const std::string& to = "",
                         std::vector<std::string> policies = {"none", "full"})
      : file(write_sweep(scratch, from, to)) {
    REQUIRE(make_plan(folder).code == 0);
    plan = Json::parse(text_of(folder + "/plan.json"));
    for (const Json& comparison : plan["comparisons"]) {
      Report report;
      report.provenance = sample_provenance();
      report.provenance.command = {"rematch", "run", comparison["id"]};
      for (const std::string& policy : policies) {
        PointRecord point = sample_point(policy);
        point.identity.model = comparison["model"];
        point.identity.dimensions.clear();
        for (const auto& [name, size] : comparison["dimensions"].items()) {
          point.identity.dimensions[name] = size;
        }
        point.identity.dtype = comparison["dtype"];
        point.identity.seed = comparison["seed"];
        report.points.push_back(point);
      }
      std::ofstream(report_file(comparison)) << report_to_json(report).dump();
    }
  }
  std::string report_file(const Json& comparison) const {
    return folder + "/reports/" + comparison["id"].get<std::string>() + ".json";
  }
  Outcome make_plan(const std::string& into) const {
    return rematch("sweep plan " + file + " " + into);
  }
  Outcome merge() const {
    return rematch("sweep merge " + folder + " -o " + scratch.file("all.json"));
  }

  ScratchFolder scratch;
  std::string file;
  std::string folder = scratch.file("folder");
  Json plan;
};

TEST_CASE("the merged report of a sweep is in the plan's order, with the same bytes each time") {
  const FinishedSweep sweep;
  const Outcome merged = sweep.merge();
  CAPTURE(merged.err);
  CHECK(merged.code == 0);
  const std::string bytes = text_of(sweep.scratch.file("all.json"));
  const Json report = Json::parse(bytes);
  REQUIRE(report["points"].size() == 8);
  for (std::size_t index = 0; index < 8; ++index) {
    const Json& comparison = sweep.plan["comparisons"][index / 2];
    CHECK(report["points"][index]["identity"]["seed"] == comparison["seed"]);
    CHECK(report["points"][index]["identity"]["dimensions"] == comparison["dimensions"]);
    CHECK(report["points"][index]["policy"] == (index % 2 == 0 ? "none" : "full"));
  }
  CHECK(rematch("validate " + sweep.scratch.file("all.json")).code == 0);
  CHECK(sweep.merge().code == 0);
  CHECK(text_of(sweep.scratch.file("all.json")) == bytes);
}

// 500 comparisons of 20 points each.
TEST_CASE("prints how long sweep plan and sweep merge take for 10,000 points", "[.speed]") {
  std::string seeds = "[0";
  for (int seed = 1; seed < 250; ++seed) seeds += ", " + std::to_string(seed);
  std::vector<std::string> policies = {"none", "full"};
  for (int layer = 2; layer < 20; ++layer) {
    policies.push_back("layers([" + std::to_string(layer) + "])");
  }
  const FinishedSweep sweep("[0, 1]", seeds + "]", policies);
  const auto seconds_of = [](const auto& call) {
    const auto start = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (int repeat = 0; repeat < 3; ++repeat) {
    const std::string other = sweep.scratch.file("plan" + std::to_string(repeat));
    const double planned = seconds_of([&] { CHECK(sweep.make_plan(other).code == 0); });
    const double merged = seconds_of([&] { CHECK(sweep.merge().code == 0); });
    const auto bytes = std::filesystem::file_size(sweep.scratch.file("all.json"));
    std::printf("10,000 points: plan %.2f s; merge %.2f s, %.1f MB\n", planned, merged,
                static_cast<double>(bytes) / 1e6);
  }
}

TEST_CASE("sweep merge reports which comparison is missing and why, and merges the others") {
  const FinishedSweep sweep;
  const Json& comparison = sweep.plan["comparisons"][2];
  const std::string id = comparison["id"];
  std::filesystem::remove(sweep.report_file(comparison));
  Outcome merged = sweep.merge();
  CHECK(merged.code == 5);
  CHECK_THAT(merged.err, Catch::Contains("missing: " + id + " --model llama_small") &&
                             Catch::Contains("not measured yet") &&
                             Catch::Contains("1 of 4 comparisons are missing"));
  CHECK(Json::parse(text_of(sweep.scratch.file("all.json")))["points"].size() == 6);
  ClaimHolder holder;
  holder.plan = sweep.plan["id"];
  holder.host = "node7";
  std::ofstream(sweep.folder + "/claims/" + id + ".g1")
      << holder_line(holder) << beat_line() << end_line(ClaimState::kSkipped, "80 GiB; 48 GiB");
  merged = sweep.merge();
  CHECK(merged.code == 5);
  CHECK_THAT(merged.err, Catch::Contains("skipped: 80 GiB; 48 GiB"));
  std::ofstream(sweep.folder + "/claims/" + id + ".g2") << holder_line(holder) << beat_line();
  CHECK(Json::parse(text_of(sweep.scratch.file("all.json")))["unmeasured"] ==
        Json::array({{{"model", "llama_small"},
                      {"dimensions", comparison["dimensions"]},
                      {"dtype", "float32"},
                      {"seed", comparison["seed"]},
                      {"policies", {"none", "full"}},
                      {"outcome", "skipped"},
                      {"reason", "80 GiB; 48 GiB"}}}));
  CHECK(rematch("validate " + sweep.scratch.file("all.json")).code == 0);
  CHECK_THAT(rematch("render " + sweep.scratch.file("all.json")).out,
             Catch::Contains("80&nbsp;GiB; 48&nbsp;GiB"));
  const Json status = Json::parse(rematch("sweep status --json " + sweep.folder).out);
  CHECK(status["counts"]["done"] == 3);
  CHECK(status["counts"]["held"] == 1);
  CHECK(status["comparisons"][2]["host"] == "node7");
  CHECK(status["comparisons"][2]["generation"] == 2);
}

TEST_CASE("a foreign file in a sweep's folder is reported with a one-line message") {
  const FinishedSweep sweep;
  const std::string arguments = "sweep merge " + sweep.folder;
  const std::string file = sweep.report_file(sweep.plan["comparisons"][1]);
  const std::string good = text_of(file);
  const auto put = [](const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  };
  put(file, good.substr(0, good.size() / 2));
  check_usage_error(arguments, file);
  put(file, text_of(sweep.report_file(sweep.plan["comparisons"][0])));
  check_usage_error(arguments, file + ": points[0] differs in model, shape, dtype or seed");
  put(file, good);
  const std::string claim = sweep.plan["comparisons"][1]["id"].get<std::string>() + ".g1";
  std::filesystem::remove(file);
  put(sweep.folder + "/claims/" + claim, "{\"schema\": 3}\n");
  for (const char* verb : {"sweep merge ", "sweep status ", "sweep run --program /bin/true "}) {
    check_usage_error(verb + sweep.folder, "claims/" + claim + ": ");
  }
  ClaimHolder other;
  other.plan = "0123";
  put(sweep.folder + "/claims/" + claim, holder_line(other));
  check_usage_error(arguments, "claims/" + claim + ": belongs to plan '0123'");
}

TEST_CASE("every sweep subcommand refuses a plan that is missing, changed or of another version") {
  const FinishedSweep sweep;
  const std::string file = sweep.folder + "/plan.json";
  for (const char* verb : {"sweep merge ", "sweep status ", "sweep run --program /bin/true "}) {
    CAPTURE(verb);
    Json json = sweep.plan;
    const auto refuse = [&](const std::string& part) {
      std::ofstream(file) << json.dump();
      check_usage_error(verb + sweep.folder, file + ": " + part);
    };
    json["schema"] = "rematch.sweep_plan/2.0";
    refuse("file has schema");
    json = sweep.plan;
    json["tool_version"] = "0.0.9";
    json.erase("id");
    json["id"] = sha256_hex(json.dump());
    refuse("made by rematch 0.0.9, but this is");
    json = sweep.plan;
    json["comparisons"][0]["seed"] = 5;
    refuse("id: does not match the plan");
    json = sweep.plan;
    json["comparisons"][0].erase("id");
    refuse("");
    std::ofstream(file) << "{";
    check_usage_error(verb + sweep.folder, file);
    std::filesystem::remove(file);
    check_usage_error(verb + sweep.folder, "there is no plan in");
  }
}

TEST_CASE(
    "a job script has the options that Slurm needs, and a job that would stay pending forever is "
    "refused") {
  const FinishedSweep sweep;
  // On this cluster, arrays have at most 8 tasks. It has two partitions, with time limits of an
  // hour and of two days.
  const std::string bin = sweep.scratch.file("bin");
  std::filesystem::create_directory(bin);
  std::ofstream(bin + "/scontrol")
      << "#!/bin/sh\ncase \"$*\" in\n"
         "'show config') echo 'MaxArraySize            = 8' ;;\n"
         "'-o show partition') echo 'PartitionName=low Default=YES MaxTime=01:00:00 X=1'\n"
         "  echo 'PartitionName=long Default=NO MaxTime=2-00:00:00 X=1' ;;\nesac\n";
  std::filesystem::permissions(bin + "/scontrol", std::filesystem::perms::owner_all);
  const std::string path = "PATH=" + bin + ":$PATH ";
  const auto emit = [&](const std::string& flags) {
    return rematch("sweep emit " + sweep.folder + " --engine slurm " + flags, path);
  };
  const Outcome script = emit("--workers 8 --gres gpu:h100:1 --time 45min --slurm account=me");
  CAPTURE(script.err);
  REQUIRE(script.code == 0);
  for (const char* line :
       {"#SBATCH --array=0-7\n", "#SBATCH --gres=gpu:h100:1\n", "#SBATCH --time=45\n",
        "#SBATCH --signal=B:USR1@60\n", "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n",
        "#SBATCH --account=me\n", " --for 2580s &\n", "/log/%A_%a.txt\n",
        "scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n"}) {
    CHECK_THAT(script.out, Catch::Contains(line));
  }
  std::ofstream(sweep.scratch.file("job.sh")) << script.out;
  CHECK(std::system(("bash -n " + sweep.scratch.file("job.sh")).c_str()) == 0);
  const auto refuse = [&](const std::string& flags, const std::string& part) {
    const Outcome outcome = emit(flags);
    CAPTURE(flags, outcome.err);
    CHECK(outcome.code == 2);
    CHECK(is_one_clear_line(outcome));
    CHECK_THAT(outcome.err, Catch::Contains(part));
  };
  refuse("--workers 9", "--workers 9 is above this cluster's 8 (MaxArraySize)");
  refuse("--time 61min", "above the 60min of partition 'low', so the job would never start");
  CHECK(emit("--time 61min --slurm partition=long").code == 0);
  refuse("--time 3000min --slurm partition=long", "above the 2880min of partition 'long'");
  refuse("--slurm partition=none", "no partition 'none'");
  refuse("--time 2min", "leaves a worker 0 s");
  refuse("--slurm 'comment=a b'", "has a space");
  check_usage_error("sweep emit " + sweep.folder + " --engine slrm", "did you mean 'slurm'?");
}

TEST_CASE("the local script starts workers and returns their worst exit code") {
  const FinishedSweep sweep;
  const Json& comparison = sweep.plan["comparisons"][0];
  std::filesystem::remove(sweep.report_file(comparison));
  const std::string program = sweep.scratch.file("worker");
  std::ofstream(program) << "#!/bin/sh\nexec " << binary() << " \"$@\" --program /bin/false\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string script =
      rematch("sweep emit " + sweep.folder + " --workers 3 --program " + program).out;
  std::ofstream(sweep.scratch.file("job.sh")) << script;
  CHECK(run_program("bash", sweep.scratch.file("job.sh")).code == 5);
  CHECK_THAT(rematch("sweep status " + sweep.folder).out,
             Catch::StartsWith("4 comparisons: 3 done, 1 failed"));
}

}  // namespace
}  // namespace rematch::testing
