// The records of device operations, their simulated clock, and planted failures.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "harness/dry_cuda/capture.h"
#include "harness/dry_cuda/runtime.h"

namespace dry_cuda {
namespace {

constexpr std::uint64_t kRecordNs = 1000;

struct Failure {
  std::string function;
  unsigned calls_before;
  int code;
};

struct Log {
  std::mutex mutex;
  bool keeps = false;
  std::deque<DryCudaRecord> records;
  std::uint64_t clock_ns = kRecordNs;
  std::uint32_t num_records = 0;
  std::set<std::string> names;    // names of kernels that libraries launched
  std::set<std::string> missing;  // functions that were already reported as missing
  std::atomic<DryCudaListener> listener{nullptr};
  std::atomic<bool> any_failure{false};
  std::atomic<std::uint64_t> synchronizations{0};
  std::vector<Failure> failures;
};

// Parses failures such as "cudaMalloc@3=2,cublasCreate_v2@0=3".
void plant_from_environment(std::vector<Failure>& failures) {
  const char* given = std::getenv("DRY_CUDA_FAILURES");
  std::string text = given == nullptr ? "" : given;
  while (!text.empty()) {
    const std::string entry = text.substr(0, text.find(','));
    text.erase(0, entry.size() + 1);
    const std::size_t at = entry.find('@');
    const std::size_t equals = entry.find('=');
    if (at == std::string::npos || equals == std::string::npos || equals < at) {
      std::fprintf(stderr, "dry_cuda: DRY_CUDA_FAILURES: '%s' is not FUNCTION@CALL=CODE\n",
                   entry.c_str());
      std::exit(1);
    }
    failures.push_back({entry.substr(0, at),
                        static_cast<unsigned>(std::atoi(entry.c_str() + at + 1)),
                        std::atoi(entry.c_str() + equals + 1)});
  }
}

// This object is never destroyed, because some destructors of static objects free device memory.
Log& log() {
  static Log* const made = [] {
    auto* fresh = new Log;
    plant_from_environment(fresh->failures);
    fresh->any_failure = !fresh->failures.empty();
    return fresh;
  }();
  return *made;
}

std::uint64_t thread_number() {
  static std::atomic<std::uint64_t> count{0};
  thread_local const std::uint64_t number = count++;
  return number;
}

}  // namespace

std::size_t setting(const char* name, std::size_t fallback) {
  const char* text = std::getenv(name);
  if (text == nullptr) return fallback;
  char* end = nullptr;
  const unsigned long long number = std::strtoull(text, &end, 10);
  if (end == text || *end != '\0') {
    std::fprintf(stderr, "dry_cuda: %s=%s is not a number\n", name, text);
    std::exit(1);
  }
  return number;
}

void count_synchronization() { ++log().synchronizations; }

std::uint32_t add_record(DryCudaRecord record) {
  record.thread = thread_number();
  {
    const std::lock_guard lock(log().mutex);
    record.start_ns = log().clock_ns;
    record.end_ns = log().clock_ns += kRecordNs;
    record.correlation = ++log().num_records;
    if (log().keeps) log().records.push_back(record);
  }
  if (const DryCudaListener listener = log().listener.load()) listener(&record);
  return record.correlation;
}

}  // namespace dry_cuda

extern "C" {

using namespace dry_cuda;

void dry_cuda_reset(void) {
  const std::lock_guard lock(log().mutex);
  log().records.clear();
  log().keeps = true;
}

uint64_t dry_cuda_synchronizations(void) { return log().synchronizations; }

uint64_t dry_cuda_clock_ns(void) {
  const std::lock_guard lock(log().mutex);
  return log().clock_ns;
}

size_t dry_cuda_size(void) {
  const std::lock_guard lock(log().mutex);
  return log().records.size();
}

const DryCudaRecord* dry_cuda_record(size_t index) {
  const std::lock_guard lock(log().mutex);
  return &log().records.at(index);
}

void dry_cuda_launch(const char* name, const uint32_t grid[3], const uint32_t block[3],
                     uint64_t shared_bytes, void* stream) {
  DryCudaRecord record{};
  record.call = "cuLaunchKernelEx";
  record.kind = DRY_CUDA_KERNEL;
  record.device = device_of(static_cast<cudaStream_t>(stream));
  record.shared_bytes = shared_bytes;
  record.stream = reinterpret_cast<std::uint64_t>(stream);
  std::copy_n(grid, 3, record.grid);
  std::copy_n(block, 3, record.block);
  {
    const std::lock_guard lock(log().mutex);
    record.name = log().names.emplace(name).first->c_str();
  }
  submit(record);
}

void dry_cuda_listen(DryCudaListener listener) { log().listener = listener; }

void dry_cuda_plant_failure(const char* function, unsigned calls_before, int code) {
  const std::lock_guard lock(log().mutex);
  log().failures.push_back({function, calls_before, code});
  log().any_failure = true;
}

int dry_cuda_planted(const char* function) {
  if (!log().any_failure) return 0;
  const std::lock_guard lock(log().mutex);
  std::vector<Failure>& failures = log().failures;
  const auto found = std::find_if(failures.begin(), failures.end(), [&](const Failure& failure) {
    return failure.function == function;
  });
  if (found == failures.end()) return 0;
  if (found->calls_before > 0) {
    --found->calls_before;
    return 0;
  }
  const int code = found->code;
  failures.erase(found);
  return code;
}

int dry_cuda_missing(const char* function, int code) {
  const std::lock_guard lock(log().mutex);
  if (log().missing.emplace(function).second) {
    std::fprintf(stderr, "dry_cuda: no stand-in for %s; the call returns %d\n", function, code);
  }
  return code;
}

}  // extern "C"
