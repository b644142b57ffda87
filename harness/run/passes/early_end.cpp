#include "harness/run/passes/early_end.h"

#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <optional>
#include <string>

#include "harness/engine/interception.h"
#include "harness/measure/device_memory.h"
#include "harness/measure/memory.h"
#include "harness/run/children/out_of_memory.h"
#include "harness/training/replayed_step.h"

namespace rematch {
namespace {

// Records why a point ended early.
class EarlyEnd {
 public:
  EarlyEnd(PointRecord& record, const PassPosition& position, at::Device device)
      : record_(record), position_(position), device_(device) {}

  void explain(const std::exception_ptr& failure) {
    // The training step cannot see recompute, so the engine is asked whether a recomputed op threw.
    in_recompute_ = take_recompute_failure();
    try {
      std::rethrow_exception(failure);
    } catch (const OutOfMemory& error) {
      is_out_of_memory(error.what(), error.requested);
    } catch (const c10::OutOfMemoryError& error) {
      is_out_of_memory(error.what_without_backtrace(),
                       requested_bytes(error.what_without_backtrace()));
    } catch (const std::bad_alloc&) {
      is_out_of_memory("out of memory: an allocation failed", std::nullopt);
    } catch (const NotCapturable& error) {
      is(PointStatus::kRefused, error.what());
    } catch (const LossNotFinite& error) {
      is(PointStatus::kInvalid, error.what());
    } catch (const c10::Error& error) {
      is_error(error.what_without_backtrace());
    } catch (const std::exception& error) {
      is_crash(error.what());
    }
  }

 private:
  void is(PointStatus status, const std::string& reason) {
    record_.status = status;
    record_.reason = reason.substr(0, reason.find('\n'));
  }

  void is_crash(const std::string& what) {
    is(PointStatus::kCrash, what + " (" + position().describe() + ")");
  }

  void is_out_of_memory(const std::string& what, std::optional<Bytes> requested) {
    is(PointStatus::kOom, without_advice(what) + " (" + position().describe() + ")");
    record_.failure.emplace();
    record_.failure->requested = requested;
    if (position_.step >= 0) record_.failure->phase = position().phase;
    if (!device_.is_cuda() && !(device_.is_cpu() && counting_allocators_installed())) return;
    if (!record_.memory) record_.memory.emplace();
    record_.memory->peak_allocated = DeviceMemory(device_).peak();
  }

  // Recognizes out-of-memory errors that have no exception type of their own.
  void is_error(const std::string& what) {
    if (speaks_of_memory(what)) {
      is_out_of_memory("out of memory: " + what, requested_bytes(what));
    } else {
      is_crash(first_line_of(what));
    }
  }

  static std::string first_line_of(const std::string& text) {
    return text.substr(0, text.find('\n'));
  }

  PassPosition position() const {
    PassPosition position = position_;
    if (in_recompute_) position.phase = Phase::kRecompute;
    return position;
  }

  PointRecord& record_;
  const PassPosition& position_;
  at::Device device_;
  bool in_recompute_ = false;
};

}  // namespace

void run_to_early_end(const PassPosition& position, c10::Device device, PointRecord& record,
                      const std::function<void()>& measure) {
  EarlyEnd end(record, position, device);
  take_recompute_failure();  // clears the failure of an earlier pass
  try {
    measure();
  } catch (...) {
    end.explain(std::current_exception());
  }
}

}  // namespace rematch
