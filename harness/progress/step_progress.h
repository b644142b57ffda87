// Progress of steps that run one after the other in this process, once they take longer than
// anybody waits without a sign: on stderr, a bar with words on a terminal, words elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

// "profile: step 3 of 22, about 40 s left"; nothing in the first two seconds, before a step is
// done, and when all are. Pure.
std::optional<std::string> step_progress_words(const std::string& what, std::int64_t done,
                                               std::int64_t total,
                                               std::chrono::nanoseconds elapsed);

class StepProgress {
 public:
  StepProgress(std::string what, std::int64_t total);
  ~StepProgress();  // leaves the terminal's line clean
  StepProgress(const StepProgress&) = delete;
  StepProgress& operator=(const StepProgress&) = delete;

  void step_done();

 private:
  std::string what_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool is_terminal_;
  bool is_drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds next_line_{};  // where there is no terminal: a line each time it doubles
};

}  // namespace rematch
