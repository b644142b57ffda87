// Damages reports and points. For each, the readers and the schema check must return a value that
// can be written again, or an error of one line.
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"
#include "reports/render/pages/page.h"
#include "reports/render/tables/csv.h"
#include "reports/render/tables/report_table.h"
#include "reports/schema/validate.h"
#include "tests/reports/sample_report.h"
#include "tests/support/catch.h"
#include "tests/support/mutate_text.h"
#include "tests/support/seeds.h"

namespace rematch::testing {
namespace {

bool is_one_line(const std::string& message) {
  return !message.empty() && message.find('\n') == std::string::npos;
}

Json sample_report_json() {
  Report report;
  report.provenance = sample_provenance();
  report.points = {sample_point(), sample_oom("full")};
  return report_to_json(report);
}

Json sample_point_json() { return point_file_to_json({sample_provenance(), sample_point(), {}}); }

// Reads `json` according to its schema key, writes it and renders it.
void use(const Json& json) {
  if (const auto problem = validate(json)) CHECK(is_one_line(*problem));
  if (json.is_object() && json.value("schema", Json()) == "rematch.point/1.0") {
    point_file_to_json(point_file_from_json(json));
    return;
  }
  const Report report = report_from_json(json);
  report_to_json(report);
  render_table(report, TableFormat::kText, 100);
  render_page({{"report.json", report}});
  render_csv({{"report.json", report}});
}

// Returns "" if `json` was used or rejected, else what happened instead.
std::string misbehaviour(const std::function<Json()>& json) {
  try {
    use(json());
  } catch (const FormatError& error) {
    if (!is_one_line(error.what()))
      return "an error of more than one line: " + std::string(error.what());
  } catch (const std::exception& error) {
    return "a foreign exception: " + std::string(error.what());
  }
  return "";
}

// Returns the report's bytes, or "" if the text was rejected.
std::string bytes_if_readable(const std::function<Report()>& read) {
  try {
    return report_to_json(read()).dump(-1, ' ', false, Json::error_handler_t::replace);
  } catch (const FormatError&) {
    return "";
  }
}

// Checks that reading the whole document and reading it point by point accept the same text with
// the same result. If the text has several mistakes, the two may name different mistakes.
bool is_read_both_ways(const std::string& text) {
  const std::string as_document =
      bytes_if_readable([&] { return report_from_json(parse_json(text, "file.json")); });
  CHECK(bytes_if_readable([&] { return report_from_text(text, "file.json"); }) == as_document);
  return !as_document.empty();
}

TEST_CASE("reading a report point by point gives the same result as reading it whole",
          "[property]") {
  Json sample = sample_report_json();
  sample["points"].push_back(sample["points"][0]);
  sample["points"].back()["policy"] = "alias";
  int read = 0;
  for (std::uint32_t seed = 0; seed < num_seeds(300); ++seed) {
    CAPTURE(seed);
    const std::string mutated =
        mutate_json(sample, seed).dump(-1, ' ', false, Json::error_handler_t::replace);
    if (is_read_both_ways(mutated)) ++read;
    if (is_read_both_ways(mutate_text(sample.dump(1), seed))) ++read;
  }
  CHECK(read > 10);  // enough mutated texts must be readable, to compare their results
}

TEST_CASE("reports with damaged bytes are read, or rejected with a one-line error", "[property]") {
  for (const Json& sample : {sample_report_json(), sample_point_json()}) {
    const std::string text = sample.dump(1);
    for (std::uint32_t seed = 0; seed < num_seeds(300); ++seed) {
      CAPTURE(seed);
      CHECK(misbehaviour([&] { return parse_json(mutate_text(text, seed), "file.json"); }) == "");
    }
  }
}

TEST_CASE("reports with wrong values are read, or rejected with a one-line error", "[property]") {
  for (const Json& sample : {sample_report_json(), sample_point_json()}) {
    for (std::uint32_t seed = 0; seed < num_seeds(600); ++seed) {
      CAPTURE(seed);
      CHECK(misbehaviour([&] { return mutate_json(sample, seed); }) == "");
    }
  }
}

}  // namespace
}  // namespace rematch::testing
