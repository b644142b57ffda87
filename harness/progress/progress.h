// Progress on stderr: a bar with an estimate on a terminal, a line per finished part elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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

// "[######..................]"; `total` of 0 is all done. Pure.
std::string progress_bar(std::int64_t done, std::int64_t total);

// Words on stderr about what takes longer than anybody waits without a sign: none in the first two
// seconds, then drawn over each other on a terminal, and elsewhere a line each time the elapsed
// time has doubled.
class LateWords {
 public:
  explicit LateWords(std::chrono::nanoseconds redraw_every);
  ~LateWords() { clear(); }
  LateWords(const LateWords&) = delete;
  LateWords& operator=(const LateWords&) = delete;

  // The time that has passed, if it is time for words.
  std::optional<std::chrono::nanoseconds> due() const;
  // `drawn_before`: what stands before the words on a terminal.
  void show(const std::string& words, const std::string& drawn_before);
  // Leaves the terminal's line clean.
  void clear();

 private:
  std::chrono::nanoseconds redraw_every_;
  bool is_terminal_;
  bool is_drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds next_;
};

// Progress of a computation whose end cannot be foretold, such as a search.

// "searching for 4 s; Ctrl-C shows the best so far"; nothing in the first two seconds. Pure.
std::optional<std::string> elapsed_progress_words(const std::string& what, const std::string& hint,
                                                  std::chrono::nanoseconds elapsed);

class ElapsedProgress {
 public:
  // `what` as in "searching", `hint` what the user can do meanwhile.
  ElapsedProgress(std::string what, std::string hint)
      : what_(std::move(what)), hint_(std::move(hint)) {}

  // Called by the computation as often as it likes.
  void poll();
  // Leaves the terminal's line clean for other output. A later poll() draws again.
  void clear() { words_.clear(); }

 private:
  std::string what_;
  std::string hint_;
  LateWords words_{/*redraw_every=*/std::chrono::milliseconds(500)};
};

// Progress of steps that run one after the other in this process: a bar before the words on a
// terminal.

// "profile: step 3 of 22, about 40 s left"; nothing in the first two seconds, before a step is
// done, and when all are. Pure.
std::optional<std::string> step_progress_words(const std::string& what, std::int64_t done,
                                               std::int64_t total,
                                               std::chrono::nanoseconds elapsed);

class StepProgress {
 public:
  StepProgress(std::string what, std::int64_t total) : what_(std::move(what)), total_(total) {}

  void step_done();

 private:
  std::string what_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  LateWords words_{/*redraw_every=*/std::chrono::nanoseconds(0)};
};

}  // namespace rematch
