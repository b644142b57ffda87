// Tests the binary end to end: it measures a profile, searches a front and runs points of the
// front.
#include <csignal>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/predict/device/ceilings.h"
#include "tests/harness/cli/command_line.h"
#include "tests/harness/cli/tiny_models.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_ceilings.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

TEST_CASE("a search uses a measured profile, and a point of its front runs as predicted") {
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
      rematch("run " + kTinyLlama + "--steps 2 --rounds 0 --json --plan " + front + "#0");
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  const Json measured = Json::parse(run.out)["points"].back();
  CHECK(measured["plan_sha256"] == point["plan_sha256"]);
  CHECK(measured["memory"]["peak_allocated_bytes"] == point["predicted_peak_allocated_bytes"]);
  check_usage_error("run " + kTinyLlama + "--plan " + front, "choose a point");
  check_usage_error("run " + kTinyLlama + "--plan " + front + "#99", "has no point 99");
  check_usage_error("run " + kTinyDit + "--plan " + front + "#0", "was made for llama_small");
  check_usage_error("search " + kTinyDit + "--profile " + profile, "rematch profile");
}

// The link is so fast that copies are almost free. The plan with the lowest peak therefore
// offloads.
TEST_CASE("a point that offloads runs as predicted, including its bytes on the host") {
  const ScratchFolder scratch;
  const std::string model =
      "--model wan_small --layers 4 --dim 32 --heads 2 --ffn 64 --frames 4 --height 8 --width 8 "
      "--batch 1 ";
  const std::string front = scratch.file("front.json");
  const Outcome searched =
      rematch("search " + model + "--device h100 --offload --link-rate 900TB/s -o " + front);
  CAPTURE(searched.err);
  REQUIRE(searched.code == 0);
  CHECK_THAT(searched.out, Catch::Contains("900000.0 GB/s back (--link-rate 900TB/s)") &&
                               Catch::Contains("compute hides all copies"));
  CHECK(rematch("validate " + front).code == 0);
  const Json point = read_json_file(front)["points"][0];
  const Json& host = point.at("predicted_host");
  CHECK(host.at("copied_out_bytes") == host.at("copied_back_bytes"));
  CHECK(host.at("copy_time_ns").get<std::int64_t>() >= 0);
  const Outcome run =
      rematch("run " + model + "--steps 2 --rounds 0 --json --plan " + front + "#0");
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  const Json measured = Json::parse(run.out)["points"].back();
  CHECK(measured["plan_sha256"] == point["plan_sha256"]);
  const Json& memory = measured["memory"];
  CHECK(memory["peak_allocated_bytes"] == point["predicted_peak_allocated_bytes"]);
  CHECK(memory["host"]["peak_bytes"] == host.at("peak_bytes"));
  CHECK(memory["host"]["copied_out_bytes"] == host.at("copied_out_bytes"));
  CHECK(measured["parity"]["gradient_bits_equal"] == true);
}

TEST_CASE("a search with offloading takes the copy rate from a file or a flag") {
  const std::string search = "search " + kTinyLlama;
  check_usage_error(search + "--device h100 --link-rate 50GB/s", "give it with --offload");
  check_usage_error(search + "--device h100 --offload --link-rate 50GB", "50GB/s, 24GiB/s");
  check_usage_error(search + "--device h100 --offload --link-rate 0GB/s", "a size above 0");
  check_usage_error(search + "--device h100 --offload --for torch",
                    "--for searches no plans that offload");
  check_usage_error(search + "--device cpu --offload", "give --link-rate 25GB/s");
}

TEST_CASE("a search for the best batch size refuses times that were measured for a single size") {
  check_usage_error(
      "search --model llama_small --device cpu --batch 1:8 --maximize tokens_per_second",
      "a measured profile contains the times of one size");
}

TEST_CASE("a profile measured on a few layers is valid for the whole model") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.json");
  const std::string six_layers =
      "--model llama_small --layers 6 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 16 --batch "
      "1 ";
  const Outcome profiled =
      rematch("profile " + six_layers + "--measure-layers 2 --steps 2 -o " + profile);
  CAPTURE(profiled.err);
  REQUIRE(profiled.code == 0);
  CHECK_THAT(profiled.err,
             Catch::Contains("measured on 2 layers; the other layers reuse these times"));
  CHECK(read_json_file(profile)["measured_layers"] == 2);
  CHECK(rematch("validate " + profile).code == 0);
  CHECK(rematch("search " + six_layers + "--points 2 --profile " + profile).code == 0);
  check_usage_error("profile " + six_layers + "--measure-layers 6",
                    "must be fewer than the 6 layers");
  check_usage_error("profile " + six_layers + "--measure-layers 0",
                    "--measure-layers must be 1 to");
  check_usage_error("profile " + six_layers + "--measure-layers 2 --device h100",
                    "a roofline covers");
  check_usage_error("profile --model deepseek_small --measure-layers 1", "measure more than 1");
}

TEST_CASE("a search meets its budget, or names the lowest peak and exits with code 3") {
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

// Activations take most of this model's peak, so the search finds plans with different peaks.
const std::string kSearchedLlama =
    "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 64 "
    "--optimizer none ";

// 8 billion parameters with AdamW's state, in float32, need 128 GiB before any activation.
TEST_CASE("a measurement is checked against the available memory before it starts") {
  const std::string model = "--model llama3_8b --tokens 128 --device cpu";
  for (const std::string command : {"profile ", "search "}) {
    const Outcome refused = rematch(command + model);
    CAPTURE(command, refused.err);
    CHECK(refused.code == 2);
    CHECK_THAT(refused.err, Catch::Contains("the predicted peak is ") &&
                                Catch::Contains("available on this machine") &&
                                Catch::Contains("--force"));
  }
}

// A single weight takes 256 GiB. The profile claims that it was measured on this CPU, but it was
// not.
TEST_CASE("points of a front that exceed the machine's memory do not start") {
  const ScratchFolder scratch;
  const std::string model = "--model llama_small --dim 65536 --ffn 1048576 --layers 2 ";
  const std::string file = scratch.file("profile.json");
  REQUIRE(rematch("profile " + model + "--device h100 -o " + file).code == 0);
  Json profile = Json::parse(text_of(file));
  profile["device"] = "cpu";
  profile["source"] = "measured";
  write_json_file(file, profile);
  const Outcome refused =
      rematch("search " + model + "--measure 3 --profile " + file, "ulimit -v 16000000; ");
  CAPTURE(refused.err);
  CHECK(refused.code == 2);
  CHECK(refused.out.empty());
  CHECK_THAT(refused.err, Catch::Contains("no point can be run; the smallest, ") &&
                              Catch::Contains("the predicted peak is ") &&
                              Catch::Contains("available on this machine: ") &&
                              Catch::Contains("--force"));
}

// The peak of this step is in the loss: most of it is the logits of 256 tokens and 4096 classes.
TEST_CASE("if memory peaks in the loss, a search suggests fused ops and states both peaks") {
  const std::string model =
      "--model llama_small --layers 1 --dim 32 --heads 2 --kv-heads 1 --ffn 64 --tokens 64 --batch "
      "4 --vocab 4096 --dtype bfloat16 ";
  const auto falls = [](const std::string& of_model) {
    const auto peak_of_full = [&](const std::string& ops) {
      const std::string text = rematch("predict " + of_model + "--policy full --ops " + ops).out;
      const std::string schedule = "on_demand";  // text before the peak in the table
      const std::size_t begin = text.find_first_not_of(' ', text.find(schedule) + schedule.size());
      return text.substr(begin, text.find("  ", begin) - begin);
    };
    return "the peak of policy full falls from " + peak_of_full("eager") + " to " +
           peak_of_full("fused");
  };
  const std::string how = "--device h100 --hull --points 2 --baselines full ";
  CHECK_THAT(rematch("search " + model + how).err, Catch::Contains("hint: peaks are in the loss") &&
                                                       Catch::Contains("--ops fused") &&
                                                       Catch::Contains(falls(model)));
  CHECK(rematch("search " + model + how + "--ops fused").err.empty());
  // This model has its peak in a block, and fused ops do not lower it.
  const std::string wide =
      "--model llama_small --layers 2 --dim 32 --heads 2 --kv-heads 1 --ffn 2048 --tokens 64 "
      "--batch 4 --vocab 256 --dtype bfloat16 ";
  CHECK(rematch("search " + wide + how).err.empty());
  // A video model has no logits. Its peak falls because the fused optimizer needs no float32 copy
  // of a gradient.
  const std::string video = kTinyDit + "--dtype bfloat16 ";
  CHECK_THAT(rematch("search " + video + how).err,
             Catch::Contains("hint: --ops fused needs less memory: " + falls(video)));
  // The ops of a stored trace are fixed, so the search gives no hint about fused ops.
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + model + "-o " + trace).code == 0);
  CHECK(rematch("search --trace " + trace + " " + how).err.empty());
}

// The logits of 2048 tokens and 4096 classes take 16 MiB in bfloat16. Keeping them saves a matmul,
// so the search keeps them if they fit.
TEST_CASE("with measured ceilings, a front has plans whose loss keeps its logits, and others") {
  const ScratchFolder scratch;
  const std::string card = scratch.file("card.json");
  write_json_file(card, ceilings_to_json(made_up_ceilings()));
  const std::string model =
      "--model llama_small --layers 1 --dim 384 --heads 4 --kv-heads 1 --ffn 64 --tokens 512 "
      "--batch 4 --vocab 4096 --dtype bfloat16 --ops fused ";
  const std::string front = scratch.file("front.json");
  const std::string search = "search " + model + "--device h200 --points 2 --baselines full -o " +
                             front + " --overwrite --ceilings " + card;
  const auto answer = [&](const std::string& flags, const std::string& hint) {
    const Outcome outcome = rematch(search + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    CHECK_THAT(outcome.err, Catch::Contains(hint));
    return read_json_file(front);
  };
  const Json joined = answer("", "points keep the logits of the loss (--kept-logits 1)");
  CHECK_FALSE(joined["dimensions"].contains("kept_logits"));
  // The plan's own dimensions choose the model.
  int num_keeping = 0;
  for (std::size_t index = 0; index < joined["points"].size(); ++index) {
    CAPTURE(index);
    const Json& point = joined["points"][index];
    const bool keeps = point["plan"]["dimensions"].contains("kept_logits");
    CHECK((point["saves"].get<std::string>().find("the loss keeps its logits") !=
           std::string::npos) == keeps);
    num_keeping += keeps ? 1 : 0;
    const Outcome run =
        rematch("run --steps 1 --rounds 0 --json --plan " + front + "#" + std::to_string(index));
    CAPTURE(run.err);
    REQUIRE(run.code == 0);
    CHECK(Json::parse(run.out)["points"].back()["memory"]["peak_allocated_bytes"] ==
          point["predicted_peak_allocated_bytes"]);
  }
  CHECK(num_keeping > 0);
  CHECK(static_cast<std::size_t>(num_keeping) < joined["points"].size());
  CHECK(rematch("validate " + front).code == 0);

  const Json kept = answer(" --kept-logits 1", "");
  CHECK(kept["dimensions"]["kept_logits"] == 1);
  const Json recomputed = answer(" --kept-logits 0", "");
  CHECK_FALSE(recomputed["dimensions"].contains("kept_logits"));
  const auto time = [](const Json& record) {
    return record["points"].back()["predicted_step_time_ns"].get<std::int64_t>();
  };
  const auto peak = [](const Json& record) {
    return record["points"].back()["predicted_peak_allocated_bytes"].get<std::int64_t>();
  };
  CHECK(time(kept) < time(recomputed));
  CHECK(peak(kept) > peak(recomputed));
  CHECK(time(joined) == time(kept));
  CHECK(joined["points"][0]["predicted_peak_allocated_bytes"] ==
        recomputed["points"][0]["predicted_peak_allocated_bytes"]);
  const Json tight = answer(" --budget " + std::to_string(peak(recomputed)) + "B",
                            "the answer computes them again");
  CHECK(tight["answer"]["plan_sha256"] == recomputed["points"].back()["plan_sha256"]);
  const Json wide =
      answer(" --budget " + std::to_string(peak(kept)) + "B", "the answer keeps them");
  CHECK(wide["answer"]["plan_sha256"] == kept["points"].back()["plan_sha256"]);
  const Json slow = answer(" --max-slowdown 50%", "logits of the loss");
  CHECK(slow["answer"]["predicted_step_time_ns"].get<double>() <=
        1.5 * static_cast<double>(time(kept)));

  // Logits of 16 tokens are small, so the loss keeps them in any case.
  const Outcome small =
      rematch("search " + kTinyLlama +
              "--ops fused --dtype bfloat16 --device h200 --points 2 --ceilings " + card);
  CAPTURE(small.err);
  CHECK(small.code == 0);
  CHECK(small.err.find("logits") == std::string::npos);

  // A batch is chosen with the better treatment of its logits.
  const auto best_rate = [&](const std::string& flags) {
    const Outcome outcome =
        rematch("search " + model.substr(0, model.find("--batch")) +
                "--vocab 4096 --dtype bfloat16 --ops fused --device h200 --ceilings " + card +
                " --maximize tokens_per_second --batch 4:4 --json" + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out)["tried"][0];
  };
  const Json chosen = best_rate("");
  CHECK(chosen["predicted_step_time_ns"] == time(kept));
  CHECK_THAT(chosen["saves"].get<std::string>(), Catch::Contains("the loss keeps its logits"));
  CHECK(best_rate(" --kept-logits 0")["predicted_step_time_ns"] == time(recomputed));
}

// Step times are only reliable on an idle machine, so this test checks only peaks and the file.
TEST_CASE(
    "the points of a measured front have their predicted peaks, and a rerun reuses the points") {
  const ScratchFolder scratch;
  const std::string profile = scratch.file("profile.json");
  REQUIRE(
      rematch("profile " + kSearchedLlama + "--batch 4 --steps 2 --threads 1 -o " + profile).code ==
      0);
  const std::string front = scratch.file("front.json");
  const std::string search = "search " + kSearchedLlama + "--batch 4 --profile " + profile +
                             " --measure 4 --hull --baselines full,save_mm --steps 2 "
                             "--rounds 2 --threads 1 -o " +
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
  // The second command reuses all stored measurements, so it gives the same figures.
  REQUIRE(rematch(search).code == 0);
  CHECK(read_json_file(front) == json);
}

// The test waits for the front's file, which is written before the first point is prepared.
TEST_CASE("Ctrl-C between the search and the first measured point prints the front") {
  const ScratchFolder scratch;
  const std::string front = scratch.file("front.json");
  const Outcome outcome = run_program(
      "{",
      "pid=$!; until [ -s " + front +
          " ]; do sleep 0.01; done; kill -INT $pid; wait $pid; code=$?; cat " +
          scratch.file("out") + "; exit $code; }",
      std::string(binary()) +
          " search --model llama_small --layers 4 --device cpu --measure 3 --steps 2 -o " + front +
          " >" + scratch.file("out") + " 2>/dev/null & ");
  CHECK(outcome.code == 128 + SIGINT);
  CHECK_THAT(outcome.out, Catch::Contains("Verdict: "));
}

TEST_CASE("--measure rejects unsupported requests with a one-line error") {
  const ScratchFolder scratch;
  const std::string trace = scratch.file("trace.json");
  REQUIRE(rematch("trace " + kTinyLlama + "-o " + trace).code == 0);
  const std::string search = "search " + kTinyLlama;
  check_usage_error(search + "--device cuda --measure 4",
                    "give --profile FILE from rematch profile --device cuda");
  check_usage_error(search + "--device h100 --measure 4", "not on h100");
  check_usage_error("search --trace " + trace + " --device cpu --measure 4", "give --model");
  check_usage_error(search + "--device cpu --measure 4 --world 8",
                    "leave out --measure or the layout");
  const std::string roofline = scratch.file("roofline.json");
  REQUIRE(rematch("profile " + kTinyLlama + "--device h100 -o " + roofline).code == 0);
  check_usage_error(search + "--profile " + roofline + " --measure 4", "has times of h100");
  check_usage_error("search " + kTinyDit + "--profile " + roofline + " --measure 4",
                    "make the profile again");
}

TEST_CASE(
    "the search for the largest batch finds the last batch size whose lowest peak fits the "
    "budget") {
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
  // The optimizer runs once for four micro-batches, so a second has more tokens than without them.
  const Outcome several = rematch(search + "1:1 --budget 1GiB --accumulate 4");
  CAPTURE(several.err);
  REQUIRE(several.code == 0);
  const Json four = Json::parse(several.out);
  CHECK(four["tried"][0]["predicted_tokens_per_second"].get<double>() > first_rate);
  // The budget is the peak of the fastest plan for batch 2. Plans with a lower peak exist, so a
  // larger batch may fit too.
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

// An H100 has 79.1 GiB. Driver and context take 0.5 GiB. By default, tensors may use the rest
// divided by 1.2.
TEST_CASE("the search for the largest batch leaves the reserve free") {
  const std::string search = "search " + kSearchedLlama +
                             "--device h100 --schedule whole_region --maximize tokens_per_second "
                             "--json --batch 1:2 ";
  const auto budget_of = [&](const std::string& flags) {
    const Outcome outcome = rematch(search + flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return Json::parse(outcome.out).at("budget_bytes").get<std::int64_t>();
  };
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  const std::int64_t whole = budget_of("--reserve 0B");
  CHECK(budget_of("--reserve 2GiB") == whole - 2 * kGiB);
  CHECK(std::abs(budget_of("") - (whole - kGiB / 2) * 5 / 6) <= 1);
  CHECK(budget_of("--budget 3GiB") == 3 * kGiB);
  CHECK(budget_of("--budget 3GiB --reserve 1GiB") == 2 * kGiB);
  CHECK_THAT(rematch(search + "--budget 3GiB --reserve 1GiB").err,
             Catch::Contains("tensors may take 2.00 GiB: 3.00 GiB less"));
  check_usage_error(search + "--budget 2GiB --reserve 2GiB", "uses up the whole budget");
  check_usage_error(search + "--reserve 200GiB", "a reserve of 200 GiB uses up the whole budget");
  check_usage_error(search + "--reserve 2", "'2' has no unit");
}

}  // namespace
}  // namespace rematch::testing
