// A library that is preloaded into a worker to make its clocks jump. The wall clock returns random
// times. The monotonic clock sometimes leaps forward, as when a suspended machine wakes up.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

namespace {

constexpr long kNanoseconds = 1'000'000'000;

std::uint64_t random_bits() {
  static std::uint64_t state = static_cast<std::uint64_t>(::getpid()) * 0x9e3779b97f4a7c15U + 1;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) {
  static long leapt = 0;  // nanoseconds
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (result != 0) return static_cast<int>(result);
  if (clock == CLOCK_REALTIME) {
    time->tv_sec += static_cast<long>(random_bits() % 2'000'000) - 1'000'000;
  } else if (clock == CLOCK_MONOTONIC) {
    if (random_bits() % 40 == 0) leapt += static_cast<long>(random_bits() % 1000) * 1'000'000;
    const long sum = time->tv_nsec + leapt;
    time->tv_sec += sum / kNanoseconds;
    time->tv_nsec = sum % kNanoseconds;
  }
  return 0;
}
