#include "harness/engine/error_view.h"

#include <atomic>

namespace rematch {
namespace {

std::atomic<HostThrow> registered_throw{nullptr};

}  // namespace

void set_host_throw(HostThrow host_throw) { registered_throw.store(host_throw); }

void throw_for_host(ErrorKind kind, const char* message) {
  const HostThrow host_throw = registered_throw.load();
  if (host_throw != nullptr) host_throw(kind, message);
}

}  // namespace rematch
