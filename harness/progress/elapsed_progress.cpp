#include "harness/progress/elapsed_progress.h"

#include <cstdio>
#include <utility>

#include "harness/progress/progress.h"

namespace rematch {
namespace {

constexpr std::chrono::nanoseconds kSilentStart = std::chrono::seconds(2);
constexpr std::chrono::nanoseconds kRedraw = std::chrono::milliseconds(500);

}  // namespace

std::optional<std::string> elapsed_progress_words(const std::string& what, const std::string& hint,
                                                  std::chrono::nanoseconds elapsed) {
  if (elapsed < kSilentStart) return std::nullopt;
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(elapsed);
  return what + " for " + describe_duration(whole) + "; " + hint;
}

ElapsedProgress::ElapsedProgress(std::string what, std::string hint)
    : what_(std::move(what)),
      hint_(std::move(hint)),
      is_terminal_(stderr_is_terminal()),
      next_(kSilentStart) {}

void ElapsedProgress::poll() {
  const std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - begin_;
  if (elapsed < next_) return;
  const std::optional<std::string> words = elapsed_progress_words(what_, hint_, elapsed);
  if (!words) return;
  if (is_terminal_) {
    std::fprintf(stderr, "\r\033[Krematch: %s", words->c_str());
    is_drawn_ = true;
    next_ = elapsed + kRedraw;
  } else {
    std::fprintf(stderr, "rematch: %s\n", words->c_str());
    next_ = 2 * elapsed;
  }
}

void ElapsedProgress::clear() {
  if (is_drawn_) std::fputs("\r\033[K", stderr);
  is_drawn_ = false;
}

}  // namespace rematch
