// Sweeps from the command line: their files and plans.
#include <filesystem>
#include <fstream>

#include "policies/trace/json.h"
#include "tests/harness/cli/command_line.h"
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

TEST_CASE("a sweep's plan is the same bytes each time, and stays as it is") {
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
#ifdef REMATCH_LIBTORCH
  const Json json = Json::parse(plan);
  CHECK(json["comparisons"][0]["least_predicted_peak_bytes"] > 0);
  CHECK(json["comparisons"][0]["predicted_time_ms"] > 0);
#endif
  write_sweep(scratch, "[8, 16]", "[8, 32]");
  check_usage_error("sweep plan " + file + " " + scratch.file("one"), "holds another plan");
  CHECK(text_of(scratch.file("one/plan.json")) == plan);
}

TEST_CASE("a sweep file that cannot be used is one line with the file and the path") {
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
  check_usage_error("sweep plan " + scratch.file("none.json") + folder, "none.json");
  check_usage_error("sweep plan " + write_sweep(scratch) + folder + " --card h10",
                    "unknown device");
  check_usage_error("sweep", "needs a verb");
  check_usage_error("sweep pln", "unknown subcommand 'pln'; did you mean 'plan'?");
  check_usage_error("sweep plan a b c", "too many for sweep plan");
}

}  // namespace
}  // namespace rematch::testing
