// libFuzzer's entry point for every reader of files. For any bytes, a reader must return a value
// that can be used and written again, or throw FormatError with a one-line message. Any other
// outcome ends the run.
#include <cstdio>
#include <cstdlib>
#include <map>

#include "policies/base/file.h"
#include "policies/base/json.h"
#include "policies/base/rejected.h"
#include "policies/catalogue/catalogue.h"
#include "policies/catalogue/resolve.h"
#include "policies/plan/plan_json.h"
#include "policies/plan/policy_json.h"
#include "policies/plan/selector.h"
#include "policies/search/front/front_json.h"
#include "policies/search/loads/loads.h"
#include "policies/trace/profile_json.h"
#include "policies/trace/trace_json.h"
#include "reports/compare/compare.h"
#include "reports/gate/gate.h"
#include "reports/record/json/record_json.h"
#include "reports/render/pages/page.h"
#include "reports/render/tables/compare_table.h"
#include "reports/render/tables/csv.h"
#include "reports/render/tables/gate_table.h"
#include "reports/render/tables/load_table.h"
#include "reports/render/tables/report_table.h"
#include "reports/schema/validate.h"
#include "tests/support/mutate_text.h"
#include "tests/support/toy_trace.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t largest);

namespace rematch::testing {
namespace {

const Trace& toy() {
  static const Trace trace = toy_llama({.layers = 2});
  return trace;
}

void use_report(const Json& json) {
  const Report report = report_from_json(json);
  report_to_json(report);
  render_table(report, TableFormat::kText, 100);
  render_page({{"report.json", report}});
  render_csv({{"report.json", report}});
  const CompareRecord compared = compare_reports(report, "a.json", report, "b.json", {});
  render_compare(compared, TableFormat::kMarkdown, 80);
  GateSettings settings;
  settings.loss = LossTier::kEnvelope;
  settings.max_loss_difference = 0.001;
  settings.max_peak = Bytes{1 << 20};
  settings.max_slowdown = 1.1;
  render_gate(gate_report(report, "a.json", &report, "a.json", settings), TableFormat::kText, 80);
}

void use_plan(const Json& json) {
  const Plan plan = plan_from_json(json);
  plan_to_json(plan);
  plan_effect_json(plan);
}

void use_policy(const Json& json) {
  const Policy policy = policy_from_json(json);
  policy_to_json(policy);
  resolve(policy, toy());
}

using Use = void (*)(const Json&);

// Maps a kind of file to its reader. An input of unknown kind is given to every reader.
const std::map<std::string, Use>& readers() {
  static const std::map<std::string, Use> all = {
      {"trace", [](const Json& json) { trace_to_json(trace_from_json(json)); }},
      {"profile", [](const Json& json) { profile_problem(profile_from_json(json), toy()); }},
      {"plan", use_plan},
      {"policy", use_policy},
      {"front", [](const Json& json) { front_to_json(front_from_json(json)); }},
      {"loads",
       [](const Json& json) { loads_to_text(loads_from_json(json), TableFormat::kText, 100); }},
      {"point", [](const Json& json) { point_file_to_json(point_file_from_json(json)); }},
      {"report", use_report},
      {"compare",
       [](const Json& json) { render_compare(compare_from_json(json), TableFormat::kText, 100); }},
      {"gate",
       [](const Json& json) { render_gate(gate_from_json(json), TableFormat::kText, 100); }},
  };
  return all;
}

[[noreturn]] void misbehaved(const std::string& what) {
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

// An error message must truncate what it quotes from the file. Otherwise a file of 100 MB could
// cause a message of 100 MB.
constexpr std::size_t kLongestMessage = 1000;

void require_one_line(const std::string& message) {
  if (message.size() > kLongestMessage) {
    misbehaved("a message of " + std::to_string(message.size()) + " bytes: " + message);
  }
  if (message.empty() || message.find('\n') != std::string::npos) {
    misbehaved("the message is not one line: " + message);
  }
}

void read_with(Use use, const Json& json) {
  try {
    use(json);
  } catch (const FormatError& error) {
    require_one_line(error.what());
  }
}

void read_json(const Json& json) {
  if (const auto problem = validate(json)) require_one_line(*problem);
  const std::string schema =
      json.is_object() && json.contains("schema") && json["schema"].is_string()
          ? json["schema"].get<std::string>()
          : "";
  for (const auto& [kind, use] : readers()) {
    if (schema.rfind("rematch." + kind + "/", 0) == 0) return read_with(use, json);
  }
  for (const auto& [kind, use] : readers()) read_with(use, json);
}

void read_call(const std::string& text) {
  const auto selector = parse_selector(text);
  if (const auto* rejected = std::get_if<Rejected>(&selector)) require_one_line(rejected->message);
  const auto policies = parse_policies(text);
  if (const auto* rejected = std::get_if<Rejected>(&policies)) require_one_line(rejected->message);
}

void read_report_text(const std::string& text) {
  try {
    report_from_text(text, "file.json");
  } catch (const FormatError& error) {
    require_one_line(error.what());
  }
}

void read_text(const std::string& text) {
  read_report_text(text);
  try {
    read_json(parse_json(text, "file.json"));
  } catch (const FormatError& error) {
    require_one_line(error.what());
    if (text.size() < 200) read_call(text);
  }
}

}  // namespace
}  // namespace rematch::testing

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  rematch::testing::read_text({reinterpret_cast<const char*>(data), size});
  return 0;
}

// Half of the inputs stay valid JSON with wrong values. Mutated bytes alone would seldom pass the
// parser.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t largest, unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, largest);
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const std::string mutated =
        rematch::testing::mutate_json(rematch::parse_json(text, "seed"), seed / 2)
            .dump(-1, ' ', false, rematch::Json::error_handler_t::replace);
    if (mutated.size() <= largest) return mutated.copy(reinterpret_cast<char*>(data), largest);
  } catch (const rematch::FormatError&) {
  }
  return LLVMFuzzerMutate(data, size, largest);
}
