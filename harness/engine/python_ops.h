// Intercepts ops that run in Python for a dispatch mode or a tensor subclass. The engine sees such
// an op before Python runs it, but not the ops that Python runs to implement it.
//
// Note [Ops that Python runs] Up to LibTorch 2.12, dispatch key Fake is above key Python, so the
// engine's fallback runs first. In later versions, Python is above Fake. For those versions, the
// engine replaces the interpreter's function table. The new table calls the engine before Python
// runs an op.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace rematch {

using OpHandler = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                           torch::jit::Stack* stack);

// Calls `handler` for each op that Python is about to run, on threads whose ops the engine sees.
// `handler` must redispatch the op with the same keys, with key Fake excluded. Call this once, in a
// process that has an interpreter. Has no effect if the engine's fallback already runs before
// Python's handler.
void see_python_ops(OpHandler handler);

}  // namespace rematch
