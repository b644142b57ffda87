// Progress on stderr: a bar with an estimate on a terminal, a line per finished part elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace rematch {

class Progress {
 public:
  explicit Progress(int num_parts);
  ~Progress();  // leaves the terminal's line clean
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(const std::string& part);
  // `note` is shown where there are lines: "ok", "oom".
  void finish(const std::string& part, const std::string& note);
  // A part that an earlier run has finished. Its time is nobody's measure.
  void reuse(const std::string& part, const std::string& note);
  int num_reused() const { return num_reused_; }
  int num_finished() const { return finished_; }
  // A line of its own, whatever is drawn.
  void say(const std::string& line) const;
  void add_part() { ++num_parts_; }  // one that was not foreseen
  // No further part comes; `what` is left out, and why.
  void leave_out(const std::string& what);

 private:
  void draw(const std::string& part) const;

  int num_parts_;
  int finished_ = 0;
  int num_reused_ = 0;  // of those finished
  bool bar_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Is stderr a terminal that wants to be drawn on: TERM is not "dumb".
bool stderr_is_terminal();

// "[######..................]"; `total` of 0 is all done. Pure.
std::string progress_bar(std::int64_t done, std::int64_t total);

// "2 min 5 s", "40 s".
std::string describe_duration(std::chrono::seconds duration);

}  // namespace rematch
