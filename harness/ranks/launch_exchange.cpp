#include "harness/ranks/launch_exchange.h"

#include <sstream>
#include <utility>

namespace rematch {
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
