// Tests the command on the dry CUDA device: counts and bytes, the end and resumption of runs, and
// messages that say that the device is dry.
#include <algorithm>
#include <filesystem>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

const std::string kOnce = "--steps 2 --rounds 0 --json ";

Json report_of(const Outcome& outcome) {
  CAPTURE(outcome.err);
  REQUIRE_FALSE(outcome.out.empty());
  return Json::parse(outcome.out);
}

// Runs the program that is linked without CUDA. If the arguments name the dry device, this program
// starts the program for the dry device.
Outcome rematch_beside(const std::string& arguments) {
  const std::filesystem::path dry = binary();
  const std::filesystem::path plain = dry.parent_path().parent_path() / dry.filename();
  return run_program(plain.string(), arguments);
}

TEST_CASE("doctor lists the dry device and reports that kernel counting works") {
  const Json doctor = Json::parse(rematch("doctor --json", "DRY_CUDA_CARD=a100 ").out);
  CHECK(doctor.at("devices").at("cuda") == "ok");
  CHECK(doctor.at("kernel_counting") == "ok");
  CHECK(doctor.at("environment").at("device") == "dry a100 (no kernel runs)");
  CHECK(doctor.at("environment").at("driver").is_null());
}

TEST_CASE("a build without CUDA starts the command on the dry device, with the requested card") {
  const Outcome outcome =
      rematch_beside("run " + kTinyDit + "--dtype bfloat16 --policy none,full " + kOnce +
                     "--device cuda-dry --card l40s");
  const Json report = report_of(outcome);
  CHECK(outcome.code == 0);
  CHECK(report.at("environment").at("device") == "dry l40s (no kernel runs)");
  for (const Json& point : report.at("points")) {
    CHECK(point.at("device") == "cuda-dry");
    CHECK(point.at("status") == "ok");
    CHECK(point.at("time").is_null());
    CHECK(point.at("parity").is_null());
    CHECK(point.at("steps").empty());
    CHECK(point.at("memory").at("peak_reserved_bytes") >=
          point.at("memory").at("peak_allocated_bytes"));
  }
  const Json& full = report.at("points").at(1).at("kernels").at("launches");
  CHECK(full.at("recompute").dump().find("pytorch_flash::flash_fwd") != std::string::npos);
}

TEST_CASE("the table of a dry run says what the run does not prove, and lists launches by name") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("report.json");
  const Outcome outcome = rematch_beside("run " + kTinyDit + "--policy full --steps 2 " +
                                         "--device cuda-dry -o " + file);
  CAPTURE(outcome.out, outcome.err);
  CHECK(outcome.code == 0);
  CHECK_THAT(outcome.out, Catch::Contains("not proven"));
  CHECK_THAT(outcome.out, Catch::Contains("Kernels launched in 2 steps:"));
  CHECK_THAT(outcome.out, Catch::Contains("fmha_cutlassF_f32_aligned"));
  CHECK(rematch("validate " + file).code == 0);
}

// On these cards LibTorch would choose cuDNN's attention, which the dry device does not have.
TEST_CASE("timed steps run on every card of the dry device") {
  for (const char* card : {"h100", "h200", "l40s", "a100"}) {
    const Outcome outcome = rematch_beside(
        "run " + kTinyLlama + "--dtype bfloat16 --policy none,full --steps 2 --rounds 1 --json " +
        "--times-only --device cuda-dry --card " + card);
    const Json report = report_of(outcome);
    CHECK(outcome.code == 0);
    for (const Json& point : report.at("points")) {
      CAPTURE(card, point.at("reason").dump());
      CHECK(point.at("status") == "ok");
      CHECK(point.at("time").at("attention_backend") == "flash");
    }
  }
}

TEST_CASE("--card requires the dry device and a known card") {
  const std::string run = "run " + kTinyDit + "--policy full " + kOnce;
  for (const auto& [flags, said] : std::vector<std::pair<std::string, std::string>>{
           {"--device cuda-dry --card h10", "did you mean 'h100'"},
           {"--device cpu --card h100", "leave it out"}}) {
    const Outcome outcome = rematch_beside(run + flags);
    CHECK(outcome.code == 2);
    CHECK_THAT(outcome.err, Catch::Contains(said));
  }
}

TEST_CASE("a dry run works on the second of two devices, but not on a third") {
  const std::string run = "run " + kTinyLlama + "--policy none " + kOnce;
  const Outcome second = rematch(run + "--device cuda:1", "DRY_CUDA_DEVICES=2 ");
  CHECK(second.code == 0);
  CHECK(report_of(second).at("environment").at("pci_bus_id") == "0000:02:00.0");
  const Outcome third = rematch(run + "--device cuda:2", "DRY_CUDA_DEVICES=2 ");
  CHECK(third.code == 2);
  CHECK_THAT(third.err, Catch::Contains("the devices here are cuda:0 to cuda:1"));
}

// The CUDA context takes 520 MiB of the device. The model's weights and the optimizer's state fit
// into the remaining memory, but the activations do not.
TEST_CASE("running out of memory on a small device gives a result that names the phase") {
  const Outcome outcome = rematch(
      "run --model llama_small --layers 8 --dim 512 --ffn 2048 --tokens 4096 --batch 16 --policy "
      "none " +
          kOnce + "--device cuda --force",
      "DRY_CUDA_MEMORY_BYTES=4294967296 ");
  CHECK(outcome.code == 5);
  const Json report = report_of(outcome);
  const Json& point = report.at("points").at(0);
  CHECK(point.at("status") == "oom");
  CHECK(point.at("failure").at("phase") == "forward");
  CHECK_THAT(point.at("reason").get<std::string>(), Catch::Contains("out of memory"));
}

TEST_CASE("an interrupted dry run resumes") {
  const ScratchFolder scratch;
  const std::string run = "run " + kTinyLlama + "--policy none,full,attn_only --steps 2 --device " +
                          "cuda -o " + scratch.file("report.json");
  REQUIRE(rematch(run).code == 0);
  const std::string whole = text_of(scratch.file("report.json"));
  std::filesystem::remove(scratch.file("report.json"));
  const auto points = scratch.path() / "report.points";
  std::vector<std::filesystem::path> exact;
  for (const auto& entry : std::filesystem::directory_iterator(points)) {
    if (entry.path().string().find("exact") != std::string::npos) exact.push_back(entry.path());
  }
  REQUIRE(exact.size() == 3);
  std::sort(exact.begin(), exact.end());
  std::filesystem::remove(exact.back());
  const auto kept = std::filesystem::last_write_time(exact.front());
  REQUIRE(rematch(run).code == 0);
  CHECK(std::filesystem::last_write_time(exact.front()) == kept);
  const auto points_of = [](const std::string& text) { return Json::parse(text).at("points"); };
  CHECK(points_of(text_of(scratch.file("report.json"))) == points_of(whole));
}

// Returns the number of NCCL kernels that a phase launched, by kind of collective.
Json collective_launches(const Json& point, const std::string& phase) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"AllGather", "all_gather"},
      {"AllReduce", "all_reduce"},
      {"ReduceScatter", "reduce_scatter"}};
  Json found = Json::object();
  for (const auto& [name, count] : point.at("kernels").at("launches").at(phase).items()) {
    for (const auto& [part, kind] : kinds) {
      if (!name.starts_with("ncclDevKernel_" + part)) continue;
      found[kind] = found.value(kind, 0) + count.get<int>();
    }
  }
  return found;
}

// Runs two ranks, each with its own dry card. c10d's NCCL backend uses the stand-in for NCCL, which
// moves no data.
TEST_CASE("ranks on dry cards launch the predicted collectives, even with offload copies") {
  const std::string split =
      "run --model llama_small --layers 3 --dim 32 --heads 4 --kv-heads 2 --ffn 64 --tokens 16 "
      "--batch 1 --dtype bfloat16 --parallel tp=2,sp ";
  const Outcome outcome = rematch_beside(
      split + "--policy 'none,full,attn_only,offload_inputs(full),offload_saved(attn_only)' " +
      kOnce + "--device cuda-dry");
  const Json report = report_of(outcome);
  CHECK(outcome.code == 0);
  REQUIRE(report.at("points").size() == 5);
  for (const Json& point : report.at("points")) {
    CAPTURE(point.at("policy"), point.at("reason"));
    CHECK(point.at("status") == "ok");
    CHECK(point.at("effect").at("counts_equal_prediction") == true);
    const Json& ranks = point.at("ranks");
    CHECK(ranks.at("collectives") == ranks.at("predicted_collectives"));
    for (const auto& [phase, executed] : ranks.at("collectives").items()) {
      CAPTURE(phase);
      CHECK(collective_launches(point, phase) == executed);
    }
    const Json& memory = point.at("memory");
    CHECK(memory.at("peak_requested_bytes").get<std::int64_t>() -
              memory.at("workspace_bytes").get<std::int64_t>() ==
          memory.at("predicted_peak_requested_bytes"));
    REQUIRE(ranks.at("ranks").size() == 2);
    CHECK(ranks.at("ranks").at(1).at("peak_allocated_bytes") ==
          ranks.at("ranks").at(0).at("peak_allocated_bytes"));
    const bool offloads = point.at("policy").get<std::string>().starts_with("offload");
    REQUIRE(memory.contains("host") == offloads);
    if (!offloads) continue;
    // The times are null, because copies take no time on the dry device.
    CHECK(memory.at("host").at("hidden_time_ns").is_null());
    CHECK(memory.at("host").at("exposed_time_ns").is_null());
  }
  const Json& full = report.at("points").at(1);
  CHECK(full.at("ranks").at("collectives").at("recompute").at("all_gather") == 12);
  CHECK(report.at("points").at(2).at("ranks").at("collectives").at("recompute").empty());
}

// Each rank has its own allocator, and writes a file of its own.
TEST_CASE("each of two ranks writes a snapshot") {
  const ScratchFolder scratch;
  const std::string run =
      "run --model llama_small --layers 2 --dim 32 --heads 4 --kv-heads 2 --ffn 64 --tokens 16 "
      "--batch 1 --parallel tp=2 --policy full " +
      kOnce + "--device cuda-dry --snapshot " + scratch.file("full.pickle");
  const Outcome outcome = rematch_beside(run);
  CAPTURE(outcome.err);
  CHECK(outcome.code == 0);
  for (const char* name : {"full.rank-0-of-2.pickle", "full.rank-1-of-2.pickle"}) {
    CAPTURE(name);
    CHECK_THAT(text_of(scratch.file(name)), Catch::Contains("recompute blocks.0 aten::mm"));
    CHECK_THAT(outcome.err, Catch::Contains("snapshot: " + scratch.file(name)));
  }
  CHECK_FALSE(std::filesystem::exists(scratch.file("full.pickle")));

  const Outcome pretended = rematch_beside(run + " --pretend-rank 1");
  CAPTURE(pretended.err);
  CHECK(pretended.code == 0);
  CHECK(std::filesystem::exists(scratch.file("full.pickle")));
}

// LibTorch's grouped matmul reads on the host in bfloat16 too, except on compute capability 9.0 and
// 10.0.
TEST_CASE("--cuda-graph captures the experts on a card without LibTorch's grouped matmul") {
  const Outcome outcome =
      rematch_beside("run " + kTinyMoe + "--dtype bfloat16 --policy none,full " + kOnce +
                     "--cuda-graph --device cuda-dry --card a100");
  const Json report = report_of(outcome);
  CHECK(outcome.code == 0);
  for (const Json& point : report.at("points")) {
    CAPTURE(point.dump());
    CHECK(point.at("status") == "ok");
    CHECK(point.at("kernels").dump().find("rematch_grouped_gemm") != std::string::npos);
  }
}

// The file claims that its times were measured, on this machine's card or on another card, but they
// were not.
TEST_CASE("times of a different card are refused") {
  const ScratchFolder scratch;
  const std::string file = scratch.file("profile.json");
  REQUIRE(rematch("profile " + kTinyLlama + "--device h100 -o " + file).code == 0);
  Json profile = read_json_file(file);
  profile["source"] = "measured";
  profile["device"] = "cuda";
  const auto search = [&](const std::string& card, const std::string& flags) {
    profile["card"] = card;
    write_json_file(file, profile);
    return rematch("search " + kTinyLlama + "--points 2 --profile " + file + flags,
                   "DRY_CUDA_CARD=l40s ");
  };
  CHECK(search("dry l40s (no kernel runs)", "").code == 0);
  CHECK(search("NVIDIA H100 80GB HBM3", " --any-card").code == 0);
  const Outcome refused = search("NVIDIA H100 80GB HBM3", "");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, Catch::Contains("has times of NVIDIA H100 80GB HBM3, and this machine "
                                          "has dry l40s (no kernel runs); "));
}

TEST_CASE(
    "a request to measure times on the dry device is refused, and the error names the command that "
    "predicts times") {
  const Outcome outcome = rematch("profile " + kTinyLlama + "--device cuda --steps 1");
  CHECK(outcome.code == 2);
  CHECK_THAT(outcome.err, Catch::Contains("has no times"));
  CHECK_THAT(outcome.err, Catch::Contains("--device h100"));
}

}  // namespace
}  // namespace rematch::testing
