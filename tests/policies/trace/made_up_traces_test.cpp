// Tests that made-up traces follow the rules of recorded traces, because made-up traces replace
// recorded traces in many tests.
#include <catch2/catch.hpp>
#include <set>

#include "tests/support/random_trace.h"
#include "tests/support/seeds.h"
#include "tests/support/toy_trace.h"

namespace rematch {
namespace {

int count_ops(const Trace& trace, std::string_view name) {
  int count = 0;
  for (const TracedOp& op : trace.ops) count += op.name == name ? 1 : 0;
  return count;
}

const TracedValue& value(const Trace& trace, ValueId id) { return trace.values.at(id); }

// Checks that every op reads existing values at the current version of their storage, and that
// backward demands and releases every pack once.
void check_consistent(const Trace& trace) {
  IdTable<StorageId, std::int32_t> versions(trace.storages.size(), 0);
  PackId next_pack;
  const auto check_packs_until = [&](OpId num_ops_run) {
    for (; trace.packs.contains(next_pack) && trace.packs[next_pack].at_op <= num_ops_run;
         ++next_pack) {
      const TracedPack& pack = trace.packs[next_pack];
      REQUIRE(pack.version == versions.at(value(trace, pack.value).storage));
      REQUIRE(value(trace, pack.value).producer < num_ops_run);
    }
  };
  for (const OpId id : trace.ops.ids()) {
    check_packs_until(id);
    const TracedOp& op = trace.ops[id];
    for (const TracedUse& use : op.inputs) {
      REQUIRE(value(trace, use.value).producer < id);
      REQUIRE(use.version == versions.at(value(trace, use.value).storage));
    }
    for (const StorageId written : op.writes) ++versions.at(written);
    for (const ValueId output : op.outputs) REQUIRE(value(trace, output).producer == id);
  }
  check_packs_until(trace.ops.end_id());
  REQUIRE(next_pack == trace.packs.end_id());
  for (const TracedPack& pack : trace.packs) {  // no value is written after it was packed
    REQUIRE(pack.version == versions.at(value(trace, pack.value).storage));
  }
  std::set<PackId> open;
  std::set<PackId> done;
  for (const BackwardEvent& event : trace.backward) {
    if (event.kind == BackwardEvent::Kind::kDemand) REQUIRE(open.insert(*event.pack).second);
    if (event.kind == BackwardEvent::Kind::kRelease) {
      REQUIRE(open.count(*event.pack) == 1);
      REQUIRE(done.insert(*event.pack).second);
    }
    if (event.kind == BackwardEvent::Kind::kOp) REQUIRE(event.other_bytes.count >= 0);
  }
  REQUIRE(done.size() == trace.packs.size());
}

TEST_CASE("the toy Llama has the ops of a Llama block in every layer") {
  const Trace trace = testing::toy_llama({.layers = 3});
  check_consistent(trace);
  CHECK(trace.blocks.size() == 3);
  CHECK(count_ops(trace, "aten::mm") == 3 * 7 + 1);  // seven matmuls per layer, and one in the head
  CHECK(count_ops(trace, "rematch::attention") == 3);
  CHECK(count_ops(trace, "aten::add_.Scalar") == 3 * 2 + 1);
  CHECK(count_ops(testing::toy_biased({.layers = 3}), "aten::mm") == 0);
}

TEST_CASE("random traces are valid and repeatable", "[property]") {
  for (std::uint32_t seed = 0; seed < testing::num_seeds(200); ++seed) {
    CAPTURE(seed);
    const Trace trace = testing::random_trace(seed);
    check_consistent(trace);
    CHECK(trace == testing::random_trace(seed));
  }
}

TEST_CASE("random traces contain every feature that is hard to handle", "[property]") {
  int writes = 0, views = 0, draws = 0, several_outputs = 0;
  for (std::uint32_t seed = 0; seed < testing::num_seeds(50); ++seed) {
    for (const TracedOp& op : testing::random_trace(seed).ops) {
      writes += op.writes.empty() ? 0 : 1;
      views += op.is_view ? 1 : 0;
      draws += op.draws_random ? 1 : 0;
      several_outputs += op.outputs.size() > 1 ? 1 : 0;
    }
  }
  CHECK(writes > 100);
  CHECK(views > 100);
  CHECK(draws > 100);
  CHECK(several_outputs > 100);
}

}  // namespace
}  // namespace rematch
