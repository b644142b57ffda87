// rematch: one binary with a subcommand for each stage. Data goes to stdout, messages to stderr.
#include "harness/cli/command_line.h"
#include "harness/process/leave.h"
#include "harness/process/standard_streams.h"

int main(int argc, char** argv) {
  rematch::open_missing_streams();
  rematch::leave(rematch::run_command_line(argc, argv));
}
