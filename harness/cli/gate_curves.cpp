#include "harness/cli/gate_curves.h"

#include <filesystem>
#include <set>

#include "harness/cli/exit_code.h"
#include "policies/base/file.h"
#include "policies/base/json_fwd.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr Bytes kLargestLossFile{std::int64_t{1} << 30};

// Rejects a curve that is given twice. Two copies of a curve would look like two equal runs, or
// like a candidate that equals its reference.
void require_each_once(const CurveFlags& flags) {
  std::set<std::filesystem::path> seen;
  for (const auto* side : {&flags.losses, &flags.references}) {
    for (const std::string& file : *side) {
      std::error_code ignored;  // a missing file is reported when the file is read
      const auto path = std::filesystem::weakly_canonical(file, ignored);
      if (seen.insert(path.empty() ? std::filesystem::path(file) : path).second) continue;
      throw UsageError(
          in_quotes(file) +
          " is given twice; each curve is one run, and a run cannot be compared with itself");
    }
  }
}

std::vector<RunLosses> read_curves(const std::vector<std::string>& files,
                                   const LossColumns& columns) {
  std::vector<RunLosses> curves;
  try {
    for (const std::string& file : files) {
      curves.push_back(parse_loss_curve(read_text_file(file, kLargestLossFile), file, columns));
    }
  } catch (const FileError& error) {
    throw UsageError(error.what());
  }
  return curves;
}

}  // namespace

CurveFlags::CurveFlags(CLI::App& app) : command(&app) {
  app.add_option("--losses", losses,
                 "Loss curves of any trainer to judge in place of a report, one file for each run: "
                 "CSV with a header, or JSON lines, with step and loss in each row");
  app.add_option("--reference-losses", references,
                 "Curves to compare with: runs that differ only by noise, at least three for "
                 "--loss envelope");
  app.add_option("--step-column", columns.step, "Column or key of the step in these files");
  app.add_option("--loss-column", columns.loss,
                 "Column or key of the loss; TensorBoard's CSV calls it Value");
}

void require_curve_flags(const CurveFlags& flags, const GateSettings& settings) {
  if (!flags.are_given()) {
    for (const char* flag : {"--reference-losses", "--step-column", "--loss-column"}) {
      if (flags.command->count(flag) > 0)
        throw UsageError(std::string(flag) + " needs --losses FILE");
    }
    return;
  }
  for (const char* flag : {"report", "--reference", "--reference-policy", "--policy",
                           "--max-peak-bytes", "--max-slowdown", "--expect", "--allow-mixed"}) {
    if (flags.command->count(flag) == 0) continue;
    throw UsageError(std::string(flag[0] == '-' ? "" : "a ") + flag +
                     " cannot be used with --losses, which gates only loss curves");
  }
  if (flags.references.empty()) {
    throw UsageError("--losses needs --reference-losses FILE..., the curves to compare with");
  }
  if (settings.loss == LossTier::kBitwise) {
    throw UsageError(
        "--loss bitwise needs a report, which holds the bits; loss curves hold only numbers, "
        "so use --max-loss-difference 0");
  }
  require_each_once(flags);
}

void require_window(const GateSettings& settings, const std::string& who_has,
                    std::size_t num_steps) {
  const std::string steps = std::to_string(num_steps);
  if (!settings.window_steps || *settings.window_steps <= static_cast<int>(num_steps)) return;
  throw UsageError("--window " + std::to_string(*settings.window_steps) + " is out of range; " +
                   who_has + " " + steps + " steps; allowed: 1 to " + steps);
}

std::variant<GateRecord, NoCommonSteps> gate_curve_files(const CurveFlags& flags,
                                                         const GateSettings& settings) {
  const std::vector<RunLosses> candidates = read_curves(flags.losses, flags.columns);
  const std::vector<RunLosses> references = read_curves(flags.references, flags.columns);
  // The steps of the first reference decide which steps are compared.
  require_window(settings, references.front().file + " has", references.front().points.size());
  return gate_curves(candidates, references, settings);
}

}  // namespace rematch
