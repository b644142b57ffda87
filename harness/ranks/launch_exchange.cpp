#include "harness/ranks/launch_exchange.h"

#include <algorithm>
#include <sstream>
#include <tuple>
#include <utility>

namespace rematch {
namespace {

// A rank that has reported its failure counts as failed even if its process has not ended yet.
bool has_failed(const RankState& state) {
  if (state.is_silent) return true;
  return state.ended_at ? state.signal != 0 || state.exit_code != 0
                        : state.note.failed_at.has_value();
}

// The rank with the smallest key failed first.
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
  if (!state.note.joined) return "has not joined the other ranks";
  return "has begun step " + std::to_string(state.note.step) + " and issued " +
         std::to_string(state.note.calls) + " collectives";
}

Blame blame_for_end(const RankState& state) {
  std::string message = "rank " + std::to_string(state.rank);
  if (state.is_silent) return {state.rank, message + " is lost: its command does not respond"};
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

namespace {

constexpr std::chrono::milliseconds kExchangeInterval{200};

std::optional<std::chrono::nanoseconds> time_of(std::int64_t ns) {
  return ns == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(ns));
}

}  // namespace

LaunchExchange::LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world)
    : store_(std::move(store)), states_(static_cast<std::size_t>(world)) {
  for (int rank = 0; rank < world; ++rank) {
    states_[static_cast<std::size_t>(rank)].rank = rank;
    states_[static_cast<std::size_t>(rank)].was_started = false;
  }
  is_here_.resize(states_.size());
  heard_.resize(states_.size());
  heard_at_.resize(states_.size());
}

void LaunchExchange::exchange(const std::vector<RankState>& here, bool at_once) {
  for (const RankState& state : here) {
    states_[static_cast<std::size_t>(state.rank)] = state;
    is_here_[static_cast<std::size_t>(state.rank)] = true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (here.size() == states_.size() || has_lost_store_ || (!at_once && now < next_)) return;
  next_ = now + kExchangeInterval;
  try {
    const std::string beat = std::to_string(++beat_) + " ";
    for (const RankState& state : here) {
      store_->set("state/" + std::to_string(state.rank), beat + text_of(state));
    }
    for (std::size_t rank = 0; rank < states_.size(); ++rank) {
      const std::string key = "state/" + std::to_string(rank);
      if (!is_here_[rank] && store_->check({key})) hear(rank, store_->get_to_str(key), now);
    }
  } catch (const c10::Error&) {
    has_lost_store_ = true;
  }
}

void LaunchExchange::hear(std::size_t rank, const std::string& text,
                          std::chrono::steady_clock::time_point now) {
  RankState& state = states_[rank];
  if (text != heard_[rank]) {
    heard_[rank] = text;
    heard_at_[rank] = now;
    state = state_of(text.substr(text.find(' ') + 1));
  } else if (now - heard_at_[rank] > kSilence && !state.ended_at) {
    state.is_silent = true;
  }
}

std::string text_of(const RankState& state) {
  std::ostringstream text;
  text << state.rank << ' ' << state.ended_at.value_or(std::chrono::nanoseconds(0)).count() << ' '
       << state.signal << ' ' << state.exit_code << ' ' << state.note.joined << ' '
       << state.note.step << ' ' << state.note.calls << ' ' << state.note.lost_others << ' '
       << state.note.failed_at.value_or(std::chrono::nanoseconds(0)).count() << ' '
       << state.last_line;
  return text.str();
}

RankState state_of(const std::string& text) {
  std::istringstream words(text);
  RankState state;
  std::int64_t ended_at = 0;
  std::int64_t failed_at = 0;
  words >> state.rank >> ended_at >> state.signal >> state.exit_code >> state.note.joined >>
      state.note.step >> state.note.calls >> state.note.lost_others >> failed_at;
  words.ignore();
  std::getline(words, state.last_line);
  state.ended_at = time_of(ended_at);
  state.note.failed_at = time_of(failed_at);
  return state;
}

}  // namespace rematch
