// rematch search on stored traces: what no build needs LibTorch for.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
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

// A search whose trace comes through a pipe, so that a test holds it where it likes.
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

  // Waits until it notes a signal instead of ending with it.
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

  // Its exit code; 128 + signal where the signal itself ended it.
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
    REQUIRE(search.is_guarded(SIGINT));  // before it has read the trace
    search.feed(trace);
    const Outcome outcome = search.end_with(SIGINT, std::chrono::milliseconds(wait));
    CAPTURE(outcome.out, outcome.err);
    const FrontRecord record = front_from_json(read_json_file(search.front));
    CHECK(record.front.points.size() >= 2);
    CHECK_THAT(outcome.out, Catch::Contains("Verdict: "));
    // A machine that is fast enough has found all of it.
    const bool is_stopped = wait == 0 || !record.front.is_complete;
    CHECK(outcome.code == (is_stopped ? 128 + SIGINT : 0));
    CHECK(record.front.is_complete == !is_stopped);
    const std::string stopped = "the search was stopped";
    CHECK((outcome.out.find(stopped) != std::string::npos) == is_stopped);
    const std::string remains = "rematch: interrupted; what was found by then is in ";
    CHECK(outcome.err == (is_stopped ? remains + search.front + "\n" : ""));
  }
}

TEST_CASE("a search that is killed leaves nothing that is half written") {
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
