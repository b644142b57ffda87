#include "harness/cli/commands.h"
#include "harness/cli/model_flags.h"
#include "harness/cli/output.h"
#include "policies/trace/json.h"
#include "policies/trace/trace_json.h"

namespace rematch {
namespace {

struct Flags {
  explicit Flags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
    app.add_option("-o,--output", output, "File to write (default: stdout)");
  }
  ModelFlags model;
  std::string output;
};

}  // namespace

void add_trace(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "trace", "Records what one step of a model does: ops, values, bytes, what backward demands");
  auto flags = std::make_shared<Flags>(*command);
  command->footer("Example: rematch trace --model llama3_8b --tokens 4096 -o llama.trace.json");
  command->callback([&action, flags] {
    action = [flags] {
      require_writable(flags->output);
      write_output(flags->output, trace_to_json(obtain_trace(flags->model, "")));
      return ExitCode::kOk;
    };
  });
}

}  // namespace rematch
