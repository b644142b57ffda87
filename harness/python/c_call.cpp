#include "harness/python/c_call.h"

#include <c10/util/Exception.h>

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "harness/engine/recording.h"
#include "harness/python/c_errors.h"
#include "policies/base/file.h"
#include "policies/plan/plan_json.h"
#include "policies/trace/trace_json.h"

namespace rematch::c_call {
namespace {

thread_local std::string last_error;
thread_local ErrorClass last_class = ErrorClass::kOther;
thread_local std::string last_text;

void note(ErrorClass error_class, const char* line) {
  last_class = error_class;
  last_error = line;
}

}  // namespace

const std::string& error() { return last_error; }
ErrorClass error_class() { return last_class; }
void clear_error() { note(ErrorClass::kOther, ""); }

void note_error() {
  last_class = ErrorClass::kOther;
  try {
    throw;
  } catch (const HostError& thrown) {
    note(thrown.error_class, thrown.what());
  } catch (const Refused& thrown) {
    note(ErrorClass::kRefused, thrown.what());
  } catch (const StreamMismatch& thrown) {
    note(ErrorClass::kPlan, thrown.what());
  } catch (const FormatError& thrown) {
    note(ErrorClass::kPlan, thrown.what());
  } catch (const PlanRejected& thrown) {
    note(ErrorClass::kPlan, thrown.what());
  } catch (const c10::Error& thrown) {
    last_error = thrown.what_without_backtrace();  // leaves out the stack trace
  } catch (const std::exception& thrown) {
    last_error = thrown.what();
  } catch (...) {
    last_error = "an exception of an unknown kind";
  }
}

const char* kept_text(std::string text) {
  last_text = std::move(text);
  return last_text.c_str();
}

const char* as_text(const Json& json) { return kept_text(json.dump()); }

const Trace& trace_of_text(const char* trace_json) {
  struct ReadTrace {
    std::string text;
    Trace trace;
  };
  thread_local std::optional<ReadTrace> last;
  if (!last || last->text != trace_json) {
    last.reset();
    last = ReadTrace{trace_json, trace_from_json(parse_json(trace_json, "trace"))};
  }
  return last->trace;
}

std::vector<at::Tensor> tensors_at(void* const* tensors, int count) {
  std::vector<at::Tensor> found;
  for (int index = 0; index < count; ++index) {
    found.emplace_back(c10::intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl>::reclaim_copy(
        static_cast<at::TensorImpl*>(tensors[index])));
  }
  return found;
}

Plan plan_of_text(const char* plan_json) { return plan_from_json(parse_json(plan_json, "plan")); }

Schedule schedule_named(const char* name) {
  const std::optional<Schedule> schedule = from_string<Schedule>(name);
  if (!schedule) {
    throw std::invalid_argument(std::string("schedule is '") + name +
                                "'; it must be whole_region or on_demand");
  }
  return *schedule;
}

OptimizerKind optimizer_named(const char* name) {
  const std::optional<OptimizerKind> optimizer = optimizer_kind_from_string(name);
  if (optimizer) return *optimizer;
  std::string known;
  for (const std::string_view each : optimizer_kind_names()) {
    known += (known.empty() ? "" : ", ") + std::string(each);
  }
  throw std::invalid_argument(std::string("optimizer is '") + name + "'; it must be one of " +
                              known);
}

}  // namespace rematch::c_call
