#include "harness/python/c_errors.h"

#include "harness/engine/error_view.h"
#include "harness/python/c_surface.h"

namespace rematch::c_call {
namespace {

// The classes are set once, while Python imports the package, and never freed.
_object* refused_type = nullptr;
_object* plan_error_type = nullptr;

void throw_host_error(ErrorKind kind, const char* message) {
  if (kind == ErrorKind::kRefused) throw HostError(ErrorClass::kRefused, refused_type, message);
  throw HostError(ErrorClass::kPlan, plan_error_type, message);
}

}  // namespace
}  // namespace rematch::c_call

using namespace rematch::c_call;

extern "C" {

int rematch_error_class() { return static_cast<int>(error_class()); }

void rematch_set_error_types(void* refused, void* plan_error) {
  refused_type = static_cast<_object*>(refused);
  plan_error_type = static_cast<_object*>(plan_error);
  rematch::set_host_throw(&throw_host_error);
}

}  // extern "C"
