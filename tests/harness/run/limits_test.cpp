// Tests rates that are impossible on a device, errors of allocators that must be recognized, and
// the allocator settings of a run.
#include "harness/run/children/out_of_memory.h"
#include "harness/run/prediction/predicted_point.h"
#include "harness/run/timing/time_summary.h"
#include "harness/training/device.h"
#include "policies/base/rejected.h"
#include "tests/support/catch.h"

namespace rematch {
namespace {

Environment h100() {
  Environment environment;
  environment.compute_capability = "9.0";
  environment.multiprocessors = 132;
  environment.sm_clock_most_mhz = 1980;
  return environment;
}

// The limit is 132 x 4096 x 1.98 GHz = 1070 TFLOP/s. The data sheet says only 989 TFLOP/s, because
// it assumes a lower clock.
TEST_CASE(
    "a GPU's highest possible FLOP/s are computed from its number of units and its highest clock") {
  CHECK(most_flops_per_second(h100(), "cuda", "bfloat16", 1).value() ==
        Catch::Detail::Approx(1.0705e15).epsilon(1e-3));
  CHECK(most_flops_per_second(h100(), "cuda", "float32", 1).value() <
        most_flops_per_second(h100(), "cuda", "bfloat16", 1).value());
  Environment unknown = h100();
  unknown.compute_capability = "12.7";
  CHECK_FALSE(most_flops_per_second(unknown, "cuda", "bfloat16", 1).has_value());
  unknown = h100();
  unknown.sm_clock_most_mhz.reset();
  CHECK_FALSE(most_flops_per_second(unknown, "cuda", "bfloat16", 1).has_value());
}

TEST_CASE(
    "a CPU's highest possible FLOP/s grow with the number of threads, and device meta has no "
    "limit") {
  CHECK(most_flops_per_second({}, "cpu", "float32", 2).value() ==
        2 * most_flops_per_second({}, "cpu", "float32", 1).value());
  CHECK_FALSE(most_flops_per_second({}, "meta", "float32", 2).has_value());
}

TEST_CASE("a point that exceeds the highest possible FLOP/s is invalid") {
  PointRecord point;
  point.implied_flops_per_second = 9e14;
  refuse_impossible_rate(point);  // without a known limit, any rate is accepted
  CHECK(point.status == PointStatus::kOk);
  point.most_flops_per_second = 9.1e14;
  refuse_impossible_rate(point);
  CHECK(point.status == PointStatus::kOk);
  point.most_flops_per_second = 8.9e14;
  refuse_impossible_rate(point);
  CHECK(point.status == PointStatus::kInvalid);
  CHECK_THAT(point.reason, Catch::Contains("900 TFLOP/s") && Catch::Contains("890 TFLOP/s"));
  point.status = PointStatus::kOom;
  point.reason = "out of memory";
  refuse_impossible_rate(point);  // must not replace the reason of an earlier failure
  CHECK(point.reason == "out of memory");
}

TEST_CASE("the size of the failed request is read from an allocator's error") {
  CHECK(requested_bytes("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total") ==
        Bytes{20 << 20});
  CHECK(requested_bytes("Tried to allocate 2.50 GiB.") == Bytes{std::int64_t{5} << 29});
  CHECK(requested_bytes("Tried to allocate 512 bytes.") == Bytes{512});
  CHECK(requested_bytes("DefaultCPUAllocator: can't allocate memory: you tried to allocate 123 "
                        "bytes. Error code 12") == Bytes{123});
  for (const char* text :
       {"", "out of memory", "Tried to allocate", "Tried to allocate x MiB",
        "Tried to allocate 3 pages", "Tried to allocate 3", "ried to allocate "}) {
    CAPTURE(text);
    CHECK_FALSE(requested_bytes(text).has_value());
  }
}

TEST_CASE("an allocator's message is printed without its statistics and advice") {
  const std::string told =
      "CUDA out of memory. Tried to allocate 184.00 MiB. GPU 0 has a total capacity of 79.18 GiB "
      "of which 124.19 MiB is free.";
  CHECK(without_advice(told + " Including non-PyTorch memory, this process has 79.05 GiB memory "
                              "in use. Of the allocated memory 77.94 GiB is allocated by "
                              "PyTorch") == told);
  CHECK(without_advice(told + " Process 7 has 1.00 GiB memory in use. Including non-PyTorch") ==
        told);
  CHECK(without_advice(told) == told);
  CHECK(without_advice("out of memory: the first line\nthe second") ==
        "out of memory: the first line");
}

std::string allocator(std::string_view device, std::string_view flag, std::string_view variable) {
  const auto result = allocator_of(device, flag, variable);
  const auto* rejected = std::get_if<Rejected>(&result);
  return rejected == nullptr ? std::get<std::string>(result) : rejected->message;
}

TEST_CASE("CUDA has two allocators, chosen by flag or by LibTorch's variable") {
  CHECK(allocator("cuda", "", "") == "cuda_caching");
  CHECK(allocator("cuda", "", "max_split_size_mb:64,expandable_segments:True") ==
        "cuda_expandable");
  CHECK(allocator("cuda", "caching", "expandable_segments:True") == "cuda_caching");
  CHECK(allocator("cuda", "expandable", "") == "cuda_expandable");
  CHECK_THAT(allocator("cuda", "expandible", ""), Catch::Contains("did you mean 'expandable'"));
  CHECK(allocator("cpu", "", "expandable_segments:True") == "cpu_counting");
  CHECK(allocator("meta", "", "") == "meta_counting");
  CHECK_THAT(allocator("cpu", "caching", ""), Catch::Contains("--allocator requires device cuda"));
}

// If both variables are set, LibTorch uses the older one, PYTORCH_CUDA_ALLOC_CONF.
TEST_CASE("the allocator is set through LibTorch's own variable") {
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  unsetenv("PYTORCH_ALLOC_CONF");
  CHECK(std::string(allocator_variable()) == "PYTORCH_CUDA_ALLOC_CONF");
  CHECK(allocator_configuration().empty());
  setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True", 1);
  CHECK(allocator_configuration() == "expandable_segments:True");
  use_allocator("cuda_caching");
  CHECK(std::getenv("PYTORCH_CUDA_ALLOC_CONF") == nullptr);
  CHECK(allocator_configuration() == "expandable_segments:True,expandable_segments:False");
  setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64", 1);
  CHECK(allocator_configuration() == "max_split_size_mb:64");
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
  unsetenv("PYTORCH_ALLOC_CONF");
}

TEST_CASE("a CUDA device is named with or without an index, and the default is the first device") {
  CHECK(device_named("cuda") == c10::Device(c10::kCUDA, 0));
  CHECK(device_named("cuda:3") == c10::Device(c10::kCUDA, 3));
  CHECK(device_named("cuda-dry") == c10::Device(c10::kCUDA, 0));
  CHECK(device_named("cpu") == c10::Device(c10::kCPU));
  for (const char* name : {"cuda", "cuda:0", "cuda:11", "cuda-dry"}) CHECK(names_cuda(name));
  for (const char* name :
       {"cpu", "meta", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "cuda1", "cud"}) {
    CAPTURE(name);
    CHECK_FALSE(names_cuda(name));
  }
  CHECK(device_kind("cuda:1") == "cuda");
  CHECK(device_kind("meta") == "meta");
  CHECK(computes_values("cpu"));
  CHECK_FALSE(computes_values("meta"));
}

TEST_CASE("out of memory is recognized in the messages of each allocator and library") {
  for (const char* text :
       {"[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED, when calling `cusolverDnCreate(handle)`"}) {
    CAPTURE(text);
    CHECK(speaks_of_memory(text));
  }
  CHECK_FALSE(speaks_of_memory("CUDA error: an illegal memory access was encountered"));
  CHECK_FALSE(speaks_of_memory("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"));
}

TimedRound round_with(const DeviceStateRecord& state) {
  TimedRound round;
  round.samples = {std::vector<std::chrono::nanoseconds>(8, std::chrono::milliseconds(10))};
  round.device_state = state;
  return round;
}

std::string verdict_with(const DeviceStateRecord& state) {
  const std::vector<TimedRound> rounds = {round_with({}), round_with(state), round_with({})};
  return summarize_rounds(rounds).quality->verdict;
}

TEST_CASE("a bad state of the device in any round decides the verdict on times") {
  CHECK(verdict_with({}) == "good");
  DeviceStateRecord state;
  state.throttle_reasons = {"sw_power_cap"};
  CHECK(verdict_with(state) == "good");
  state.allocator_retries = 3;
  CHECK(verdict_with(state) == "thrashing");
  state.other_processes = 1;
  CHECK(verdict_with(state) == "shared_device");
  state.throttle_reasons.push_back("hw_thermal_slowdown");
  CHECK(verdict_with(state) == "throttled");
  const TimeQuality quality =
      *summarize_rounds({round_with(state), round_with(state), round_with({})}).quality;
  CHECK(quality.reasons.size() == 3);
  CHECK_THAT(quality.reasons[0], Catch::Contains("ran out of memory 6 times"));
}

TEST_CASE(
    "outliers are counted but not removed, and steps with an ordinary spread have no outliers") {
  TimedRound round = round_with({});
  for (int step = 0; step < 8; ++step) round.samples[0][step] += std::chrono::microseconds(step);
  CHECK(summarize_rounds({round}).quality->num_outliers == 0);
  round.samples[0][5] = std::chrono::milliseconds(40);
  const TimeRecord time = summarize_rounds({round, round});
  CHECK(time.quality->num_outliers == 2);
  CHECK(time.samples[0][5] == std::chrono::milliseconds(40));
  CHECK(time.step_median < std::chrono::milliseconds(11));
}

TEST_CASE("the device states of several rounds are summarized by the worst state") {
  DeviceStateRecord first{1755, 1740, 2619, 60, {"sw_power_cap"}, 0, 1};
  DeviceStateRecord second{1700, 1410, 2610, 66, {"hw_slowdown", "sw_power_cap"}, 2, 0};
  const DeviceStateRecord all =
      *summarize_rounds({round_with(first), round_with(second)}).device_state;
  CHECK(all.sm_clock_median_mhz == 1727);
  CHECK(all.sm_clock_least_mhz == 1410);
  CHECK(all.memory_clock_least_mhz == 2610);
  CHECK(all.temperature_most_celsius == 66);
  CHECK(all.throttle_reasons == std::vector<std::string>{"hw_slowdown", "sw_power_cap"});
  CHECK(all.other_processes == 2);
  CHECK(all.allocator_retries == 1);
  TimedRound cpu;
  cpu.samples = {{std::chrono::milliseconds(1)}};
  CHECK_FALSE(summarize_rounds({cpu}).device_state.has_value());
}

}  // namespace
}  // namespace rematch
