// Tests which finished points of an earlier run can be reused by a later run.
#include "harness/run/children/point_store.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

using Figures = PointStore::Figures;

Provenance provenance_here() {
  Provenance provenance = testing::sample_provenance();
  provenance.program_sha256 = std::string(64, 'a');
  return provenance;
}

// Saves a point with provenance_here(). Returns whether a run with provenance `later` may reuse the
// point.
bool finds(const Provenance& later, Figures figures, bool fresh = false) {
  const testing::ScratchFolder scratch;
  PointStore(scratch.file("points"), provenance_here(), false)
      .save("p", testing::sample_point("none"));
  return PointStore(scratch.file("points"), later, fresh).load("p", figures).has_value();
}

bool finds_after(void (*change)(Provenance&), Figures figures) {
  Provenance later = provenance_here();
  change(later);
  return finds(later, figures);
}

TEST_CASE("the same program on the same machine resumes from stored points") {
  CHECK(finds(provenance_here(), Figures::kExact));
  CHECK(finds(provenance_here(), Figures::kTimes));
  CHECK_FALSE(finds(provenance_here(), Figures::kExact, /*fresh=*/true));
}

TEST_CASE("stored points of a program with another or an unknown hash are not reused") {
  for (const Figures figures : {Figures::kExact, Figures::kTimes}) {
    CHECK_FALSE(
        finds_after([](Provenance& later) { later.program_sha256->back() = 'b'; }, figures));
    CHECK_FALSE(finds_after([](Provenance& later) { later.program_sha256.reset(); }, figures));
    CHECK_FALSE(finds_after(
        [](Provenance& later) { later.environment.libtorch_version = "2.12.0"; }, figures));
  }
}

// Exact figures are the same on all cards of a kind, but each card has its own times.
TEST_CASE(
    "on another card of the same kind exact figures are reused, and times are measured again") {
  const auto other_card = [](Provenance& later) { later.environment.device_uuid = "GPU-other"; };
  CHECK(finds_after(other_card, Figures::kExact));
  CHECK_FALSE(finds_after(other_card, Figures::kTimes));
}

// A job may copy the binary to its node. The copy has the same content, but a later date.
TEST_CASE("the age of a point file does not matter") {
  namespace fs = std::filesystem;
  const testing::ScratchFolder scratch;
  const PointStore store(scratch.file("points"), provenance_here(), false);
  store.save("p", testing::sample_point("none"));
  fs::last_write_time(scratch.file("points/p.json"),
                      fs::file_time_type::clock::now() - std::chrono::hours(24 * 365));
  CHECK(store.load("p", Figures::kTimes).has_value());
}

TEST_CASE("a point that failed and a point whose file is malformed are measured again") {
  const testing::ScratchFolder scratch;
  const PointStore store(scratch.file("points"), provenance_here(), false);
  CHECK_FALSE(store.keeps_any());
  store.save("p", testing::sample_oom("none"));
  CHECK_FALSE(store.load("p", Figures::kExact).has_value());
  CHECK(store.keeps_any());
  std::ofstream(scratch.file("points/q.json")) << "{\"schema\": ";
  CHECK_FALSE(store.load("q", Figures::kExact).has_value());
}

TEST_CASE("without a folder no point is stored") {
  const PointStore store("", provenance_here(), false);
  store.save("p", testing::sample_point("none"));
  CHECK_FALSE(store.load("p", Figures::kExact).has_value());
  CHECK_FALSE(store.keeps_any());
}

}  // namespace
}  // namespace rematch
