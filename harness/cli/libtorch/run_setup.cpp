#include "harness/cli/libtorch/run_setup.h"

#include <ATen/core/Tensor.h>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "harness/measure/environment.h"
#include "harness/measure/source_state.h"
#include "harness/process/process.h"
#include "harness/training/device.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

// Children inherit it. Threads that spin while they wait make a step several times as long on a
// machine that does something else besides (seen: 0.35 s became 1 to 10 s).
void let_idle_threads_sleep() { setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0); }

}  // namespace

void prepare_children() { let_idle_threads_sleep(); }

void start_again_with_sleeping_threads(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  let_idle_threads_sleep();
  execv(own_executable().c_str(), arguments);  // where it fails, threads spin and times are longer
}

std::string shell_line(const std::vector<std::string>& command) {
  std::string line = "rematch";
  for (std::size_t index = 1; index < command.size(); ++index) {
    const std::string& word = command[index];
    const bool plain = word.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789_-+=./,:") == std::string::npos;
    line.append(" ");
    if (plain && !word.empty()) {
      line.append(word);
      continue;
    }
    line.append("'");
    for (const char letter : word) {
      if (letter == '\'') {
        line.append("'\\''");
      } else {
        line.push_back(letter);
      }
    }
    line.append("'");
  }
  return line;
}

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed) {
  Provenance provenance;
  provenance.environment = describe_environment(device_named(device));
  provenance.environment.allocator = allocator;
  provenance.command = command;
  provenance.seed = seed;
  if (const std::optional<SourceState> source = source_state()) {
    provenance.git_commit = source->commit;
    provenance.git_dirty = source->dirty;
  }
  provenance.tool_version = REMATCH_VERSION;
  provenance.program_sha256 = sha256_hex(read_text_file(own_executable()));
  provenance.reproduce = shell_line(command);
  return provenance;
}

std::string points_folder_of(const std::string& output) {
  if (output.empty()) return "";
  return std::filesystem::path(output).replace_extension("").string() + ".points";
}

ExitCode exit_code_of(const Report& report) {
  ExitCode code = ExitCode::kOk;
  for (const PointRecord& point : report.points) {
    if (point.status != PointStatus::kOk) code = ExitCode::kSomePointsFailed;
  }
  for (const PointRecord& point : report.points) {
    if (!point.parity) continue;
    const bool equal = point.parity->loss_bits_equal.value_or(true) &&
                       point.parity->gradient_bits_equal.value_or(true) &&
                       point.parity->parameter_hash_equal.value_or(true) &&
                       point.parity->generator_hash_equal.value_or(true);
    if (!equal) return ExitCode::kGateFailed;
  }
  return code;
}

namespace {

std::size_t num_points_in(const std::string& file) {
  try {
    return report_from_text(read_text_file(file), file).points.size();
  } catch (const FileError&) {
    return 0;
  } catch (const FormatError&) {
    return 0;
  }
}

}  // namespace

std::string keep_partial(const std::string& output, const Report& partial) {
  if (output.empty() || partial.points.empty()) return "";
  if (num_points_in(output) >= partial.points.size()) {
    return "; " + output + " is of an earlier run, and stays";
  }
  try {
    write_json_file(output, report_to_json(partial));
  } catch (const FileError& error) {
    return std::string("; ") + error.what();
  }
  return "; " + output + " is the report of " + std::to_string(partial.points.size()) + " of " +
         std::to_string(partial.planned.size()) + " points";
}

}  // namespace rematch
