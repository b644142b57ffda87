// Tests the conversion of a trace of one micro-batch to a step of several.
#include "policies/trace/accumulation.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policies/trace/profile.h"
#include "policies/trace/trace_check.h"
#include "policies/trace/trace_json.h"
#include "tests/support/catch.h"
#include "tests/support/toy_trace.h"

namespace rematch::testing {
namespace {

BackwardEvent op(const char* name, std::int64_t other, std::int64_t gradients) {
  BackwardEvent event;
  event.op = name;
  event.other_bytes = {other};
  event.gradient_bytes = {gradients};
  return event;
}

// Backward makes two gradients. The first one, of 8 bytes, is stored as a view, and the second one,
// of 4 bytes, as a copy.
Trace two_gradients() {
  Trace trace = toy_llama({.layers = 1});
  trace.backward = {op("aten::ones_like", 2, 0), op("aten::mm", 10, 0), op("aten::detach", 10, 0),
                    op("aten::sum", 14, 8), op("aten::clone", 18, 8)};
  trace.gradient_bytes = {12};
  return trace;
}

TEST_CASE("later micro-batches add gradients, and every event excludes the gradients so far") {
  const Trace once = two_gradients();
  const Trace trace = accumulating(once, 3);
  CHECK(micro_batches(trace) == 3);
  CHECK(gradients_before(trace) == Bytes{12});
  CHECK(trace.gradient_stores ==
        std::map<std::string, std::int64_t>{{"aten::clone", 1}, {"aten::detach", 1}});
  std::vector<std::pair<std::string, std::int64_t>> events;
  for (const BackwardEvent& event : trace.backward) {
    CHECK(event.gradient_bytes == Bytes{0});
    events.emplace_back(event.op, event.other_bytes.count);
  }
  CHECK(events == std::vector<std::pair<std::string, std::int64_t>>{{"aten::ones_like", 2},
                                                                    {"aten::mm", 10},
                                                                    {"aten::add_.Tensor", 10},
                                                                    {"aten::sum", 6},
                                                                    {"aten::add_.Tensor", 6}});
  CHECK_FALSE(trace_problem(trace).has_value());
}

TEST_CASE("one micro-batch leaves a trace unchanged, and a second conversion is rejected") {
  const Trace once = two_gradients();
  CHECK(accumulating(once, 1) == once);
  CHECK(micro_batches(once) == 1);
  CHECK(gradients_before(once) == Bytes{0});
  CHECK_THROWS_WITH(accumulating(accumulating(once, 2), 2),
                    "the trace of toy_llama already has 2 micro-batches");
  for (const std::int64_t num : {std::int64_t{0}, kMaxMicroBatches + 1}) {
    CHECK_THROWS_WITH(accumulating(once, num), Catch::Contains("allowed: 1 to 65536"));
  }
}

TEST_CASE("plans identify a model by the same hash for any number of micro-batches") {
  const Trace once = two_gradients();
  for (const std::int64_t num : {2, 8}) {
    const Trace trace = accumulating(once, num);
    CHECK(trace_sha256(trace) == trace_sha256(once));
    const Trace read = trace_from_json(trace_to_json(trace));
    CHECK(read == trace);
    CHECK(trace_sha256(read) == trace_sha256(once));
  }
}

TEST_CASE("the times of a step are the sums over its micro-batches, and the optimizer runs once") {
  using std::chrono::nanoseconds;
  Profile profile;
  profile.forward = std::vector{nanoseconds(2), nanoseconds(3)};
  profile.backward = {nanoseconds(7)};
  profile.forward_between_ops = nanoseconds(1);
  profile.backward_between_ops = nanoseconds(4);
  profile.optimizer = nanoseconds(100);
  profile.forward_kernels = std::vector<std::int32_t>{1, 0};
  repeat_micro_batch(profile, 4);
  CHECK(profile.forward_time() == nanoseconds(24));
  CHECK(profile.backward_time() == nanoseconds(44));
  CHECK(profile.step_time() == nanoseconds(168));
  CHECK(*profile.forward_kernels == std::vector<std::int32_t>{4, 0});
}

TEST_CASE("words name the micro-batches and the dtype of gradients only if they are unusual") {
  CHECK(accumulation_words({{"batch", 2}}) == "");
  CHECK(accumulation_words({{"accumulate", 4}, {"float32_gradients", 1}}) ==
        ", 4 micro-batches, float32 gradients");
}

}  // namespace
}  // namespace rematch::testing
