// The knowledge that the launchers of one job have of each other's ranks, through the job's store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "harness/ranks/blame.h"

namespace rematch {

class LaunchExchange {
 public:
  // Covers the ranks of a job of `world`, in keys of their own in the store.
  LaunchExchange(c10::intrusive_ptr<c10d::Store> store, int world);

  // Tells the states of the ranks here and takes those of all, every so often, and at once where
  // `at_once`. With no ranks elsewhere it costs nothing.
  void exchange(const std::vector<RankState>& here, bool at_once);
  // By rank; one that was not heard of was never started. One that was heard of and has not ended
  // is silent once nothing was heard for so long.
  static constexpr std::chrono::seconds kSilence{10};
  const std::vector<RankState>& states() const { return states_; }

  // The store is gone, and with it the launcher of rank 0.
  bool has_lost_store() const { return has_lost_store_; }

 private:
  void hear(std::size_t rank, const std::string& text, std::chrono::steady_clock::time_point now);

  c10::intrusive_ptr<c10d::Store> store_;
  std::vector<RankState> states_;
  std::vector<bool> is_here_;
  std::int64_t beat_ = 0;           // so that those who listen see that this launcher lives
  std::vector<std::string> heard_;  // last, of each rank elsewhere
  std::vector<std::chrono::steady_clock::time_point> heard_at_;
  std::chrono::steady_clock::time_point next_{};
  bool has_lost_store_ = false;
};

// The state as one line, and back.
std::string text_of(const RankState& state);
RankState state_of(const std::string& text);

}  // namespace rematch
