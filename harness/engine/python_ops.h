// Ops that Python runs, because a dispatch mode or a tensor subclass asked for them. The engine
// sees such an op before Python does, and not the ops that Python runs for it.
//
// Note [Ops that Python runs]
// Up to LibTorch 2.12 dispatch key Fake is above key Python, so the engine's fallback comes first.
// Later versions have Python above Fake. There the interpreter's table of functions is wrapped: the
// entry that runs an op hands it to the engine first.
#pragma once

#include <ATen/core/stack.h>
#include <c10/core/DispatchKeySet.h>

namespace c10 {
class OperatorHandle;
}

namespace rematch {

using OpHandler = void (*)(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                           torch::jit::Stack* stack);

// `handler` gets each op that Python is about to run on a thread whose ops the engine sees. It
// passes the op on by redispatching it with the same keys, while Fake is excluded. Call once, in a
// process that has an interpreter. No effect where the engine's fallback comes first.
void see_python_ops(OpHandler handler);

}  // namespace rematch
