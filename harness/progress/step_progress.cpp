#include "harness/progress/step_progress.h"

#include <cstdio>
#include <utility>

#include "harness/progress/progress.h"

namespace rematch {
namespace {

constexpr std::chrono::nanoseconds kSilent = std::chrono::seconds(2);

}  // namespace

std::optional<std::string> step_progress_words(const std::string& what, std::int64_t done,
                                               std::int64_t total,
                                               std::chrono::nanoseconds elapsed) {
  if (elapsed < kSilent || done < 1 || done >= total) return std::nullopt;
  const auto left = std::chrono::ceil<std::chrono::seconds>(elapsed * (total - done) / done);
  return what + ": step " + std::to_string(done) + " of " + std::to_string(total) + ", about " +
         describe_duration(left) + " left";
}

StepProgress::StepProgress(std::string what, std::int64_t total)
    : what_(std::move(what)), total_(total), is_terminal_(stderr_is_terminal()) {}

StepProgress::~StepProgress() {
  if (is_drawn_) std::fputs("\r\033[K", stderr);
}

void StepProgress::step_done() {
  ++done_;
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin_;
  const std::optional<std::string> words = step_progress_words(what_, done_, total_, elapsed);
  if (!words) return;
  if (is_terminal_) {
    std::fprintf(stderr, "\r\033[K%s %s", progress_bar(done_, total_).c_str(), words->c_str());
    is_drawn_ = true;
  } else if (elapsed >= next_line_) {
    std::fprintf(stderr, "rematch: %s\n", words->c_str());
    next_line_ = 2 * elapsed;
  }
}

}  // namespace rematch
