#include "harness/cli/flags/measure_flags.h"

#include <cctype>

#include "harness/cli/flags/flag_values.h"

namespace rematch {
namespace {

constexpr int kMostRetries = 1000;

std::string after(const std::string& when, std::string help) {
  if (!when.empty()) help[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(help[0])));
  return when + help;
}

}  // namespace

void PolicyFlags::add_policy_flags(CLI::App& app) {
  app.add_option("--policy", policies,
                 "Policies to compare, separated by commas; see rematch list");
  app.add_option(
      "--plan", plan_files,
      "Plan files, or points of a front such as front.json#3; instead of --policy or beside it");
  app.add_flag("--allow-no-effect", allow_no_effect, "Accept plans that change nothing");
}

void MeasureFlags::add_measure_flags(CLI::App& app, const std::string& when) {
  app.add_option("--steps", num_steps, after(when, "Number of steps of every pass and round"))
      ->check(CLI::Range(1, kMostSteps));
  app.add_option("--rounds", rounds,
                 after(when,
                       "Number of rounds of timed steps, with a child process for each point "
                       "in each: N, or MIN:MAX, which ends when --precision is reached; "
                       "0: no times"));
  app.add_option("--precision", precision,
                 after(when, "Half width of a ratio's interval at which rounds end"));
  app.add_option("--seed", seed, after(when, "Seed of data and random number generators"))
      ->check(CLI::Range(0, kMostSteps));
  add_threads(app, num_threads);
  app.add_option("--timeout", timeout, after(when, "Time limit of one child process: 90s, 10min"));
  app.add_option("--retries", num_retries,
                 after(when,
                       "Number of restarts of a child process that timed out, or was killed "
                       "while memory was free"))
      ->check(CLI::Range(0, kMostRetries));
  app.add_flag("--fresh", fresh,
               after(when, "Measure again the points that an interrupted run has finished"));
  add_force(app, force);
}

void add_threads(CLI::App& app, int& num_threads) {
  app.add_option("--threads", num_threads,
                 "Thread count of LibTorch (default: LibTorch's choice, shared among ranks)")
      ->default_str("")
      ->check(CLI::Range(1, kMostThreads));
}

void add_force(CLI::App& app, bool& force) {
  app.add_flag("--force", force, "Run although the predicted memory exceeds the machine's");
}

}  // namespace rematch
