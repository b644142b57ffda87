// rematch search on stored traces: what no build needs LibTorch for.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "policies/search/front_json.h"
#include "policies/trace/file.h"
#include "policies/trace/json.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/made_up_profile.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

std::string stored(const ScratchFolder& scratch, const Trace& trace, const std::string& name) {
  const std::string file = scratch.file(name);
  write_json_file(file, trace_to_json(trace));
  return file;
}

TEST_CASE("a front that is searched from stored files is complete, and measures nothing") {
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

TEST_CASE("profiles and traces that a search cannot use are refused in one line") {
  const ScratchFolder scratch;
  const Trace trace = toy_llama({.layers = 2});
  const std::string file = stored(scratch, trace, "trace.json");
  const std::string search = "search --trace " + file;

  const Trace longer = toy_llama({.layers = 2, .tokens = 16});
  const std::string other = scratch.file("other.json");
  write_json_file(other, profile_to_json(made_up_profile(longer, 1), longer));
  check_usage_error(search + " --profile " + other, "make the profile again");

  Trace dynamic = trace;
  dynamic.ops[2].name = "aten::nonzero";
  check_usage_error("search --device h100 --trace " + stored(scratch, dynamic, "dynamic.json"),
                    "op 2 (aten::nonzero): the shape of its result depends on data");

  Trace flat = trace;
  flat.blocks.clear();
  check_usage_error("search --device h100 --trace " + stored(scratch, flat, "flat.json"),
                    "has no blocks, so there is nothing to choose");
}

TEST_CASE("PyTorch's planners are baselines by name and without, and wrong budgets are refused") {
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
                    "a memory budget is a share from 0 to 1");
  check_usage_error(search + " --baselines pytorch_dp",
                    "pytorch_dp needs a budget from 0 to 1: write pytorch_dp(0.5)");
  check_usage_error(search + " --baselines 'full,fulll'", "did you mean");
}

TEST_CASE("more ranks hold less each, and the front says how many there are") {
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
  // A rank's plans are plans of the model itself.
  CHECK(shared["points"][0]["plan"]["trace_sha256"] == alone.at("trace_sha256"));
}

// Starts a search and sends it a signal after a while. Its exit code; 128 + signal where the signal
// itself ended it.
int interrupted_search(const std::string& trace, const std::string& front, int signal_number,
                       std::chrono::milliseconds after) {
  const pid_t child = fork();
  if (child == 0) {
    if (freopen("/dev/null", "w", stdout) == nullptr) _exit(99);
    if (freopen("/dev/null", "w", stderr) == nullptr) _exit(99);
    execl(binary(), binary(), "search", "--trace", trace.c_str(), "--device", "h100", "--points",
          "3000", "-o", front.c_str(), static_cast<char*>(nullptr));
    _exit(99);
  }
  std::this_thread::sleep_for(after);
  kill(child, signal_number);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("Ctrl-C leaves the best front so far, and a kill nothing that is half written") {
  const ScratchFolder scratch;
  const std::string file = stored(scratch, toy_llama({.layers = 80, .tokens = 64}), "trace.json");
  int num_fronts = 0;
  // Before the search has begun a signal just ends it; afterwards it leaves a front. Sanitizers and
  // a busy machine make the beginning long.
  for (int wait = 50; wait <= 25'600 && num_fronts == 0; wait *= 2) {
    CAPTURE(wait);
    const std::string front = scratch.file("front" + std::to_string(wait) + ".json");
    const int code = interrupted_search(file, front, SIGINT, std::chrono::milliseconds(wait));
    CHECK((code == 0 || code == 128 + SIGINT));
    if (!std::filesystem::exists(front)) continue;
    const FrontRecord record = front_from_json(read_json_file(front));
    CHECK(record.front.is_complete == (code == 0));
    CHECK(record.front.points.size() >= 2);
    if (code != 0) ++num_fronts;
  }
  CHECK(num_fronts == 1);
  const std::string killed = scratch.file("killed.json");
  CHECK(interrupted_search(file, killed, SIGKILL, std::chrono::milliseconds(300)) == 128 + SIGKILL);
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(killed).parent_path())) {
    CAPTURE(entry.path().string());
    if (entry.path().extension() == ".json") CHECK_NOTHROW(read_json_file(entry.path().string()));
  }
}

}  // namespace
}  // namespace rematch::testing
