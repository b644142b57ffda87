#include "harness/sweep/child_measurer.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/process/process.h"
#include "harness/sweep/this_worker.h"
#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxAttempts = 2;  // for failures that may not be the model's fault
constexpr int kMaxWaits = 60;    // number of waits for free disk space; each lasts one heartbeat
constexpr int kUsageCode = 2;    // exit code for wrong arguments; such a run is not retried
constexpr int kOkCode = 0;
// A run needs two seconds to stop its own children. Schedulers kill a job five to thirty seconds
// after the signal.
constexpr std::chrono::seconds kGraceToStop{4};
constexpr std::size_t kLongestReason = 400;

// Returns whether `rematch run` leaves a report with this exit code.
bool leaves_report(int exit_code) {
  return exit_code == kOkCode || exit_code == 3 || exit_code == 4 || exit_code == 5;
}

std::string generation_folder(const std::string& sweep, const std::string& comparison,
                              int generation) {
  return (fs::path(sweep) / "work" / claim_name(comparison, generation)).string();
}

// Returns the last line that the child printed.
std::string last_line(const std::string& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) last = line;
  }
  return on_one_line(last, kLongestReason);
}

// Returns whether the disk has room for a small report. On a full disk even the child's error
// message may be missing.
bool has_room(const std::string& folder) {
  constexpr std::size_t kRoomBytes = std::size_t{64} << 10;
  const std::string file = folder + "/room";
  try {
    write_file_atomically(file, std::string(kRoomBytes, '.'));
  } catch (const FileError&) {
    return false;
  }
  std::error_code ignored;
  fs::remove(file, ignored);
  return true;
}

// Returns whether the line reports a disk error, which is not the model's fault.
bool is_disk_trouble(const std::string& line) {
  constexpr std::array<int, 5> kTroubles = {ENOSPC, EROFS, EDQUOT, EIO, ESTALE};
  return std::any_of(kTroubles.begin(), kTroubles.end(), [&line](int error) {
    return line.find(std::strerror(error)) != std::string::npos;
  });
}

std::string describe_end(int status) {
  if (WIFSIGNALED(status)) return "ended by signal " + std::to_string(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

std::shared_ptr<void> ChildMeasurer::turn() {
  if (!settings_.one_at_a_time) return std::make_shared<int>(0);
  return take_host_turn();
}

MeasureEnd ChildMeasurer::measure(std::size_t item, HeldClaim& claim) {
  const PlannedComparison& comparison = plan_.comparisons[item];
  const std::optional<Bytes>& least = comparison.predicted.least_peak;
  if (settings_.memory && least && *least > settings_.memory->bytes) {
    const std::string why = "the lowest predicted peak is " + format_bytes(*least) + "; " +
                            settings_.memory->what + ": " + format_bytes(settings_.memory->bytes);
    insist(claim, [&] { claim.end(ClaimState::kSkipped, why); });
    settings_.say(comparison.id + ": skipped: " + why);
    return MeasureEnd::kSkipped;
  }
  settings_.say(comparison.id + ": start " + std::to_string(claim.generation()) + ", " +
                comparison.spec.preset + ", " + std::to_string(comparison.num_points) + " points");
  return measure_again_and_again(comparison, claim);
}

MeasureEnd ChildMeasurer::measure_again_and_again(const PlannedComparison& comparison,
                                                  HeldClaim& claim) const {
  insist(claim, [&] { prepare_folder(claim); });
  const std::string errors = work_folder(claim) + "/stderr.txt";
  int num_waits = 0;
  for (int attempt = 1;;) {
    const auto ended = run_child(comparison, claim);
    if (const auto* stopped = std::get_if<MeasureEnd>(&ended)) {
      try {
        claim.end(ClaimState::kFree);
        // if this fails, other workers still notice that the heartbeats have stopped
      } catch (const FileError&) {
      }
      return *stopped;
    }
    const int status = std::get<int>(ended);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const bool has_report = fs::exists(work_folder(claim) + "/report.json");
    if (leaves_report(code) && has_report) return finish(claim, code);
    const std::string line = last_line(errors);
    const bool is_disk = is_disk_trouble(line) || !has_room(work_folder(claim));
    if (is_disk && num_waits++ < kMaxWaits) {
      sleep_until_told(settings_.beat_every);
      claim.beat();
      continue;
    }
    if (code != kUsageCode && attempt++ < kMaxAttempts) continue;
    const std::string why = describe_end(status) + (line.empty() ? "" : ": " + line);
    insist(claim, [&] { claim.end(ClaimState::kFailed, why); });
    settings_.say(comparison.id + ": failed: " + why);
    return MeasureEnd::kFailed;
  }
}

std::string ChildMeasurer::work_folder(const HeldClaim& claim) const {
  return generation_folder(settings_.folder, claim.comparison(), claim.generation());
}

// Copies the points of an earlier worker, so that the run resumes from them. The earlier worker may
// still be writing. Files are replaced atomically, so every copy is complete.
void ChildMeasurer::prepare_folder(const HeldClaim& claim) const {
  const fs::path folder = work_folder(claim);
  std::error_code error;
  fs::create_directories(folder / "report.points", error);
  if (error) throw FileError("cannot make folder '" + folder.string() + "': " + error.message());
  for (int earlier = claim.generation() - 1; earlier > 0; --earlier) {
    const fs::path points =
        fs::path(generation_folder(settings_.folder, claim.comparison(), earlier)) /
        "report.points";
    if (!fs::is_directory(points, error)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(points, error)) {
      if (entry.path().extension() != ".json") continue;
      write_file_atomically((folder / "report.points" / entry.path().filename()).string(),
                            read_text_file(entry.path().string()));
    }
    return;
  }
}

bool ChildMeasurer::is_told() const {
  return stop_request_by_signal() != StopRequest::kNone ||
         (settings_.end && monotonic_now() >= *settings_.end);
}

std::variant<int, MeasureEnd> ChildMeasurer::run_child(const PlannedComparison& comparison,
                                                       HeldClaim& claim) const {
  std::vector<std::string> command = {settings_.program, "run"};
  command.insert(command.end(), comparison.arguments.begin(), comparison.arguments.end());
  command.insert(command.end(), {"-o", work_folder(claim) + "/report.json"});
  // Sets TMPDIR so that temporary files of a killed child stay inside the sweep's folder.
  Child child(command, {"TMPDIR=" + work_folder(claim)}, work_folder(claim) + "/stderr.txt");
  auto next_beat = monotonic_now() + settings_.beat_every;
  while (!child.poll_once(
      std::chrono::duration_cast<std::chrono::milliseconds>(next_beat - monotonic_now()) +
      std::chrono::milliseconds(1))) {
    if (is_told()) {
      child.stop(kGraceToStop);
      return MeasureEnd::kStopped;
    }
    if (monotonic_now() < next_beat) continue;
    next_beat = monotonic_now() + settings_.beat_every;
    claim.beat();
    if (!claim.is_superseded()) continue;
    child.stop(kGraceToStop);
    return MeasureEnd::kSuperseded;
  }
  // The signal may arrive just as the child ends. Only the exit code shows whether the signal
  // stopped the run. A stopped run keeps its finished points.
  const bool was_signalled = WIFEXITED(child.status()) && WEXITSTATUS(child.status()) > 128;
  if (is_told() && was_signalled) return MeasureEnd::kStopped;
  return child.status();
}

MeasureEnd ChildMeasurer::finish(HeldClaim& claim, int exit_code) const {
  insist(claim, [&] { claim.finish(work_folder(claim) + "/report.json"); });
  settings_.say(claim.comparison() +
                (exit_code == kOkCode ? ": done" : ": done, some of its points failed"));
  return exit_code == kOkCode ? MeasureEnd::kOk : MeasureEnd::kSomePointsFailed;
}

void ChildMeasurer::insist(HeldClaim& claim, const std::function<void()>& write) const {
  while (true) {
    try {
      return write();
    } catch (const FileError&) {
      if (is_told()) throw;
    }
    sleep_until_told(settings_.beat_every);
    claim.beat();
  }
}

}  // namespace rematch
