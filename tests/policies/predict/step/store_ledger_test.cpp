#include "policies/predict/step/store_ledger.h"

#include <catch2/catch.hpp>

namespace rematch {
namespace {

// A region with three storages of 10, 20 and 40 bytes.
RegionGraph three_storages() {
  RegionGraph graph;
  for (const std::int64_t bytes : {10, 20, 40}) {
    RegionStorage& storage = graph.storages.emplace_back();
    storage.bytes = Bytes{bytes};
  }
  return graph;
}

// Ops 2 and 5 make storages 0 and 1. Storage 2 is an input.
const std::vector<StoredStorage> kOnHost = {{0, Store::kHost, /*is_input=*/false, 2},
                                            {1, Store::kHost, /*is_input=*/false, 5},
                                            {2, Store::kHost, /*is_input=*/true}};

TEST_CASE("results are copied to the host when their op has run, and inputs when the region ends") {
  const RegionGraph graph = three_storages();
  StoreLedger ledger;
  StoreLedger::Stash stash(kOnHost, graph);
  ledger.put_results(stash, 1);
  CHECK(ledger.host().copied_out == Bytes{0});
  ledger.put_results(stash, 4);
  CHECK(ledger.host().copied_out == Bytes{10});
  ledger.put_results(stash, 9);
  CHECK(ledger.host().copied_out == Bytes{30});
  ledger.put_inputs(stash);
  CHECK(ledger.host() == HostMemory{Bytes{70}, Bytes{70}, Bytes{0}});
  CHECK(ledger.device_bytes() == Bytes{0});
}

TEST_CASE("offloaded values are copied back into new device memory, and each copy is freed once") {
  const RegionGraph graph = three_storages();
  StoreLedger ledger;
  StoreLedger::Stash stash(kOnHost, graph);
  CHECK_FALSE(ledger.leave(stash));  // nothing is in the store yet
  ledger.put_inputs(stash);
  CHECK(ledger.leave(stash));
  CHECK(stash.has_left());
  // false, because the values have already left the device
  CHECK_FALSE(ledger.leave(stash));
  ledger.bring_back(stash);
  CHECK(ledger.device_bytes() == Bytes{70});
  CHECK(ledger.host().copied_back == Bytes{70});
  ledger.release(stash, 1);
  CHECK(ledger.device_bytes() == Bytes{50});
  ledger.release_inputs(stash);
  CHECK(ledger.device_bytes() == Bytes{10});
}

// The host first holds 30 bytes, drops them, and then holds 70 bytes.
TEST_CASE("the host's peak counts only values that are on the host at the same time") {
  const RegionGraph graph = three_storages();
  StoreLedger ledger;
  StoreLedger::Stash first(kOnHost, graph);
  StoreLedger::Stash second(kOnHost, graph);
  ledger.put_results(first, 9);
  ledger.drop_copies(first);
  ledger.put_inputs(second);
  CHECK(ledger.host() == HostMemory{Bytes{70}, Bytes{100}, Bytes{0}});
}

TEST_CASE("a region whose values are still on the device copies nothing back") {
  const RegionGraph graph = three_storages();
  StoreLedger ledger;
  StoreLedger::Stash stash(kOnHost, graph);
  ledger.put_inputs(stash);
  ledger.bring_back(stash);  // backward begins before the values have left the device
  CHECK(ledger.device_bytes() == Bytes{0});
  CHECK(ledger.host().copied_back == Bytes{0});
}

}  // namespace
}  // namespace rematch
