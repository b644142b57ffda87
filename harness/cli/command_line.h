#pragma once

namespace rematch {

// The whole command line program. Parses the arguments, runs the chosen subcommand, and turns
// exceptions into a line on stderr. Returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace rematch
