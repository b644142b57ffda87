#include "harness/sweep/job_script.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "policies/base/text.h"

namespace rematch {
namespace {

constexpr std::chrono::seconds kSignalBeforeLimit{60};
constexpr std::chrono::seconds kSignalMayBeEarly{60};

// Note [A task of a job array] The script's text after its header. Each line handles one behaviour
// of Slurm.
// - scancel, requeue and preemption send TERM. Slurm restarts preempted tasks itself, and a user's
//   scancel must be final. A script that received TERM therefore never requeues itself.
// - During a preemption's grace time, Slurm may end only the step. The worker then returns 143.
// - Slurm does not restart a task that reached its limit, so the script requeues it. The array's id
//   with the task's index names only this task. SLURM_JOB_ID of the last task would name the whole
//   array.
// - `wait` returns early when a trap runs, with code 138 for USR1, so the script waits again.
constexpr const char* kSlurmBody = R"(set -u
echo "$(date +%FT%T) task $SLURM_ARRAY_TASK_ID, start $((${SLURM_RESTART_COUNT:-0} + 1)), on $SLURMD_NODENAME, GPU ${CUDA_VISIBLE_DEVICES:-none}"
TMPDIR=$(mktemp -d) && export TMPDIR && trap 'rm -rf "$TMPDIR"' EXIT
stopped=
trap 'stopped=1; kill -TERM "$worker" 2> /dev/null' TERM
trap 'kill -USR1 "$worker" 2> /dev/null' USR1
COMMAND &
worker=$!
wait "$worker"; code=$?
while kill -0 "$worker" 2> /dev/null; do wait "$worker"; code=$?; done
echo "$(date +%FT%T) the worker ended with $code"
case $code in
  75 | 138) again=1 ;;                                   # the time is up
  143) sleep 1; again=; [ -n "$stopped" ] || again=1 ;;  # Slurm ended only the step: preempted
  *) again= ;;
esac
if [ -n "$again" ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 20 ]; then
  trap '' TERM  # the requeue sends TERM
  scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
)";

// A shell does not forward signals to its children, so a trap forwards them. The script exits with
// the largest exit code of the workers.
constexpr const char* kLocalBody = R"(set -u
workers=
trap 'kill -TERM $workers 2> /dev/null' TERM INT
for _ in $(seq COUNT); do
  COMMAND &
  workers="$workers $!"
done
worst=0
for worker in $workers; do
  wait "$worker"; code=$?
  while kill -0 "$worker" 2> /dev/null; do wait "$worker"; code=$?; done
  [ "$code" -le "$worst" ] || worst=$code
done
exit "$worst"
)";

std::string with_value(std::string text, const std::string& name, const std::string& value) {
  const std::size_t at = text.find(name);
  return text.replace(at, name.size(), value);
}

std::string sbatch_line(const std::string& option) { return "#SBATCH --" + option + "\n"; }

}  // namespace

std::chrono::seconds worker_time(std::chrono::minutes limit) {
  return limit - kSignalBeforeLimit - kSignalMayBeEarly;
}

std::string slurm_script(const JobScript& job) {
  std::string text = "#!/usr/bin/env bash\n";
  text +=
      "# Workers of the sweep in " + job.folder + ". Submit this script again to add workers.\n";
  text += "# rematch sweep status and rematch sweep merge show the workers' progress.\n";
  text += sbatch_line("job-name=" + job.name);
  text += sbatch_line("array=0-" + std::to_string(job.num_workers - 1));
  if (!job.gres.empty()) text += sbatch_line("gres=" + job.gres);
  text += sbatch_line("cpus-per-task=" + std::to_string(job.num_cpus));
  text += sbatch_line("time=" + std::to_string(job.time.count()));
  text += sbatch_line("signal=B:USR1@" + std::to_string(kSignalBeforeLimit.count()));
  text += sbatch_line("requeue");
  text += sbatch_line("open-mode=append");
  text += sbatch_line("output=" + job.folder + "/log/%A_%a.txt");
  for (const std::string& option : job.options) text += sbatch_line(option);
  std::string command = job.prefix.empty() ? "" : job.prefix + " ";
  command += shell_word(job.program) + " sweep run " + shell_word(job.folder) + " --for " +
             std::to_string(worker_time(job.time).count()) + "s";
  return text + with_value(kSlurmBody, "COMMAND", command);
}

std::string local_script(const JobScript& job) {
  std::string command = job.prefix.empty() ? "" : job.prefix + " ";
  command += shell_word(job.program) + " sweep run " + shell_word(job.folder);
  if (!job.gres.empty()) command += " --gpus all";
  const std::string text = with_value(kLocalBody, "COUNT", std::to_string(job.num_workers));
  return "#!/usr/bin/env bash\n# Workers of the sweep in " + job.folder + " on this machine.\n" +
         with_value(text, "COMMAND", command);
}

std::string shell_line(const std::vector<std::string>& command) {
  // Keeps the first word as the user typed it, because "rematch" may not be on PATH.
  std::string line = command.empty() ? "rematch" : shell_word(command.front());
  for (std::size_t index = 1; index < command.size(); ++index) {
    line.append(" ").append(shell_word(command[index]));
  }
  return line;
}

std::string shell_word(const std::string& text) {
  const bool is_plain = !text.empty() && text.find_first_not_of(
                                             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                             "0123456789_-+=./,:") == std::string::npos;
  if (is_plain) return text;
  std::string quoted = "'";
  for (const char letter : text) {
    if (letter == '\'') {
      quoted.append("'\\''");
    } else {
      quoted.push_back(letter);
    }
  }
  return quoted.append("'");
}

std::chrono::minutes slurm_minutes(const std::string& text) {
  constexpr std::chrono::minutes kNoLimit{-1};
  std::int64_t days = 0;
  std::string rest = text;
  const std::size_t dash = text.find('-');
  std::vector<std::int64_t> parts;
  if (dash != std::string::npos) {
    const auto parsed = std::from_chars(text.data(), text.data() + dash, days);
    if (parsed.ec != std::errc()) return kNoLimit;
    rest = text.substr(dash + 1);
  }
  for (std::size_t start = 0; start <= rest.size();) {
    const std::size_t end = std::min(rest.find(':', start), rest.size());
    const auto part = parse_number<std::int64_t>(std::string_view(rest).substr(start, end - start));
    if (!part) return kNoLimit;
    parts.push_back(*part);
    start = end + 1;
  }
  // After days come hours. Three numbers without days begin with hours, and one or two numbers
  // begin with minutes.
  const bool starts_with_hours = dash != std::string::npos || parts.size() == 3;
  const std::int64_t hours = starts_with_hours ? parts[0] : 0;
  const std::size_t place = starts_with_hours ? 1 : 0;
  const std::int64_t minutes = place < parts.size() ? parts[place] : 0;
  return std::chrono::minutes((days * 24 + hours) * 60 + minutes);
}

}  // namespace rematch
