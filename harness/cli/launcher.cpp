// The program `rematch` of a build with LibTorch. Loading LibTorch takes 0.4 s, so this program
// runs --help and the commands about files without LibTorch. It replaces itself with
// rematch-libtorch for every other command.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/command_line.h"
#include "harness/cli/files/output.h"
#include "harness/process/interrupt.h"
#include "harness/process/leave.h"
#include "harness/process/process.h"
#include "harness/process/standard_streams.h"

namespace rematch {
namespace {

constexpr std::array<std::string_view, 6> kWithoutLibtorch = {"list",  "compare", "gate",
                                                              "merge", "render",  "validate"};

// Returns whether the command with these arguments works without LibTorch.
bool needs_no_libtorch(const std::vector<std::string_view>& arguments) {
  if (arguments.empty() || arguments.front() == "--version") return true;
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  const auto is_help = [](std::string_view word) { return word == "--help" || word == "-h"; };
  if (std::any_of(arguments.begin(), end, is_help)) return true;
  return std::find(kWithoutLibtorch.begin(), kWithoutLibtorch.end(), arguments.front()) !=
         kWithoutLibtorch.end();
}

// Replaces this process with rematch-libtorch from the same folder. Returns an exit code if that
// fails. Holds signals back until the new program can handle them.
int continue_with_libtorch(char** argv) {
  const std::string program = own_executable() + "-libtorch";
  hold_interrupts();
  execv(program.c_str(), argv);
  return static_cast<int>(end_with(ExitCode::kToolError, program + " does not start"));
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) {
  rematch::open_missing_streams();
  if (!rematch::needs_no_libtorch({argv + 1, argv + argc})) {
    rematch::leave(rematch::continue_with_libtorch(argv));
  }
  rematch::leave(rematch::run_command_line(argc, argv));
}
