#include "harness/measure/gpu_sampler.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace rematch {
namespace {

// Time that an idle GPU needs to raise its clocks after the first launch.
constexpr std::chrono::milliseconds kFirstWait{1};

}  // namespace

GpuSampler::~GpuSampler() { join(); }

void GpuSampler::start() {
  if (thread_.joinable()) throw std::logic_error("this GpuSampler is already running");
  readings_.clear();
  error_ = nullptr;
  stopping_ = false;
  thread_ = std::thread([this] { sample(); });
}

std::vector<GpuReading> GpuSampler::stop() {
  if (!thread_.joinable()) throw std::logic_error("this GpuSampler is not running");
  join();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::exchange(readings_, {});
}

// The time between two readings grows from kFirstWait to the interval. Catches all exceptions,
// because an exception that leaves the thread would end the process.
void GpuSampler::sample() {
  try {
    std::chrono::milliseconds wait = std::min(kFirstWait, interval_);
    std::unique_lock lock(mutex_);
    while (!stop_requested_.wait_for(lock, wait, [this] { return stopping_; })) {
      lock.unlock();
      readings_.push_back(monitor_.read(GpuMonitor::OwnContext::kYes));
      lock.lock();
      wait = std::min(2 * wait, interval_);
    }
    if (readings_.empty()) readings_.push_back(monitor_.read(GpuMonitor::OwnContext::kYes));
  } catch (...) {
    error_ = std::current_exception();
  }
}

void GpuSampler::request_stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_requested_.notify_one();
}

void GpuSampler::join() {
  if (!thread_.joinable()) return;
  request_stop();
  thread_.join();
}

}  // namespace rematch
