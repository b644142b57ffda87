#include "harness/profile/cupti_session.h"

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/profile/cupti_functions.h"

namespace rematch {
namespace {

// 4 MiB hold about 20,000 kernel records. CUPTI requests the next buffer before the current one is
// full.
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;
constexpr std::size_t kBufferAlignment = 8;

constexpr std::array kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                               CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
                               CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// CUPTI records external ids only for traced calls. Enabling an activity kind traces all calls of
// this kind, and overrides earlier settings for single calls.
struct Calls {
  CUpti_ActivityKind kind;
  CUpti_CallbackDomain domain;
  CUpti_CallbackId last;
  decltype(CuptiFunctions::enable_runtime_call) CuptiFunctions::*enable;
};
const Calls kCalls[] = {{CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_CB_DOMAIN_RUNTIME_API,
                         CUPTI_RUNTIME_TRACE_CBID_SIZE - 1, &CuptiFunctions::enable_runtime_call},
                        {CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_CB_DOMAIN_DRIVER_API,
                         CUPTI_DRIVER_TRACE_CBID_SIZE - 1, &CuptiFunctions::enable_driver_call}};

// Returns whether to trace this runtime or driver call. Tracing all calls would add a record for
// every query of a library. Matches only words of the name, because launch calls have different
// names in CUDA 12 and 13.
bool gives_work(std::string_view call) {
  const auto has = [call](std::string_view word) { return call.find(word) != call.npos; };
  return has("Launch") || has("Memcpy") || has("Memset");
}

// Returns whether the call launches a kernel. Excludes cudaLaunchHostFunc, and excludes
// cudaGraphLaunch, because a graph may contain no kernel.
bool launches_kernel(std::string_view call) {
  const auto has = [call](std::string_view word) { return call.find(word) != call.npos; };
  return has("Launch") && !has("Host") && !has("Graph");
}

// Does nothing. CUPTI requires a subscriber with a callback, but this session enables nothing that
// calls the callback.
void CUPTIAPI ignore_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

std::string advice_for(CUptiResult result) {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      return "another tool is already recording (nsys, ncu, a sanitizer, a debugger, a profiler); "
             "run "
             "without that tool";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "only administrators may profile with this driver; ask an administrator to set "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_NOT_COMPATIBLE:
      return "another tool uses CUPTI in an incompatible way; run without that tool";
    default:
      return "no activity can be recorded here; is a driver for CUDA 13 loaded?";
  }
}

}  // namespace

struct CuptiSession::Recorder {
  explicit Recorder(CuptiFunctions table) : functions(table) {}

  void check(CUptiResult result, const char* call) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    functions.result_string(result, &text);
    throw CuptiError(std::string("CUPTI refuses ") + call + " (" +
                     (text == nullptr ? std::to_string(result) : text) +
                     "): " + advice_for(result));
  }

  void start();
  void enable(CUpti_ActivityKind kind);
  void trace_calls(const Calls& calls);
  void stop() noexcept;
  void take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid_bytes);
  Activity take_all();

  const CuptiFunctions functions;
  KernelLaunches launches;  // the calls that launch kernels; set before any buffer is delivered
  std::optional<CUpti_SubscriberHandle> subscriber;
  std::vector<CUpti_ActivityKind> enabled;
  std::mutex mutex;
  Activity activity;    // `mutex` guards this field and all fields after it
  std::string problem;  // an error that CUPTI's thread found in a buffer
  int num_being_read = 0;
  std::condition_variable all_read;
  std::chrono::nanoseconds counted_from{};

  // The only recorder to which CUPTI's buffer callbacks write. Null between sessions.
  static std::mutex target_mutex;
  static std::shared_ptr<Recorder> target;
  static void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* bytes,
                                   std::size_t* most_records);
  static void CUPTIAPI take_buffer(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                   std::size_t bytes, std::size_t valid_bytes);
};

std::mutex CuptiSession::Recorder::target_mutex;
std::shared_ptr<CuptiSession::Recorder> CuptiSession::Recorder::target;

// Aborts if memory runs out, as an uncaught std::bad_alloc does. A null buffer would crash CUPTI
// before 13.1.
void CuptiSession::Recorder::give_buffer(std::uint8_t** buffer, std::size_t* bytes,
                                         std::size_t* most_records) {
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kBufferAlignment, kBufferBytes));
  if (*buffer == nullptr) std::abort();
  *bytes = kBufferBytes;
  *most_records = 0;  // 0 means no limit other than the size of the buffer
}

void CuptiSession::Recorder::take_buffer(CUcontext context, std::uint32_t stream,
                                         std::uint8_t* buffer, std::size_t,
                                         std::size_t valid_bytes) {
  std::shared_ptr<Recorder> recorder;
  {
    const std::lock_guard lock(target_mutex);
    recorder = target;
  }
  if (recorder != nullptr) recorder->take(context, stream, buffer, valid_bytes);
  std::free(buffer);
}

// Runs on CUPTI's thread and throws nothing. Holds no lock while it calls CUPTI, because CUPTI
// holds its own locks and the two threads could deadlock.
void CuptiSession::Recorder::take(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                                  std::size_t valid_bytes) {
  {
    const std::lock_guard lock(mutex);
    ++num_being_read;
  }
  Activity read;
  std::string failure;
  try {
    read_records(functions, launches, buffer, valid_bytes, read);
  } catch (const CuptiError& error) {
    failure = error.what();
  }
  std::size_t dropped = 0;
  if (functions.num_dropped(context, stream, &dropped) != CUPTI_SUCCESS && failure.empty()) {
    failure = "CUPTI does not report how many records it dropped";
  }
  const std::lock_guard lock(mutex);
  if (problem.empty()) problem = failure;
  const auto append = [](auto& all, auto& some) {
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  };
  append(activity.kernels, read.kernels);
  append(activity.transfers, read.transfers);
  append(activity.links, read.links);
  append(activity.launches, read.launches);
  activity.dropped += static_cast<std::int64_t>(dropped);
  activity.unfinished += read.unfinished;
  if (--num_being_read == 0) all_read.notify_all();
}

// Waits for any buffer that a thread of CUPTI is still reading.
Activity CuptiSession::Recorder::take_all() {
  std::unique_lock lock(mutex);
  all_read.wait(lock, [this] { return num_being_read == 0; });
  if (!problem.empty()) throw CuptiError(problem);
  return std::exchange(activity, {});
}

void CuptiSession::Recorder::start() {
  CUpti_SubscriberHandle handle = nullptr;
  check(functions.subscribe(&handle, &ignore_callback, nullptr), "a subscriber");
  subscriber = handle;
  check(functions.register_callbacks(&give_buffer, &take_buffer), "activity buffers");
  for (const CUpti_ActivityKind kind : kKinds) enable(kind);
  for (const Calls& calls : kCalls) trace_calls(calls);
}

void CuptiSession::Recorder::enable(CUpti_ActivityKind kind) {
  check(functions.enable(kind), "activity records");
  enabled.push_back(kind);
}

// Calls without a name stay traced, because an extra record does no harm.
void CuptiSession::Recorder::trace_calls(const Calls& calls) {
  enable(calls.kind);
  for (CUpti_CallbackId call = 1; call <= calls.last; ++call) {
    const char* name = nullptr;
    const bool is_named = functions.call_name(calls.domain, call, &name) == CUPTI_SUCCESS;
    if (!is_named || name == nullptr) continue;
    if (launches_kernel(name)) launches.add(calls.domain, call);
    if (gives_work(name)) continue;
    check((functions.*calls.enable)(call, 0), "to record only launches");
  }
}

// Ignores errors, because recording has ended or has already failed.
void CuptiSession::Recorder::stop() noexcept {
  for (const CUpti_ActivityKind kind : enabled) functions.disable(kind);
  enabled.clear();
  if (subscriber) functions.unsubscribe(*subscriber);
  subscriber.reset();
}

CuptiSession::CuptiSession(const CuptiFunctions& functions)
    : recorder_(std::make_shared<Recorder>(functions)) {
  require_cupti_version(functions);
  {
    const std::lock_guard lock(Recorder::target_mutex);
    if (Recorder::target != nullptr) {
      throw CuptiError(
          "this process is already recording activity; only one session at a time is possible");
    }
    Recorder::target = recorder_;
  }
  try {
    recorder_->start();
  } catch (...) {
    recorder_->stop();
    const std::lock_guard lock(Recorder::target_mutex);
    Recorder::target = nullptr;
    throw;
  }
}

CuptiSession::~CuptiSession() {
  recorder_->stop();
  const std::lock_guard lock(Recorder::target_mutex);
  Recorder::target = nullptr;
}

void CuptiSession::begin(std::uint64_t op_call, const std::string&) {
  recorder_->check(recorder_->functions.push_id(kOpCallId, op_call), "to link launches to ops");
}

void CuptiSession::end() {
  std::uint64_t last = 0;
  recorder_->check(recorder_->functions.pop_id(kOpCallId, &last), "to link launches to ops");
}

// Records of earlier work may arrive after this call, because CUPTI keeps each buffer until the
// buffer is full. Such records are later recognized by their time stamps.
void CuptiSession::discard() {
  recorder_->check(recorder_->functions.flush_all(0), "to flush its activity records");
  std::uint64_t now = 0;
  recorder_->check(recorder_->functions.timestamp(&now), "to report the current time");
  const std::lock_guard lock(recorder_->mutex);
  recorder_->activity = {};
  recorder_->counted_from = std::chrono::nanoseconds(static_cast<std::int64_t>(now));
}

// The first flush returns buffers whose records have all ended. CUPTI withholds every buffer that
// has an unfinished record. A second, forced flush returns these buffers too.
Activity CuptiSession::finish() {
  recorder_->check(recorder_->functions.flush_all(0), "to flush its activity records");
  recorder_->check(recorder_->functions.flush_all(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                   "to flush its activity records");
  recorder_->stop();
  Activity activity = recorder_->take_all();
  // A record without a start is kept, so that the check of time stamps reports it.
  const auto is_earlier = [this](const auto& record) {
    return record.start.count() > 0 && record.start < recorder_->counted_from;
  };
  std::erase_if(activity.kernels, is_earlier);
  std::erase_if(activity.transfers, is_earlier);
  std::erase_if(activity.launches, is_earlier);
  return activity;
}

std::unique_ptr<ActivityRecorder> record_activity() {
  static const CuptiFunctions functions = load_cupti();
  return std::make_unique<CuptiSession>(functions);
}

}  // namespace rematch
