#include "harness/cli/libtorch/run_setup.h"

#include <ATen/core/Tensor.h>

#include <unistd.h>
#include <cstdlib>
#include <filesystem>

#include "harness/cli/libtorch/parts.h"
#include "harness/measure/environment.h"
#include "harness/measure/source_state.h"
#include "harness/process/process.h"
#include "harness/sweep/job_script.h"
#include "harness/training/device.h"
#include "policies/base/file.h"
#include "policies/base/hashing.h"
#include "policies/base/json.h"
#include "policies/base/text.h"
#include "reports/compare/step_bits.h"
#include "reports/record/json/record_json.h"

namespace rematch {

void prepare_children() { setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0); }

void prepare_timing(char** arguments) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  prepare_children();
  hold_interrupts();
  execv(own_executable().c_str(), arguments);
  static_cast<void>(take_held_interrupt());  // reached only if execv() failed
}

Provenance make_provenance(const std::vector<std::string>& command, const std::string& device,
                           const std::string& allocator, std::uint64_t seed) {
  Provenance provenance;
  provenance.environment = describe_environment(device_named(device));
  provenance.environment.allocator = allocator;
  provenance.command = command;
  provenance.seed = seed;
  note_source_state(provenance);
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
    if (claims_wrong_bits(point)) return ExitCode::kGateFailed;
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
    return "; " + output + " is from an earlier run and is kept";
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
