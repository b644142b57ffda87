#include "harness/measure/clocks.h"

#include <thread>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST_CASE("copy time is exposed while compute waits for the copy, and otherwise hidden") {
  const CopyTimes part{.copying = milliseconds(10), .waiting = milliseconds(4)};
  CHECK(part.exposed() == milliseconds(4));
  CHECK(part.hidden() == milliseconds(6));
  // The step waited longer than the copies took, because the host was late. The exposed time is
  // still at most the time of the copies.
  const CopyTimes late{.copying = milliseconds(10), .waiting = milliseconds(12)};
  CHECK(late.exposed() == milliseconds(10));
  CHECK(late.hidden() == nanoseconds(0));
}

TEST_CASE("on the CPU the whole copy time is exposed") {
  const c10::Stream cpu(c10::Stream::DEFAULT, c10::Device(c10::DeviceType::CPU));
  CopyTimer timer;
  for (int copy = 0; copy < 2; ++copy) {
    timer.around(Move::kCopy, cpu, [] { std::this_thread::sleep_for(milliseconds(3)); });
  }
  const CopyTimes times = timer.take();
  CHECK(times.exposed() >= milliseconds(6));
  CHECK(times.hidden() == nanoseconds(0));
  CHECK(timer.take().copying == nanoseconds(0));
}

}  // namespace
}  // namespace rematch
