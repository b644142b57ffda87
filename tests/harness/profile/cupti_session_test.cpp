// Tests CUPTI sessions with a made-up CUPTI: a table of functions that return the records that a
// test has prepared.
#include "harness/profile/cupti_session.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <thread>
#include <utility>

#include "harness/profile/cupti_functions.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

using Record = std::vector<std::uint8_t>;

struct FakeCupti {
  std::uint32_t version = CUPTI_API_VERSION;
  CUptiResult subscribe_result = CUPTI_SUCCESS;
  CUptiResult enable_result = CUPTI_SUCCESS;
  bool broken_buffer = false;
  std::size_t dropped = 0;
  std::vector<Record> pending;  // records that the next flush returns
  // Only a forced flush returns these records, because their buffer has an unfinished record.
  std::vector<Record> withheld;
  // called once, while a buffer is read
  std::function<void()> while_reading;
  int subscribers = 0;
  std::vector<CUpti_ActivityKind> enabled;
  std::set<std::string> untraced;  // names of API calls whose tracing was disabled
  std::uint64_t clock = 1;
  std::vector<std::uint64_t> pushed;  // external ids that were pushed and not yet popped
  std::vector<std::uint64_t> ever_pushed;
  std::vector<std::uint32_t> flush_flags;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
};
FakeCupti fake;

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    default:
      return sizeof(CUpti_ActivityExternalCorrelation);
  }
}

void deliver(std::vector<Record>& records) {
  std::uint8_t* buffer = nullptr;
  std::size_t bytes = 0;
  std::size_t most_records = 99;
  fake.request(&buffer, &bytes, &most_records);
  REQUIRE(buffer != nullptr);
  REQUIRE(reinterpret_cast<std::uintptr_t>(buffer) % 8 == 0);
  std::size_t used = 0;
  for (const Record& record : records) {
    REQUIRE(used + record.size() <= bytes);
    std::memcpy(buffer + used, record.data(), record.size());
    used += record.size();
  }
  records.clear();
  fake.complete(nullptr, 0, buffer, bytes, used);
}

CUptiResult flush(std::uint32_t flag) {
  fake.flush_flags.push_back(flag);
  deliver(fake.pending);
  if (flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) deliver(fake.withheld);
  return CUPTI_SUCCESS;
}

CUptiResult next_record(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  if (fake.broken_buffer) return CUPTI_ERROR_INVALID_KIND;
  if (const auto act = std::exchange(fake.while_reading, nullptr)) act();
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  }
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult result_string(CUptiResult result, const char** text) {
  *text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "MULTIPLE_SUBSCRIBERS"
                                                                   : "SOME_ERROR";
  return CUPTI_SUCCESS;
}

constexpr auto kLaunchOfCuda13 = CUPTI_RUNTIME_TRACE_CBID___cudaLaunchKernel_v13000;

// Returns names of runtime and driver calls. Knows only the calls that matter in these tests.
CUptiResult call_name(CUpti_CallbackDomain domain, std::uint32_t call, const char** name) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    *name =
        call == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx ? "cuLaunchKernelEx" : "cuCtxGetCurrent";
    return CUPTI_SUCCESS;
  }
  switch (call) {
    case kLaunchOfCuda13:
      *name = "__cudaLaunchKernel_v13000";
      break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020:
      *name = "cudaMemcpyAsync_v3020";
      break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020:
      *name = "cudaMemsetAsync_v3020";
      break;
    case CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_v10000:
      *name = "cudaLaunchHostFunc_v10000";
      break;
    case 7:
      return CUPTI_ERROR_INVALID_PARAMETER;  // no call has this number
    default:
      *name = "cudaGetDevice_v3020";
  }
  return CUPTI_SUCCESS;
}

// Disables the tracing of one runtime or driver call. Requires that the activity kind is already
// enabled, because enabling a kind enables all its calls.
CUptiResult switch_call(CUpti_CallbackDomain domain, CUpti_CallbackId call, bool on) {
  const auto kind = domain == CUPTI_CB_DOMAIN_DRIVER_API ? CUPTI_ACTIVITY_KIND_DRIVER
                                                         : CUPTI_ACTIVITY_KIND_RUNTIME;
  REQUIRE(std::count(fake.enabled.begin(), fake.enabled.end(), kind) == 1);
  REQUIRE_FALSE(on);
  const char* name = nullptr;
  REQUIRE(call_name(domain, call, &name) == CUPTI_SUCCESS);
  fake.untraced.insert(name);
  return CUPTI_SUCCESS;
}

CuptiFunctions table_of_recording() {
  CuptiFunctions table;
  table.call_name = &call_name;
  table.timestamp = [](std::uint64_t* now) {
    *now = fake.clock;
    return CUPTI_SUCCESS;
  };
  table.get_version = [](std::uint32_t* version) {
    *version = fake.version;
    return CUPTI_SUCCESS;
  };
  table.result_string = &result_string;
  table.subscribe = [](CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
    if (fake.subscribe_result == CUPTI_SUCCESS) ++fake.subscribers;
    return fake.subscribe_result;
  };
  table.unsubscribe = [](CUpti_SubscriberHandle) {
    --fake.subscribers;
    return CUPTI_SUCCESS;
  };
  table.register_callbacks = [](CUpti_BuffersCallbackRequestFunc request,
                                CUpti_BuffersCallbackCompleteFunc complete) {
    fake.request = request;
    fake.complete = complete;
    return CUPTI_SUCCESS;
  };
  table.flush_all = &flush;
  table.next_record = &next_record;
  table.num_dropped = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(fake.dropped, 0);  // records dropped since the last query
    return CUPTI_SUCCESS;
  };
  return table;
}

CuptiFunctions table() {
  CuptiFunctions table = table_of_recording();
  table.enable = [](CUpti_ActivityKind kind) {
    if (fake.enable_result == CUPTI_SUCCESS) fake.enabled.push_back(kind);
    return fake.enable_result;
  };
  table.disable = [](CUpti_ActivityKind kind) {
    std::erase(fake.enabled, kind);
    return CUPTI_SUCCESS;
  };
  table.enable_runtime_call = [](CUpti_CallbackId call, std::uint8_t on) {
    return switch_call(CUPTI_CB_DOMAIN_RUNTIME_API, call, on != 0);
  };
  table.enable_driver_call = [](CUpti_CallbackId call, std::uint8_t on) {
    return switch_call(CUPTI_CB_DOMAIN_DRIVER_API, call, on != 0);
  };
  table.push_id = [](CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
    REQUIRE(kind == kOpCallId);
    fake.pushed.push_back(id);
    fake.ever_pushed.push_back(id);
    return CUPTI_SUCCESS;
  };
  table.pop_id = [](CUpti_ExternalCorrelationKind, std::uint64_t* id) {
    if (fake.pushed.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
    *id = fake.pushed.back();
    fake.pushed.pop_back();
    return CUPTI_SUCCESS;
  };
  return table;
}

template <class AnyRecord>
void give(const AnyRecord& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  fake.pending.emplace_back(bytes, bytes + sizeof(AnyRecord));
}

void give_kernel(const char* name, std::uint64_t start, std::uint64_t end,
                 std::uint32_t correlation) {
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = name;
  kernel.start = start;
  kernel.end = end;
  kernel.correlationId = correlation;
  give(kernel);
}

void give_link(std::uint32_t correlation, std::uint64_t id,
               CUpti_ExternalCorrelationKind kind = kOpCallId) {
  CUpti_ActivityExternalCorrelation link{};
  link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  link.externalKind = kind;
  link.externalId = id;
  link.correlationId = correlation;
  give(link);
}

std::string refusal(const CuptiFunctions& functions) {
  try {
    const CuptiSession session(functions);
  } catch (const CuptiError& error) {
    return error.what();
  }
  return "recorded";
}

void check_nothing_is_left() {
  CHECK(fake.subscribers == 0);
  CHECK(fake.enabled.empty());
}

TEST_CASE("records of kernels, copies, memsets and correlations are read; launch records are not") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  CHECK(fake.subscribers == 1);
  give_link(7, 1);
  CUpti_ActivityAPI launch{};
  launch.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  give(launch);
  give_kernel("flash_fwd_kernel", 100, 140, 7);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.bytes = 4096;
  copy.start = 200;
  copy.end = 260;
  copy.correlationId = 8;
  give(copy);
  CUpti_ActivityMemcpyPtoP4 across{};
  across.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  across.bytes = 64;
  give(across);
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.bytes = 16;
  set.correlationId = 9;
  give(set);
  give_link(8, 2, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0);  // Kineto's
  give_link(8, 2, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1);
  const Activity activity = session.finish();

  REQUIRE(activity.kernels.size() == 1);
  CHECK(activity.kernels[0].symbol == "flash_fwd_kernel");
  CHECK(activity.kernels[0].start.count() == 100);
  CHECK(activity.kernels[0].end.count() == 140);
  CHECK(activity.kernels[0].correlation == 7);
  REQUIRE(activity.transfers.size() == 3);
  CHECK(activity.transfers[0].start.count() == 200);
  CHECK(activity.transfers[0].end.count() == 260);
  CHECK(activity.transfers[0].bytes == Bytes{4096});
  CHECK(activity.transfers[2].correlation == 9);
  REQUIRE(activity.links.size() == 1);
  CHECK(activity.links[0].op_call == 1);
  CHECK(activity.dropped == 0);
  check_nothing_is_left();
}

// LibTorch for CUDA 13 launches kernels with __cudaLaunchKernel. cuBLAS launches them with calls of
// the driver.
TEST_CASE("API calls that submit no work to the device are not traced") {
  fake = {};
  const CuptiFunctions functions = table();
  const CuptiSession session(functions);
  CHECK(fake.untraced == std::set<std::string>{"cuCtxGetCurrent", "cudaGetDevice_v3020"});
}

TEST_CASE("a late record of the warm-up is recognized by its timestamp") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  fake.clock = 1000;
  session.discard();
  give_kernel("warm_up", 900, 990, 3);
  give_kernel("counted", 1000, 1010, 4);
  give_kernel("lost_its_stamp", 0, 0, 5);
  const Activity activity = session.finish();
  REQUIRE(activity.kernels.size() == 2);
  CHECK(activity.kernels[0].symbol == "counted");
  CHECK(activity.kernels[1].symbol == "lost_its_stamp");
}

// A normal flush must come before the forced flush. A forced flush also returns unfinished records,
// which might still end.
TEST_CASE("a buffer withheld for an unfinished record is flushed by force") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel("delivered", 100, 110, 3);
  const std::vector<Record> delivered = std::exchange(fake.pending, {});
  give_kernel("withheld", 200, 210, 4);
  give_kernel("still runs", 300, 0, 5);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  copy.start = 400;
  give(copy);
  fake.withheld = std::exchange(fake.pending, delivered);
  const Activity activity = session.finish();
  CHECK(fake.flush_flags == std::vector<std::uint32_t>{0, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED});
  REQUIRE(activity.kernels.size() == 2);
  CHECK(activity.kernels[0].symbol == "delivered");
  CHECK(activity.kernels[1].symbol == "withheld");
  CHECK(activity.transfers.empty());
  CHECK(activity.unfinished == 2);
}

// CUPTI holds its own lock while it delivers records and while it executes calls. A thread that
// called CUPTI under the session's lock could deadlock with the thread that receives records.
TEST_CASE("CUPTI is called without holding a lock") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel("first", 100, 110, 3);
  std::promise<void> delivered;
  std::future<void> second = delivered.get_future();
  std::thread deliverer;
  bool both_at_once = false;
  fake.while_reading = [&] {
    deliverer = std::thread([&] {
      std::vector<Record> nothing;
      deliver(nothing);
      delivered.set_value();
    });
    both_at_once = second.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  };
  CHECK(session.finish().kernels.size() == 1);
  deliverer.join();
  CHECK(both_at_once);
}

TEST_CASE("stopping waits for a buffer that a CUPTI thread still reads") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel("late", 100, 110, 3);
  std::vector<Record> late = std::exchange(fake.pending, {});
  std::promise<void> is_reading;
  fake.while_reading = [&] {
    is_reading.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  std::thread deliverer([&] { deliver(late); });
  is_reading.get_future().wait();
  CHECK(session.finish().kernels.size() == 1);
  deliverer.join();
}

TEST_CASE("only the runtime and driver calls that launched a kernel are returned") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  fake.clock = 1000;
  session.discard();
  const auto give_call = [](CUpti_ActivityKind kind, CUpti_CallbackId call, std::uint64_t start,
                            std::uint32_t correlation, std::uint32_t result) {
    CUpti_ActivityAPI record{};
    record.kind = kind;
    record.cbid = call;
    record.start = start;
    record.end = start + 5;
    record.threadId = 17;
    record.correlationId = correlation;
    record.returnValue = result;
    give(record);
  };
  const auto runtime = CUPTI_ACTIVITY_KIND_RUNTIME;
  give_call(runtime, kLaunchOfCuda13, 900, 1, 0);  // a launch of the warm-up, which must be ignored
  give_call(runtime, kLaunchOfCuda13, 1000, 2, 0);
  give_call(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, 1010, 3, 0);
  give_call(runtime, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchHostFunc_v10000, 1020, 4, 0);
  give_call(runtime, kLaunchOfCuda13, 1030, 5, 1);  // failed
  give_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, 1040, 6, 0);
  const Activity activity = session.finish();
  REQUIRE(activity.launches.size() == 2);
  CHECK(activity.launches[0].correlation == 2);
  CHECK(activity.launches[0].start.count() == 1000);
  CHECK(activity.launches[0].end.count() == 1005);
  CHECK(activity.launches[0].thread == 17);
  CHECK(activity.launches[1].correlation == 6);
}

TEST_CASE("a kernel without a name is counted") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel(nullptr, 1, 2, 3);
  CHECK(session.finish().kernels.at(0).symbol.empty());
}

TEST_CASE("dropped records are counted, and discard() forgets earlier records") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel("warm_up", 1, 2, 3);
  session.discard();
  give_kernel("counted", 4, 5, 6);
  fake.dropped = 12;
  const Activity activity = session.finish();
  REQUIRE(activity.kernels.size() == 1);
  CHECK(activity.kernels[0].symbol == "counted");
  CHECK(activity.dropped == 12);
}

TEST_CASE("ids of op calls are nested, and use a correlation kind that Kineto does not use") {
  CHECK(kOpCallId == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2);  // CUSTOM0 and CUSTOM1 are used by
                                                                // Kineto
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  session.begin(1, "forward aten::mm");
  session.begin(2, "forward aten::add");
  session.end();
  CHECK(fake.pushed == std::vector<std::uint64_t>{1});
  session.end();
  CHECK(fake.ever_pushed == std::vector<std::uint64_t>{1, 2});
  CHECK_THROWS_AS(session.end(), CuptiError);
}

TEST_CASE("only one session can exist at a time, and another can begin after it ends") {
  fake = {};
  const CuptiFunctions functions = table();
  {
    const CuptiSession session(functions);
    CHECK_THAT(refusal(functions), Catch::Contains("one session at a time"));
    CHECK(fake.subscribers == 1);
  }
  check_nothing_is_left();
  CHECK(refusal(functions) == "recorded");
}

TEST_CASE(
    "the errors for another profiler, missing privileges and a wrong CUPTI version are distinct") {
  const CuptiFunctions functions = table();
  fake = {};
  fake.subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  CHECK_THAT(refusal(functions), Catch::Contains("MULTIPLE_SUBSCRIBERS") &&
                                     Catch::Contains("nsys") &&
                                     Catch::Contains("without that tool"));
  check_nothing_is_left();
  fake = {};
  fake.enable_result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  CHECK_THAT(refusal(functions), Catch::Contains("NVreg_RestrictProfilingToAdminUsers=0"));
  check_nothing_is_left();
  fake = {};
  fake.enable_result = CUPTI_ERROR_UNKNOWN;
  CHECK_THAT(refusal(functions), Catch::Contains("is a driver for CUDA 13 loaded?"));
  check_nothing_is_left();
  fake = {};
  fake.version = 120900;
  CHECK_THAT(refusal(functions),
             Catch::Contains("CUPTI 12.9 is loaded, but this build reads records of 13."));
  CHECK(fake.subscribers == 0);
  fake = {};
  CHECK(refusal(functions) == "recorded");  // a failed session does not block the next one
}

TEST_CASE("an unreadable buffer ends the session with an error") {
  fake = {};
  const CuptiFunctions functions = table();
  CuptiSession session(functions);
  give_kernel("lost", 1, 2, 3);
  fake.broken_buffer = true;
  CHECK_THROWS_WITH(session.finish(), Catch::Contains("cannot read its own records"));
}

TEST_CASE("without CUPTI the error says that CUPTI is missing") {
  CHECK_THROWS_WITH(load_cupti("librematch-no-such-cupti.so"),
                    Catch::Contains("CUPTI is missing") && Catch::Contains("comes with LibTorch"));
  CHECK_THROWS_WITH(load_cupti("libc.so.6"), Catch::Contains("CUPTI lacks cuptiGetVersion"));
}

// Uses the real CUPTI library, which returns its version even without a driver. On the dry device
// it also records.
TEST_CASE("LibTorch's own CUPTI has the version that this build reads") {
  const CuptiFunctions functions = load_cupti();
  CHECK_NOTHROW(require_cupti_version(functions));
  const bool is_dry = dlsym(RTLD_DEFAULT, "dry_cuda_size") != nullptr;
  if (!is_dry && !std::filesystem::exists("/proc/driver/nvidia/version")) {
    CHECK_THAT(refusal(functions), Catch::Contains("CUPTI refuses"));
  }
  if (is_dry) CHECK(refusal(functions) == "recorded");
}

}  // namespace
}  // namespace rematch
