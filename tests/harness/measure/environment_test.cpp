#include "harness/measure/environment.h"

#include "harness/measure/source_state.h"

#include <ATen/Parallel.h>
#include <stdlib.h>
#include <regex>
#include <string>

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("the environment records the device and the LibTorch version") {
  const Environment environment = describe_environment(at::kCPU);
  CHECK(environment.device == "cpu");
  const std::string version = environment.libtorch_version.value_or("");
  CHECK(std::regex_match(version, std::regex("2\\.[0-9]+\\.[0-9]+")));
  CHECK(environment.threads == at::get_num_threads());
  CHECK(environment.cpu_capability.value_or("") != "");
  CHECK(environment.math_mode.value_or("").find("onednn") != std::string::npos);
  CHECK(environment.libtorch_build->find('\n') == std::string::npos);
  CHECK(environment.host_memory->count > 0);
}

TEST_CASE("only variables that change a result or a time are recorded") {
  setenv("MKL_CBWR", "COMPATIBLE", 1);
  setenv("NCCL_ALGO", "Ring", 1);
  setenv("REMATCH_TEST_SECRET", "hidden", 1);
  const Environment environment = describe_environment(at::kCPU);
  unsetenv("MKL_CBWR");
  unsetenv("NCCL_ALGO");
  CHECK(environment.variables.at("MKL_CBWR") == "COMPATIBLE");
  CHECK(environment.variables.at("NCCL_ALGO") == "Ring");
  CHECK(environment.variables.count("REMATCH_TEST_SECRET") == 0);
  CHECK(environment.math_mode->find("cnr COMPATIBLE") != std::string::npos);
}

TEST_CASE("the first line of a successful command is returned") {
  CHECK(first_line_of("printf 'one\\ntwo\\n'") == "one");
  CHECK_FALSE(first_line_of("false").has_value());
}

}  // namespace
}  // namespace rematch
