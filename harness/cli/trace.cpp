#include "harness/cli/commands.h"
#include "harness/cli/files/output.h"
#include "harness/cli/flags/model_flags.h"
#include "harness/cli/flags/shared_flags.h"
#include "policies/base/json.h"
#include "policies/trace/trace_difference.h"
#include "policies/trace/trace_json.h"

namespace rematch {
namespace {

struct TraceFlags : OutputFlags {
  explicit TraceFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("--check", compared,
                   "Two stored traces to compare: prints how they differ and records nothing")
        ->expected(2);
    add_output_flags(app, "File to write (default: stdout)");
  }
  ModelFlags model;
  std::vector<std::string> compared;
};

ExitCode check(const TraceFlags& flags) {
  const Trace a = obtain_trace(flags.model, flags.compared[0]);
  const Trace b = obtain_trace(flags.model, flags.compared[1]);
  const std::vector<std::string> differences = trace_differences(a, b);
  for (const std::string& line : differences) print(line + "\n");
  if (!differences.empty()) return ExitCode::kGateFailed;
  print("equal: " + std::to_string(a.ops.size()) + " ops, " + std::to_string(a.packs.size()) +
        " saved tensors, their lifetimes, and backward\n");
  return ExitCode::kOk;
}

ExitCode run(const TraceFlags& flags) {
  if (!flags.compared.empty()) return check(flags);
  const OutputFile output(flags.request({file_kind::kTrace}));
  const Trace trace = obtain_trace(flags.model, "");
  output.require_model(trace.model);
  write_output(flags.output, trace_to_json(trace));
  return ExitCode::kOk;
}

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  add_command<TraceFlags>(
      app, action, "trace",
      "Records what one step of a model does: its ops, values and bytes, and what backward needs",
      run,
      "Examples:\n"
      "  rematch trace --model llama3_8b --tokens 4096 -o llama.trace.json\n"
      "  rematch trace --check recorded_here.json recorded_there.json    # exit code 3: they "
      "differ");
}

}  // namespace rematch
