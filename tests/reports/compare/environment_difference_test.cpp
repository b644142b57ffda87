#include "reports/compare/differences.h"

#include <functional>

#include "tests/reports/compare/sample_comparison.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"

namespace rematch {

using testing::at;
using testing::base_report;
using testing::compare;
using testing::sample_provenance;

TEST_CASE("a comparison of environments names the settings that differ") {
  Report other = base_report();
  other.provenance.environment.libtorch_version = "2.12.0";
  other.provenance.environment.hostname = "elsewhere";
  const CompareRecord record = compare(base_report(), other);
  REQUIRE(record.environment_differences.size() == 1);
  CHECK(record.environment_differences[0] ==
        NamedDifference{"libtorch_version", "unknown", "2.12.0"});
  CHECK_THAT(record.verdict, Catch::Contains("libtorch_version unknown and 2.12.0"));
}

TEST_CASE(
    "environments differ if a variable that affects bits or bytes differs, or if the clock of only "
    "one environment is known") {
  using Differences = std::vector<NamedDifference>;
  const auto differences = [](const std::function<void(Environment&)>& change) {
    Provenance other = sample_provenance();
    change(other.environment);
    return environment_differences(sample_provenance(), other);
  };
  CHECK(differences([](Environment& environment) {
          environment.variables["NVIDIA_TF32_OVERRIDE"] = "0";
          environment.variables["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True";
        }) == Differences{{"NVIDIA_TF32_OVERRIDE", "unset", "0"},
                          {"PYTORCH_CUDA_ALLOC_CONF", "unset", "expandable_segments:True"}});
  CHECK(differences([](Environment& environment) {
          environment.variables["OMP_NUM_THREADS"] = "3";
          environment.variables["SLURM_JOB_ID"] = "17";
        }).empty());
  CHECK(differences([](Environment& environment) {
          environment.pci_bus_id = "0000:99:00.0";
          environment.device_uuid = "GPU-other";
          environment.persistence_mode.reset();
          environment.default_power_limit_mw = 500000;
          environment.cupti = "13.1.0";
        }).empty());
  CHECK(differences([](Environment& environment) { environment.sm_clock_mhz = 1755; }) ==
        Differences{{"sm_clock_mhz", "unknown", "1755"}});
  Provenance measured = sample_provenance();
  Provenance near = measured;
  measured.environment.sm_clock_mhz = 1755;
  near.environment.sm_clock_mhz = 1740;
  CHECK(environment_differences(measured, near).empty());
  CHECK(differences([](Environment& environment) {
          // as reported by an idle PCIe link
          environment.pcie_current_generation = 1;
          environment.pcie_current_width = 8;
          environment.other_processes = 3;
        }).empty());
}

// If the points of a merged report ran in environments that differ in a member, the merged report
// does not have this member. If points were compared with the merged environment, every point would
// seem to differ.
TEST_CASE("each point of a merged report is compared with its own environment, not the report's") {
  const auto merged = [](const std::string& first, const std::string& second) {
    Report report;
    for (const std::string& version : {first, second}) {
      ReportSource source;
      source.provenance = sample_provenance();
      source.provenance.environment.libtorch_version = version;
      source.points = {report.points.size()};
      report.sources.push_back(source);
      report.points.push_back(testing::finite_point("none"));
      report.points.back().memory->peak_allocated =
          version == "2.11.0" ? testing::kMiB : Bytes{2 * testing::kMiB.count};
    }
    report.provenance = sample_provenance();
    report.provenance.environment.libtorch_version.reset();
    return report;
  };
  const CompareRecord same = compare(merged("2.11.0", "2.12.0"), merged("2.12.0", "2.11.0"));
  REQUIRE(same.rows.size() == 2);
  CHECK(same.environment_differences.empty());
  for (const std::size_t row : {0, 1}) {
    CHECK(testing::metric_of(same, Metric::kPeakAllocated, row).ratio == 1.0);
  }
  const CompareRecord other = compare(merged("2.11.0", "2.12.0"), merged("2.11.0", "2.13.0"));
  CHECK(other.environment_differences ==
        std::vector<NamedDifference>{{"libtorch_version", "2.12.0", "2.13.0"}});
}

}  // namespace rematch
