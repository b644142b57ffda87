#pragma once

namespace rematch {

// The whole command: parses, runs the subcommand that is called, and turns what it throws into a
// line on stderr. Returns the exit code.
int run_command_line(int argc, char** argv);

}  // namespace rematch
