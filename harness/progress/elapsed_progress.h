// Progress of a computation whose end cannot be foretold, such as a search.
#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace rematch {

// "searching for 4 s; Ctrl-C shows the best so far"; nothing in the first two seconds. Pure.
std::optional<std::string> elapsed_progress_words(const std::string& what, const std::string& hint,
                                                  std::chrono::nanoseconds elapsed);

class ElapsedProgress {
 public:
  // `what` as in "searching", `hint` what the user can do meanwhile.
  ElapsedProgress(std::string what, std::string hint);
  ~ElapsedProgress() { clear(); }
  ElapsedProgress(const ElapsedProgress&) = delete;
  ElapsedProgress& operator=(const ElapsedProgress&) = delete;

  // Called by the computation as often as it likes. Draws on a terminal twice a second; writes a
  // line elsewhere each time the elapsed time has doubled.
  void poll();
  // Leaves the terminal's line clean for other output. A later poll() draws again.
  void clear();

 private:
  std::string what_;
  std::string hint_;
  bool is_terminal_;
  bool is_drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds next_;
};

}  // namespace rematch
