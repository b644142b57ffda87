// Effects that torch does not see, caused by other libraries' code. Recording a step finds these
// effects. A plan stores them for the process that runs the plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policies/base/json_fwd.h"

namespace rematch {

// An autograd function. Each call of the function is traced as a single op: see Note [Opaque calls]
// (harness/engine/record/opaque_call.h).
struct OpaqueFunction {
  std::string name;  // "package.module:Class"
  // Positions of the arguments that the function writes to. Absent: unknown, so the function may
  // write to any argument.
  std::optional<std::vector<int>> overwrites;
  bool operator==(const OpaqueFunction&) const = default;
};

// An op that writes to arguments although its schema does not mark them as mutable.
struct SilentWriter {
  std::string op;              // the op's name, in the form of TracedOp::name
  std::vector<int> arguments;  // positions of the arguments in the schema
  bool operator==(const SilentWriter&) const = default;
};

struct HiddenEffects {
  // this list and the next two are sorted by name, without duplicates
  std::vector<OpaqueFunction> opaque_functions;
  std::vector<SilentWriter> silent_writers;
  std::vector<std::string> kept_ops;  // ops that cannot be repeated, so their results are kept
  bool operator==(const HiddenEffects&) const = default;
};

// Returns the union of the effects. If `overwrites` of a function is absent in `a` or `b`, it is
// absent in the result.
HiddenEffects united(const HiddenEffects& a, const HiddenEffects& b);

// Returns a line for each entry, such as "lib::op writes to arguments 1, 2".
std::vector<std::string> lines_of(const HiddenEffects& effects);

// Reads the lists that the object contains. Throws FormatError for a malformed name.
HiddenEffects hidden_effects_from_json(const Json& object);

}  // namespace rematch
