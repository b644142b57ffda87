#include "harness/run/children/child_point.h"

#include <signal.h>

#include <cstring>
#include <filesystem>
#include <optional>

#include "harness/process/interrupt.h"
#include "harness/ranks/place.h"
#include "harness/run/children/out_of_memory.h"
#include "harness/run/children/rank_processes.h"
#include "harness/run/children/rank_records.h"
#include "harness/run/children/turns_request.h"
#include "harness/run/passes/link_pass.h"
#include "harness/run/passes/passes.h"
#include "harness/training/device.h"
#include "policies/base/file.h"
#include "policies/base/format.h"
#include "policies/base/json.h"
#include "policies/predict/device/links.h"
#include "reports/record/json/record_json.h"

namespace rematch {
namespace {

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1, end - begin);
}

// Does not retry a point if the rank that failed, or the way it failed, is unknown.
void describe_bad_end(const RanksOutcome& outcome, std::chrono::milliseconds limit, int attempt,
                      PointRecord& record) {
  if (outcome.culprit) {
    describe_end(*outcome.culprit, limit, attempt, record);
    record.reason = outcome.message + ": " + record.reason;
    return;
  }
  const bool is_late = outcome.end == LaunchResult::End::kTimedOut;
  record.failure.emplace();
  record.status = is_late ? PointStatus::kTimeout : PointStatus::kCrash;
  record.reason = outcome.message;
}

// Runs one process for each rank of the point's layout, all with the same request.
PointRecord measure_on_ranks(const PointRequest& request, const ChildRule& rule,
                             const SayRetry& say_retry) {
  std::optional<SpawnedRanks> spawned;
  if (rule.ranks == nullptr) spawned.emplace(request.identity.world);
  RankProcesses& ranks = spawned ? *spawned : *rule.ranks;
  const std::string text = request_to_json(request).dump();
  for (int attempt = 1;; ++attempt) {
    const RanksOutcome outcome = ranks.run(text, rule.limit);
    if (outcome.end == LaunchResult::End::kInterrupted) {
      throw Interrupted(InterruptGuard::signal().value_or(0));
    }
    if (outcome.end == LaunchResult::End::kWell) {
      std::vector<PointRecord> records;
      for (const std::string& result : outcome.results) {
        records.push_back(point_file_from_json(parse_json(result, "a rank's result")).point);
      }
      return merge_ranks(std::move(records));
    }
    PointRecord record = empty_record(request);
    describe_bad_end(outcome, rule.limit, attempt, record);
    const bool again = outcome.culprit && deserves_retry(*outcome.culprit);
    if (attempt > rule.most_retries || !again) return record;
    say_retry(record.reason);
  }
}

// Writes a snapshot file for each rank, because each rank has its own allocator.
void use_file_of_rank(PointRequest& request) {
  const std::optional<RankPlace> place = rank_place_from_environment();
  if (request.snapshot_file.empty() || !place) return;
  request.snapshot_file = file_of_rank(request.snapshot_file, place->rank, place->world);
}

// Returns the child's answer to `request`. If the child left no result, returns nullopt and fills
// `failed` with the reason.
std::optional<Json> ask_child(const Json& request, std::chrono::milliseconds limit,
                              int most_retries, const SayRetry& say_retry, PointRecord& failed) {
  const MemoryFile request_file("request");
  const MemoryFile result_file("result");
  write_in_place(request_file.path(), request.dump());
  for (int attempt = 1;; ++attempt) {
    const ChildResult result =
        run_child({own_executable(), "point", request_file.path(), result_file.path()}, limit);
    if (result.end == ChildEnd::kInterrupted) {
      throw Interrupted(InterruptGuard::signal().value_or(0));
    }
    if (result.end == ChildEnd::kExited && result.code == 0) {
      return read_json_file(result_file.path());
    }
    describe_end(result, limit, attempt, failed);
    if (attempt > most_retries || !deserves_retry(result)) return std::nullopt;
    say_retry(failed.reason);
  }
}

bool has_rank_processes(const PointRequest& request) {
  return request.identity.world > 1 && !request.identity.pretended_rank &&
         !device_named(request.device).is_meta();
}

}  // namespace

PointRecord measure_in_child(const PointRequest& request, const ChildRule& rule,
                             const SayRetry& say_retry) {
  if (has_rank_processes(request)) return measure_on_ranks(request, rule, say_retry);
  PointRecord failed = empty_record(request);
  const std::optional<Json> answer =
      ask_child(request_to_json(request), rule.limit, rule.most_retries, say_retry, failed);
  return answer ? point_file_from_json(*answer).point : failed;
}

std::vector<PointRecord> measure_turns_in_child(const TurnsRequest& request, const ChildRule& rule,
                                                const SayRetry& say_retry) {
  const auto num_arms = static_cast<int>(request.arms.size());
  PointRecord failed;
  const std::optional<Json> answer = ask_child(
      turns_request_to_json(request), rule.limit * num_arms, rule.most_retries, say_retry, failed);
  std::vector<PointRecord> records;
  for (std::size_t arm = 0; arm < request.arms.size(); ++arm) {
    if (answer) {
      records.push_back(point_file_from_json(answer->at(arm)).point);
      continue;
    }
    PointRecord& record = records.emplace_back(empty_record(request.arms[arm]));
    record.status = failed.status;
    record.reason = failed.reason;
    record.failure = failed.failure;
  }
  return records;
}

bool deserves_retry(const ChildResult& result) {
  const bool killed = result.end == ChildEnd::kSignalled && result.code == SIGKILL;
  return result.end == ChildEnd::kTimedOut || (killed && !result.memory_was_short);
}

void describe_end(const ChildResult& result, std::chrono::milliseconds limit, int attempts,
                  PointRecord& record) {
  record.failure.emplace();
  const std::string said = last_line(result.error_tail);
  const std::string resident =
      "; its peak resident memory was " + format_bytes(result.peak_resident);
  const std::string again =
      attempts == 1 ? "" : " in the last of " + std::to_string(attempts) + " attempts";
  if (result.end == ChildEnd::kTimedOut) {
    record.status = PointStatus::kTimeout;
    record.reason = "no result after " + std::to_string(limit.count()) + " ms" + again + resident +
                    "; raise --timeout, or use fewer steps";
    return;
  }
  if (result.end == ChildEnd::kSignalled) {
    record.failure->signal = result.code;
    const bool ran_out = result.code == SIGKILL && result.memory_was_short;
    record.status = ran_out ? PointStatus::kOom : PointStatus::kCrash;
    if (ran_out) {
      record.reason = "killed, probably because memory ran out" + resident;
    } else if (result.code == SIGKILL) {
      record.reason = "killed while memory was free" + again + resident;
    } else {
      record.reason =
          "ended by signal " + std::to_string(result.code) + " (" + strsignal(result.code) + ")";
    }
  } else {
    record.failure->exit_code = result.code;
    record.status = PointStatus::kCrash;
    record.reason = "exited with code " + std::to_string(result.code) + " and no result";
  }
  if (!said.empty()) record.reason += ": " + said;
}

std::string file_of_rank(const std::string& file, int rank, int world) {
  if (world == 1) return file;
  const std::filesystem::path path(file);
  const std::string which = ".rank-" + std::to_string(rank) + "-of-" + std::to_string(world);
  return (path.parent_path() / (path.stem().string() + which + path.extension().string())).string();
}

void answer_request(const std::string& request_file, const std::string& result_file) {
  const Json json = read_json_file(request_file);
  if (is_links_request(json)) {
    const LinkProfile links = measure_links(links_request_from_json(json));
    write_in_place(result_file, links_to_json(links).dump());
    return;
  }
  if (is_turns_request(json)) {
    Json records = Json::array();
    for (const PointRecord& record : run_turns(turns_request_from_json(json))) {
      records.push_back(point_file_to_json({{}, record, {}}));
    }
    write_in_place(result_file, records.dump());
    return;
  }
  PointRequest request = request_from_json(json);
  if (has_rank_processes(request)) use_file_of_rank(request);
  PointFile result;
  result.point = run_passes(request);
  write_in_place(result_file, point_file_to_json(result).dump());
}

}  // namespace rematch
