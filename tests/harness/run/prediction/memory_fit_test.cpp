// Tests which variants fit into a memory limit, according to their predicted peaks.
#include "harness/run/prediction/memory_fit.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

Variant variant(const std::string& policy, std::int64_t peak_gib) {
  Variant made;
  made.policy = policy;
  made.prediction.memory.peak_allocated = Bytes{peak_gib * kGiB};
  return made;
}

const AvailableMemory kMachine = {Bytes{24 * kGiB}, "available on this machine"};

TEST_CASE("the message for a variant that is too large gives its predicted peak and the limit") {
  CHECK(why_too_large(variant("none", 24), kMachine).empty());
  CHECK(why_too_large(variant("none", 25), kMachine) ==
        "the predicted peak is 25.0 GiB; available on this machine: 24.0 GiB");
  CHECK(why_too_large(variant("none", 25), std::nullopt).empty());
  CHECK(why_too_large(Variant(), kMachine).empty());
}

TEST_CASE("no point fits if the smallest point does not fit") {
  CHECK(why_none_fits({variant("none", 90), variant("full", 20)}, kMachine).empty());
  CHECK_THAT(
      why_none_fits({variant("none", 90), variant("full", 30), variant("save_mm", 40)}, kMachine),
      Catch::StartsWith("full") && Catch::Contains("30.0 GiB"));
  CHECK(why_none_fits({variant("none", 90)}, std::nullopt).empty());
  CHECK(why_none_fits({}, kMachine).empty());
}

TEST_CASE("the CPU's limit is this machine's available memory; meta has none") {
  const auto limit = available_memory_of("cpu");
  REQUIRE(limit.has_value());
  CHECK(limit->bytes.count > 0);
  CHECK_FALSE(available_memory_of("meta").has_value());
}

}  // namespace
}  // namespace rematch
