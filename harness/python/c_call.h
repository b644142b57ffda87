// Code that the C functions share: it converts exceptions for rematch_error() and
// rematch_error_class(), keeps returned texts alive until the thread's next call, and parses
// arguments.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "policies/base/json_fwd.h"
#include "policies/base/rejected.h"
#include "policies/plan/plan.h"
#include "policies/predict/step/optimizer_bytes.h"
#include "policies/trace/trace.h"

namespace rematch::c_call {

// The kind of an error. Each corresponds to one Python exception class.
enum class ErrorClass : std::uint8_t {
  kOther,
  kRefused,  // the program does something that cannot be recorded
  kPlan,     // a plan, policy or trace is malformed, or does not belong to the model
};

// The error of the thread's last call; empty if the call succeeded.
const std::string& error();
ErrorClass error_class();
void clear_error();
void note_error();  // stores the exception that the caller is handling

// Thrown for policies and plans that do not apply to the model.
struct PlanRejected : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// Returns the result of `call`, or `failed` if it throws.
template <typename Result, typename Call>
Result call_or(Result failed, const Call& call) {
  try {
    clear_error();
    return call();
  } catch (...) {
    note_error();
    return failed;
  }
}

// Returns the text as a C string, which lives until this thread's next call that returns a text.
const char* kept_text(std::string text);
const char* as_text(const Json& json);

template <typename Value>
Value accepted(std::variant<Value, Rejected> result) {
  if (const auto* rejected = std::get_if<Rejected>(&result)) {
    throw PlanRejected(rejected->message);
  }
  return std::get<Value>(std::move(result));
}

// Returns the tensors of an array of TensorImpls (tensor._cdata in Python).
std::vector<at::Tensor> tensors_at(void* const* tensors, int count);

// The functions below parse an argument. They throw FormatError or std::invalid_argument with a
// message that says what is allowed.
//
// The trace is valid until this thread reads another one. A caller often asks about one trace many
// times, so a trace that was read last is not read again.
const Trace& trace_of_text(const char* trace_json);
Plan plan_of_text(const char* plan_json);
Schedule schedule_named(const char* name);
OptimizerKind optimizer_named(const char* name);

}  // namespace rematch::c_call
