#include "harness/progress/progress.h"

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("what takes longer than two seconds says for how long it has run") {
  CHECK(elapsed_progress_words("searching", "Ctrl-C ends it", milliseconds(4900)) ==
        "searching for 4 s; Ctrl-C ends it");
  CHECK(elapsed_progress_words("searching", "Ctrl-C ends it", seconds(125)) ==
        "searching for 2 min 5 s; Ctrl-C ends it");
}

TEST_CASE("short work stays silent") {
  CHECK_FALSE(elapsed_progress_words("searching", "Ctrl-C ends it", milliseconds(1999)));
}

}  // namespace
}  // namespace rematch
