// Tests the GPU sampler with a made-up driver. The test decides how long the made-up GPU is busy.
#include "harness/measure/gpu_sampler.h"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.h"

namespace rematch {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kIdleClock = 345;
constexpr unsigned kBusyClock = 1755;

struct BusyGpu {
  std::atomic<unsigned> sm_clock = kIdleClock;
  std::atomic<int> num_readings = 0;
  std::atomic<bool> throws = false;
  std::atomic<bool> blocks = false;
  std::atomic<bool> is_blocked = false;
};
BusyGpu busy_gpu;

void reset_busy_gpu() {
  busy_gpu.sm_clock = kIdleClock;
  busy_gpu.num_readings = 0;
  busy_gpu.throws = false;
  busy_gpu.blocks = false;
  busy_gpu.is_blocked = false;
}

std::unique_ptr<GpuMonitor> open_busy_gpu() {
  NvmlFunctions table;
  table.initialize = [] { return kNvmlSuccess; };
  table.device_of_pci_bus_id = [](const char*, NvmlDevice**) { return kNvmlSuccess; };
  table.clock = [](NvmlDevice*, int clock, unsigned* value) {
    if (busy_gpu.throws) throw std::runtime_error("the driver is gone");
    while (busy_gpu.blocks) {
      busy_gpu.is_blocked = true;
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (clock == kNvmlSmClock) ++busy_gpu.num_readings;
    *value = busy_gpu.sm_clock;
    return kNvmlSuccess;
  };
  return GpuMonitor::open(table, "00000000:17:00.0");
}

// Waits for a number of readings, not for a time. So a busy machine makes the test slower, but does
// not make it fail.
void wait_for_readings(int count) {
  const int first = busy_gpu.num_readings;
  while (busy_gpu.num_readings < first + count) std::this_thread::sleep_for(milliseconds(1));
}

TEST_CASE("the GPU is sampled while it is busy") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, milliseconds(2));
  busy_gpu.sm_clock = kBusyClock;
  sampler.start();
  wait_for_readings(3);
  const std::vector<GpuReading> readings = sampler.stop();
  busy_gpu.sm_clock = kIdleClock;
  REQUIRE(readings.size() >= 3);
  for (const GpuReading& reading : readings) CHECK(reading.sm_clock_mhz == kBusyClock);
}

TEST_CASE("every reading is returned, and no reading is made after the stop") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, milliseconds(1));
  sampler.start();
  wait_for_readings(5);
  const std::vector<GpuReading> readings = sampler.stop();
  CHECK(static_cast<int>(readings.size()) == busy_gpu.num_readings);
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(static_cast<int>(readings.size()) == busy_gpu.num_readings);
}

TEST_CASE("a step shorter than the interval has one reading") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, std::chrono::hours(1));
  sampler.start();
  CHECK(sampler.stop().size() >= 1);
}

// The sampler waits 1, 2, 4 and 8 ms before its first readings, although the interval is longer.
TEST_CASE("a short step has several readings, whatever the interval") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, std::chrono::hours(1));
  sampler.start();
  wait_for_readings(4);
  CHECK(sampler.stop().size() >= 4);
}

// The driver does not answer until the test allows it.
TEST_CASE("a stop can be requested during a slow reading") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, std::chrono::hours(1));
  busy_gpu.blocks = true;
  sampler.start();
  while (!busy_gpu.is_blocked) std::this_thread::sleep_for(milliseconds(1));
  sampler.request_stop();  // request_stop() must not wait for the driver
  busy_gpu.blocks = false;
  CHECK(sampler.stop().size() == 1);
}

TEST_CASE("readings of an earlier start are not returned") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, milliseconds(1));
  sampler.start();
  wait_for_readings(2);
  sampler.stop();
  const int before = busy_gpu.num_readings;
  sampler.start();
  const std::vector<GpuReading> readings = sampler.stop();
  CHECK(static_cast<int>(readings.size()) == busy_gpu.num_readings - before);
}

TEST_CASE("destroying a running sampler ends its thread") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  try {
    GpuSampler sampler(*monitor, std::chrono::hours(1));
    sampler.start();
    throw std::runtime_error("out of memory");
  } catch (const std::runtime_error&) {
  }
  const int after = busy_gpu.num_readings;
  std::this_thread::sleep_for(milliseconds(5));
  CHECK(busy_gpu.num_readings == after);
}

TEST_CASE("stop() rethrows an exception that a reading threw, and the sampler can start again") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor, milliseconds(1));
  busy_gpu.throws = true;
  sampler.start();
  CHECK_THROWS_WITH(sampler.stop(), "the driver is gone");
  busy_gpu.throws = false;
  sampler.start();
  CHECK(sampler.stop().size() >= 1);
}

TEST_CASE("starting twice, or stopping without a start, is an error") {
  reset_busy_gpu();
  const auto monitor = open_busy_gpu();
  GpuSampler sampler(*monitor);
  CHECK_THROWS_AS(sampler.stop(), std::logic_error);
  sampler.start();
  CHECK_THROWS_AS(sampler.start(), std::logic_error);
  CHECK(sampler.stop().size() >= 1);
}

}  // namespace
}  // namespace rematch
