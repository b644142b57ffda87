// Reads a GPU's state while a step runs, because between steps an idle GPU has other clocks and
// throttle reasons. Measures no times.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "harness/measure/gpu_monitor.h"

namespace rematch {

// With this interval, a step of two seconds gets about 40 readings. A reading costs the driver less
// than 1 ms.
inline constexpr std::chrono::milliseconds kGpuSampleInterval{50};

// Not thread-safe: one thread calls start(), request_stop() and stop().
class GpuSampler {
 public:
  // `monitor` must outlive the sampler. `interval` is the time between two readings of a long step.
  explicit GpuSampler(const GpuMonitor& monitor,
                      std::chrono::milliseconds interval = kGpuSampleInterval)
      : monitor_(monitor), interval_(interval) {}
  // Stops the thread and drops its readings.
  ~GpuSampler();
  GpuSampler(const GpuSampler&) = delete;
  GpuSampler& operator=(const GpuSampler&) = delete;

  // Starts a thread that takes readings. The first readings follow one another closely, so that a
  // short step gets several readings. Throws std::logic_error if the sampler is running.
  void start();

  // Asks the thread to end. Does not wait for a reading in progress, which may take longer than a
  // short step. If there was no reading yet, the thread first takes one. Call this when the step's
  // work is launched, then synchronize the device and call stop().
  void request_stop();

  // Waits for the last reading. Returns all readings since start(), at least one. Rethrows an
  // exception that a reading threw. Throws std::logic_error if the sampler is not running.
  std::vector<GpuReading> stop();

 private:
  void sample();
  void join();

  const GpuMonitor& monitor_;
  std::chrono::milliseconds interval_;
  std::mutex mutex_;  // guards stopping_
  std::condition_variable stop_requested_;
  bool stopping_ = false;
  // The thread owns readings_ and error_ from start() until it is joined.
  std::vector<GpuReading> readings_;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace rematch
