#include "reports/schema/validate.h"

#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/require.h"
#include "harness/sweep/comparison_plan.h"
#include "harness/sweep/sweep_file.h"
#include "policies/base/json.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_json.h"
#include "policies/predict/device/links.h"
#include "policies/search/front/front_json.h"
#include "policies/search/loads/loads.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/record/compare.h"
#include "reports/record/gate.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

struct ValidateFlags {
  explicit ValidateFlags(CLI::App& app) {
    app.add_option("files", files, "JSON files to validate");
    app.add_flag("--json", json, "Print JSON instead of the table");
  }
  std::vector<std::string> files;
  bool json = false;
};

bool is_kind(const std::string& schema, std::string_view kind) {
  return schema.starts_with("rematch." + std::string(kind) + "/");
}

// Checks properties that schemas cannot express: hashes, references and duplicates. Throws
// FormatError.
void read_as(const std::string& schema, const Json& json) {
  if (is_kind(schema, "report")) report_from_json(json);
  if (is_kind(schema, "point")) point_file_from_json(json);
  if (is_kind(schema, "plan")) plan_from_json(json);
  if (is_kind(schema, "policy")) policy_from_json(json);
  if (is_kind(schema, "trace")) trace_from_json(json);
  if (is_kind(schema, "profile")) profile_from_json(json);
  if (is_kind(schema, "links")) links_from_json(json);
  if (is_kind(schema, "ceilings")) ceilings_from_json(json);
  if (is_kind(schema, "front")) front_from_json(json);
  if (is_kind(schema, "loads")) loads_from_json(json);
  if (is_kind(schema, "compare")) compare_from_json(json);
  if (is_kind(schema, "gate")) gate_from_json(json);
  if (is_kind(schema, "sweep")) sweep_from_json(json);
  if (is_kind(schema, "sweep_plan")) comparison_plan_from_json(json);
}

struct Finding {
  std::string file;
  std::string schema;   // empty if unknown, because the file could not be read
  std::string problem;  // empty if the file is valid
};

// Removes the file's name, because only messages of parse errors begin with it.
std::string without_name(const std::string& problem, const std::string& file) {
  return problem.starts_with(file + ": ") ? problem.substr(file.size() + 2) : problem;
}

// Returns how the document first violates this schema, or "". Throws FormatError for a problem
// that schemas cannot express.
std::string problem_of(const std::string& schema, const Json& json) {
  std::string problem = validate(json).value_or("");
  if (problem.empty()) read_as(schema, json);
  return problem;
}

// Checks the list that `rematch predict --json` prints. Each element of the list names its own
// schema.
void check_elements(const Json& json, Finding& finding) {
  for (const JsonField& element : JsonField(json).elements()) {
    finding.schema = element.at("schema").string();
    finding.problem = problem_of(finding.schema, element.json());
    if (finding.problem.empty()) continue;
    finding.problem.insert(0, element.path() + ".");
    return;
  }
}

Finding check(const std::string& file) {
  Finding finding{file, "", ""};
  try {
    const Json json = require_json_file(file);
    if (json.is_array() && !json.empty()) {
      check_elements(json, finding);
      return finding;
    }
    finding.schema = JsonField(json).at("schema").string();
    finding.problem = problem_of(finding.schema, json);
  } catch (const UsageError& error) {
    finding.problem = without_name(error.what(), file);
  } catch (const FormatError& error) {
    finding.problem = without_name(error.what(), file);
  }
  return finding;
}

ExitCode run(const ValidateFlags& flags) {
  if (flags.files.empty()) throw UsageError("no file given: rematch validate report.json");
  ExitCode code = ExitCode::kOk;
  Json findings = Json::array();
  for (const std::string& file : flags.files) {
    const Finding finding = check(file);
    const bool ok = finding.problem.empty();
    if (!ok) code = ExitCode::kUsage;
    if (flags.json) {
      findings.push_back({{"file", file}, {"schema", finding.schema}, {"valid", ok}});
      findings.back()["problem"] = ok ? Json(nullptr) : Json(finding.problem);
    } else if (ok) {
      print(file + ": ok, " + finding.schema + "\n");
    }
    const bool names_file = finding.problem.find(in_quotes(file)) != std::string::npos;
    if (!ok) say(names_file ? finding.problem : file + ": " + finding.problem);
  }
  if (flags.json) print_json(findings);
  return code;
}

}  // namespace

void add_validate(CLI::App& app, Action& action) {
  add_command<ValidateFlags>(
      app, action, "validate", "Checks files against the schema of their kind", run,
      "Kinds: trace, profile, links, ceilings, plan, policy, point, report, front, loads, compare, "
      "gate,\n"
      "sweep, sweep_plan; and what other commands print with --json: prediction, description,\n"
      "list, systems, doctor, sweep_status.\n"
      "Prints the path of the first error of each file.\n"
      "Example: rematch validate report.json wan.plan.json\n"
      "Exit codes: 0 all files are valid, 2 a file is invalid.");
}

}  // namespace rematch
