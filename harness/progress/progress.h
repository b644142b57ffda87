// Progress on stderr: a bar with an estimate on a terminal, a line per finished part elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
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

// Progress of a computation whose end cannot be foretold, such as a search.

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

// Progress of steps that run one after the other in this process, once they take longer than
// anybody waits without a sign: on stderr, a bar with words on a terminal, words elsewhere.

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
