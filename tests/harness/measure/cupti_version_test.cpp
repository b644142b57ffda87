#include "harness/measure/gpu_monitor.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

TEST_CASE("an installed CUPTI reports its version, and without CUPTI there is no version") {
  CHECK(cupti_version(REMATCH_MADE_UP_CUPTI) == "13.0.1");
  CHECK_FALSE(cupti_version("librematch-no-such-library.so").has_value());
}

}  // namespace
}  // namespace rematch
