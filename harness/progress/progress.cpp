#include "harness/progress/progress.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace rematch {
namespace {

constexpr std::int64_t kBarWidth = 24;
constexpr const char* kClearLine = "\r\033[K";
constexpr std::chrono::nanoseconds kSilentStart = std::chrono::seconds(2);

// A terminal whose TERM is "dumb" cannot redraw lines.
bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) == 1 && (term == nullptr || std::string_view(term) != "dumb");
}

// Returns a duration such as "2 min 5 s" or "40 s".
std::string describe_duration(std::chrono::seconds duration) {
  const auto minutes = std::chrono::duration_cast<std::chrono::minutes>(duration);
  const std::string seconds = std::to_string((duration - minutes).count()) + " s";
  return minutes.count() == 0 ? seconds : std::to_string(minutes.count()) + " min " + seconds;
}

}  // namespace

Progress::Progress(int num_parts) : num_parts_(num_parts), bar_(stderr_is_terminal()) {}

Progress::~Progress() {
  if (bar_) std::fputs(kClearLine, stderr);
}

void Progress::start(const std::string& part) {
  if (bar_) draw(part);
}

void Progress::finish(const std::string& part, const std::string& note) {
  ++finished_;
  if (bar_) {
    draw(part);
  } else {
    std::fprintf(stderr, "%d/%d %s: %s\n", finished_, num_parts_, part.c_str(), note.c_str());
  }
}

void Progress::reuse(const std::string& part, const std::string& note) {
  ++num_reused_;
  finish(part, note + ", reused");
}

void Progress::say(const std::string& line) const {
  std::fprintf(stderr, "%srematch: %s\n", bar_ ? kClearLine : "", line.c_str());
}

void Progress::leave_out(const std::string& what) {
  num_parts_ = finished_;
  if (!bar_) std::fprintf(stderr, "left out: %s\n", what.c_str());
}

void Progress::draw(const std::string& part) const {
  const auto elapsed = std::chrono::steady_clock::now() - begin_;
  std::string left;
  const int num_measured = finished_ - num_reused_;
  if (num_measured > 0 && finished_ < num_parts_) {
    const auto rest = elapsed * (num_parts_ - finished_) / num_measured;
    left = ", about " + describe_duration(std::chrono::duration_cast<std::chrono::seconds>(rest)) +
           " left";
  }
  std::fprintf(stderr, "%s%s %d/%d%s  %s", kClearLine, progress_bar(finished_, num_parts_).c_str(),
               finished_, num_parts_, left.c_str(), part.c_str());
}

std::string progress_bar(std::int64_t done, std::int64_t total) {
  const std::int64_t filled = total == 0 ? kBarWidth : kBarWidth * done / total;
  std::string bar(kBarWidth + 2, '.');
  bar.front() = '[';
  std::fill_n(bar.begin() + 1, filled, '#');
  bar.back() = ']';
  return bar;
}

LateWords::LateWords(std::chrono::nanoseconds redraw_every)
    : redraw_every_(redraw_every), is_terminal_(stderr_is_terminal()), next_(kSilentStart) {}

std::optional<std::chrono::nanoseconds> LateWords::due() const {
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin_;
  return elapsed < next_ ? std::nullopt : std::optional(elapsed);
}

void LateWords::show(const std::string& words, const std::string& drawn_before) {
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin_;
  if (is_terminal_) {
    std::fprintf(stderr, "%s%s %s", kClearLine, drawn_before.c_str(), words.c_str());
  } else {
    std::fprintf(stderr, "rematch: %s\n", words.c_str());
  }
  is_drawn_ = is_terminal_;
  next_ = is_terminal_ ? elapsed + redraw_every_ : 2 * elapsed;
}

void LateWords::clear() {
  if (is_drawn_) std::fputs(kClearLine, stderr);
  is_drawn_ = false;
}

std::optional<std::string> elapsed_progress_words(const std::string& what, const std::string& hint,
                                                  std::chrono::nanoseconds elapsed,
                                                  std::optional<std::chrono::nanoseconds> left) {
  if (elapsed < kSilentStart) return std::nullopt;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(elapsed);
  std::string words = what + " for " + describe_duration(whole);
  if (left) {
    words +=
        ", about " + describe_duration(std::chrono::ceil<std::chrono::seconds>(*left)) + " left";
  }
  return words + "; " + hint;
}

void ElapsedProgress::poll() {
  const auto elapsed = words_.due();
  if (!elapsed) return;
  std::optional<std::chrono::nanoseconds> left;
  if (left_) {
    const std::chrono::nanoseconds since = std::chrono::steady_clock::now() - last_piece_;
    left = std::max(*left_ - since, std::chrono::nanoseconds(0));
  }
  const auto words = elapsed_progress_words(what_, hint_, *elapsed, left);
  if (words) words_.show(*words, "rematch:");
}

void ElapsedProgress::advance(int done, int total) {
  last_piece_ = std::chrono::steady_clock::now();
  if (done == 1) first_piece_ = last_piece_;
  left_.reset();
  if (done > 1 && done < total) {
    left_ = (last_piece_ - first_piece_) * (total - done) / (done - 1);
  }
}

std::optional<std::string> step_progress_words(const std::string& what, std::int64_t done,
                                               std::int64_t total,
                                               std::chrono::nanoseconds elapsed) {
  if (elapsed < kSilentStart || done < 1 || done >= total) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(elapsed * (total - done) / done);
  return what + ": step " + std::to_string(done) + " of " + std::to_string(total) + ", about " +
         describe_duration(left) + " left";
}

void StepProgress::step_done() {
  ++done_;
  const auto elapsed = words_.due();
  if (!elapsed) return;
  const auto words = step_progress_words(what_, done_, total_, *elapsed);
  if (words) words_.show(*words, progress_bar(done_, total_));
}

}  // namespace rematch
