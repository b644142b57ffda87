// Runs steps of one model on request, so that scripts/compare_with_pytorch can alternate them with
// steps in Python. step_server.py is the Python counterpart.
//
//   step_server MODEL THREADS DIMENSION=VALUE,... POLICY/SCHEDULE ...
//
// Reads one request per line from stdin and writes one answer per line to stdout. Policies are
// indexed from 0.
//   time INDEX STEPS   nanoseconds of STEPS steps: forward, backward, and freeing the gradients
//   ops INDEX          JSON: executed ops of one step by name, without aten::detach
//   memory             KiB resident, maximum KiB resident
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "harness/engine/interception.h"
#include "harness/engine/record/op_facts.h"
#include "policies/base/json.h"
#include "tests/benchmarks/workload.h"

namespace rematch::benchmarks {
namespace {

struct Arm {
  std::string policy;
  Schedule schedule = Schedule::kWholeRegion;
  bool ready = false;
  std::unique_ptr<Checkpoint> checkpoint;
};

class Executed final : public OpObserver {
 public:
  void executed(const c10::OperatorHandle& op, Phase, const torch::jit::Stack&) override {
    const std::string& name = facts_of(op).name;
    if (name != "aten::detach") ++by_name[name];
  }
  std::map<std::string, int> by_name;
};

class Server {
 public:
  Server(const std::string& model, const Overrides& dimensions, std::vector<Arm> arms)
      : workload_(model, dimensions), arms_(std::move(arms)) {}

  // Returns false if the line is not a valid request.
  bool answer(const std::string& line) {
    std::istringstream request(line);
    std::string verb;
    std::size_t index = 0;
    int steps = 0;
    request >> verb;
    if (verb == "memory") {
      std::printf("%lld %lld\n", status("VmRSS:"), status("VmHWM:"));
    } else if (verb == "time" && request >> index >> steps && index < arms_.size()) {
      time(checkpoint(arms_[index]), steps);
    } else if (verb == "ops" && request >> index && index < arms_.size()) {
      count(checkpoint(arms_[index]));
    } else {
      return false;
    }
    std::fflush(stdout);
    return true;
  }

 private:
  const Checkpoint* checkpoint(Arm& arm) {
    if (!arm.ready) arm.checkpoint = workload_.checkpoint(arm.policy, arm.schedule);
    arm.ready = true;
    return arm.checkpoint.get();
  }

  void time(const Checkpoint* checkpoint, int steps) {
    const auto start = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) workload_.step(checkpoint);
    const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
    std::printf("%lld\n", static_cast<long long>(elapsed.count()));
  }

  void count(const Checkpoint* checkpoint) {
    Executed executed;
    const OpObserverGuard observe(&executed);
    workload_.step(checkpoint);
    std::printf("%s\n", nlohmann::json(executed.by_name).dump().c_str());
  }

  static long long status(const std::string& key) {
    std::ifstream file("/proc/self/status");
    std::string word;
    long long kib = 0;
    while (file >> word) {
      if (word == key && file >> kib) return kib;
    }
    return 0;
  }

  Workload workload_;
  std::vector<Arm> arms_;
};

Overrides parse_dimensions(const std::string& text) {
  Overrides dimensions;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t equals = part.find('=');
    dimensions[part.substr(0, equals)] = std::stoll(part.substr(equals + 1));
  }
  return dimensions;
}

Arm parse_arm(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  const std::string schedule = slash == std::string::npos ? "on_demand" : text.substr(slash + 1);
  return {text.substr(0, slash), from_string<Schedule>(schedule).value()};
}

int serve(const std::vector<std::string>& arguments) {
  if (arguments.size() < 4) {
    std::fprintf(stderr,
                 "usage: step_server MODEL THREADS DIMENSION=VALUE,... POLICY/SCHEDULE ...\n");
    return 2;
  }
  at::set_num_threads(std::stoi(arguments[1]));
  std::vector<Arm> arms;
  for (std::size_t i = 3; i < arguments.size(); ++i) arms.push_back(parse_arm(arguments[i]));
  Server server(arguments[0], parse_dimensions(arguments[2]), std::move(arms));
  for (std::string line; std::getline(std::cin, line);) {
    if (server.answer(line)) continue;
    std::fprintf(stderr, "step_server: no such request: %s\n", line.c_str());
    return 2;
  }
  return 0;
}

}  // namespace
}  // namespace rematch::benchmarks

int main(int argc, char** argv) {
  return rematch::benchmarks::serve(std::vector<std::string>(argv + 1, argv + argc));
}
