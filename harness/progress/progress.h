// Shows progress on stderr. On a terminal, shows a bar with an estimate. Elsewhere, prints one line
// for each finished part of the work.
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
  ~Progress();  // clears the terminal's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void start(const std::string& part);
  // `note` is shown if lines are printed, for example "ok" or "oom".
  void finish(const std::string& part, const std::string& note);
  // Counts a part that an earlier run has finished. The part's time is excluded from estimates.
  void reuse(const std::string& part, const std::string& note);
  int num_reused() const { return num_reused_; }
  int num_finished() const { return finished_; }
  // Prints a separate line, even if a bar is drawn.
  void say(const std::string& line) const;
  void add_part() { ++num_parts_; }  // adds a part that was not planned
  // Marks all unfinished parts as skipped. `what` names the skipped work and the reason.
  void leave_out(const std::string& what);

 private:
  void draw(const std::string& part) const;

  int num_parts_;
  int finished_ = 0;
  int num_reused_ = 0;  // number of parts that an earlier run has finished
  bool bar_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Returns a bar such as "[######..................]". A `total` of 0 shows as complete. Pure.
std::string progress_bar(std::int64_t done, std::int64_t total);

// A message on stderr about work in progress, shown after two seconds. On a terminal, the message
// is redrawn in place. Elsewhere, a line is printed each time the elapsed time has doubled.
class LateWords {
 public:
  explicit LateWords(std::chrono::nanoseconds redraw_every);
  ~LateWords() { clear(); }
  LateWords(const LateWords&) = delete;
  LateWords& operator=(const LateWords&) = delete;

  // Returns the elapsed time if a message is due.
  std::optional<std::chrono::nanoseconds> due() const;
  // `drawn_before` is drawn in front of the message on a terminal.
  void show(const std::string& words, const std::string& drawn_before);
  // Clears the terminal's line.
  void clear();

 private:
  std::chrono::nanoseconds redraw_every_;
  bool is_terminal_;
  bool is_drawn_ = false;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::nanoseconds next_;
};

// Describes a computation whose parts differ in length, such as a search. Returns a text such as
// "searching for 4 s, about 9 s left; Ctrl-C shows the best so far". Without `left`, the text has
// no estimate. Returns nothing in the first two seconds. Pure.
std::optional<std::string> elapsed_progress_words(
    const std::string& what, const std::string& hint, std::chrono::nanoseconds elapsed,
    std::optional<std::chrono::nanoseconds> left = std::nullopt);

class ElapsedProgress {
 public:
  // `what` is a word such as "searching". `hint` says what the user can do in the meantime.
  ElapsedProgress(std::string what, std::string hint)
      : what_(std::move(what)), hint_(std::move(hint)) {}

  // The computation may call poll() as often as it likes.
  void poll();
  // Reports that `done` of `total` pieces of the computation's longest part are done. All pieces
  // must take about equally long. From the second piece on, an estimate is shown.
  void advance(int done, int total);
  // Clears the terminal's line for other output. A later poll() draws again.
  void clear() { words_.clear(); }

 private:
  std::string what_;
  std::string hint_;
  // The times at which the first and the most recent piece ended. `left_` is the estimated time
  // from last_piece_ to the end of all pieces.
  std::chrono::steady_clock::time_point first_piece_;
  std::chrono::steady_clock::time_point last_piece_;
  std::optional<std::chrono::nanoseconds> left_;
  LateWords words_{/*redraw_every=*/std::chrono::milliseconds(500)};
};

// Describes steps that run one after another in this process. Returns a text such as "profile: step
// 3 of 22, about 40 s left". Returns nothing in the first two seconds, before the first step is
// done, and after the last step. Pure.
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
