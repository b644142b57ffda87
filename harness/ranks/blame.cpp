#include "harness/ranks/blame.h"

#include <algorithm>
#include <tuple>

namespace rematch {
namespace {

// One that has noted its failure and has not ended yet is on its way out.
bool has_failed(const RankState& state) {
  if (state.is_silent) return true;
  return state.ended_at ? state.signal != 0 || state.exit_code != 0
                        : state.note.failed_at.has_value();
}

// The one with the least key was first.
auto order_of_failure(const RankState& state) {
  const bool is_by_itself = state.signal != 0 || state.is_silent;
  const int kind = is_by_itself ? 0 : state.note.lost_others ? 2 : 1;
  return std::tuple(kind, state.note.failed_at ? *state.note.failed_at : *state.ended_at,
                    state.rank);
}

auto progress_of(const RankState& state) {
  return std::tuple(state.was_started, state.note.joined, state.note.step, state.note.calls);
}

std::string describe_progress(const RankState& state) {
  if (!state.was_started) return "was never started";
  if (!state.note.joined) return "has not joined the others";
  return "has begun step " + std::to_string(state.note.step) + " and " +
         std::to_string(state.note.calls) + " collectives";
}

Blame blame_for_end(const RankState& state) {
  std::string message = "rank " + std::to_string(state.rank);
  if (state.is_silent) return {state.rank, message + " is gone: nothing is heard of its command"};
  message += state.note.failed_at && state.signal == 0 ? " failed first" : " ended first";
  if (state.signal != 0) message += ", signal " + std::to_string(state.signal);
  if (state.exit_code != 0) message += ", exit code " + std::to_string(state.exit_code);
  if (!state.last_line.empty()) message += ": " + state.last_line;
  return {state.rank, message};
}

}  // namespace

std::optional<Blame> blame_of_failure(const std::vector<RankState>& ranks) {
  const RankState* first = nullptr;
  for (const RankState& state : ranks) {
    if (!has_failed(state)) continue;
    if (first == nullptr || order_of_failure(state) < order_of_failure(*first)) first = &state;
  }
  if (first == nullptr) return std::nullopt;
  if (first->signal == 0 && first->note.lost_others) {
    const std::optional<Blame> late = blame_of_delay(ranks);
    if (late) return late;
  }
  return blame_for_end(*first);
}

std::optional<Blame> blame_of_delay(const std::vector<RankState>& ranks) {
  const RankState* last = nullptr;
  const RankState* foremost = nullptr;
  for (const RankState& state : ranks) {
    if (foremost == nullptr || progress_of(state) > progress_of(*foremost)) foremost = &state;
    if (state.ended_at) continue;
    if (last == nullptr || progress_of(state) < progress_of(*last)) last = &state;
  }
  if (last == nullptr || progress_of(*last) == progress_of(*foremost)) return std::nullopt;
  return Blame{last->rank, "rank " + std::to_string(last->rank) + " is behind: it " +
                               describe_progress(*last) + ", rank " +
                               std::to_string(foremost->rank) + " " + describe_progress(*foremost)};
}

}  // namespace rematch
