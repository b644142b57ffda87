// The engine, the tracer and the predictor as C functions, which Python calls through ctypes beside
// the torch that it has imported. The engine sees the ops of the calling thread below autograd, so
// it is handed no tensor. A watch is told which are the model's weights, and a Python object
// crosses where the engine asks what is inside a tensor.
//
// Functions that can fail say so by -1 or null; rematch_error() then has the reason. A text that is
// returned lives until the thread's next call.
#pragma once

#include <cstdint>

#define REMATCH_PYTHON_EXPORT __attribute__((visibility("default")))

extern "C" {

struct RematchCheckpoint;
struct RematchHidden;
struct RematchRecording;
struct RematchTrace;
struct RematchWatch;
struct RematchOpaqueCall;
struct RematchOpTimes;

// The last error of this thread, one line.
REMATCH_PYTHON_EXPORT const char* rematch_error();
// Its class: 1 if the engine refused what the program does, 2 if a plan, policy or trace is
// malformed or does not belong to the model, else 0.
REMATCH_PYTHON_EXPORT int rematch_error_class();
// The Python classes (PyTypeObject) of errors 1 and 2, which must outlive the process's last step.
// Ops and backward raise them.
REMATCH_PYTHON_EXPORT void rematch_set_error_types(void* refused, void* plan_error);

// The version of LibTorch that the library was built for, as "2.11.0".
REMATCH_PYTHON_EXPORT const char* rematch_torch_version();

// Hooks into LibTorch, once per process. `counts_memory` replaces the CPU's and meta's allocators
// by counting ones: before the first tensor, and for measuring only.
REMATCH_PYTHON_EXPORT int rematch_install(int counts_memory);
// How the engine finds the tensor inside one of a Python subclass: `look_inside` gets the Python
// object and returns the TensorImpl inside (tensor._cdata), or null where there is none.
REMATCH_PYTHON_EXPORT void rematch_set_look_inside(void* (*look_inside)(void* python_object));
// See harness/engine/program_hooks.h: what tells pairs of saved-tensor hooks apart, and finds the
// tensor (tensor._cdata) that a pack hook returned.
REMATCH_PYTHON_EXPORT void rematch_set_program_hooks(std::int64_t (*identify)(void* pack,
                                                                              void* unpack),
                                                     void* (*tensor_of)(void* python_object));
// Bytes that tensors on `device`, "cpu" or "meta", hold; -1 without counting allocators.
REMATCH_PYTHON_EXPORT std::int64_t rematch_allocated_bytes(const char* device);

// A scope of the forward pass on this thread. `index` is a block's layer index, else -1. Returns 0,
// or 1 where nobody records or traces. Each enter that did not fail needs its leave.
REMATCH_PYTHON_EXPORT int rematch_enter_scope(const char* name, int index);
REMATCH_PYTHON_EXPORT void rematch_leave_scope();
// 1 while this thread is in a scope of a step that is recorded or traced, else 0.
REMATCH_PYTHON_EXPORT int rematch_is_in_scope();
// 1 while this thread's ops are recorded for a region of the plan, else 0.
REMATCH_PYTHON_EXPORT int rematch_is_in_region();
// The program has taken a raw pointer into the memory of `tensor`, a TensorImpl (tensor._cdata), as
// in harness/engine/record/pointer_taken.h. `is_lasting` is 1 for PointerUse::kLasting.
REMATCH_PYTHON_EXPORT int rematch_note_pointer_taken(void* tensor, int is_lasting);

// A hash of the tensor's content, a TensorImpl; 0 for one without memory. The call is not recorded.
REMATCH_PYTHON_EXPORT std::uint64_t rematch_hash(void* tensor);
// How many ops of this process wrote to an argument that their schema does not mark, as traces of
// it found. Records take them from then on for ops that write to it.
REMATCH_PYTHON_EXPORT std::int64_t rematch_num_silent_writers();

// A call that is one op of the record, see harness/engine/record/opaque_call.h. Tensors are
// TensorImpls. Null without an error: nothing is recorded. A call that failed ends with abort.
REMATCH_PYTHON_EXPORT RematchOpaqueCall* rematch_begin_opaque(void* const* overwritten,
                                                              int num_overwritten);
REMATCH_PYTHON_EXPORT int rematch_end_opaque(RematchOpaqueCall* call, const char* name,
                                             void* const* arguments, int num_arguments,
                                             void* const* results, int num_results);
REMATCH_PYTHON_EXPORT void rematch_abort_opaque(RematchOpaqueCall* call);
// As mark_unrepeatable() of harness/engine/record/op_facts.h; 1 where there is such an op.
REMATCH_PYTHON_EXPORT int rematch_mark_unrepeatable(const char* op);
// Until its end, on this thread, what runs in a region or a trace is not recorded: one opaque op.
// Sections end from the innermost to the outermost.
REMATCH_PYTHON_EXPORT RematchHidden* rematch_begin_hidden();
REMATCH_PYTHON_EXPORT void rematch_end_hidden(RematchHidden* section);

// `refuses_mismatch` is 1 for OnMismatch::kRefuse, 0 for kFollowQuietly.
REMATCH_PYTHON_EXPORT RematchCheckpoint* rematch_make_checkpoint(const char* plan_json,
                                                                 const char* schedule,
                                                                 int refuses_mismatch);
// How many passes through regions left the plan, of all threads.
REMATCH_PYTHON_EXPORT std::int64_t rematch_num_left(const RematchCheckpoint* checkpoint);
// Checkpoint::departures() as a JSON list.
REMATCH_PYTHON_EXPORT const char* rematch_departures(const RematchCheckpoint* checkpoint);
// Checkpoint::recompute_differences() as a JSON list.
REMATCH_PYTHON_EXPORT const char* rematch_recompute_differences(
    const RematchCheckpoint* checkpoint);
// Tensors whose content comes and goes, TensorImpls: see harness/engine/record/gathered.h.
// `is_back` gets one and returns 1 where its content is that of forward again.
REMATCH_PYTHON_EXPORT int rematch_add_gathered(RematchCheckpoint* checkpoint, void* const* tensors,
                                               int num_tensors, int (*is_back)(void* tensor));
REMATCH_PYTHON_EXPORT void rematch_free_checkpoint(RematchCheckpoint* checkpoint);
// From here to its end this thread's forward passes are recorded. `is_whole` is 0 where the program
// failed meanwhile: then nothing is asked of the plan's regions. Ended whatever is returned: -1, or
// a RegionsRun (harness/engine/recording.h).
// `verifies` is 1 for Verify::kRecomputedOps.
REMATCH_PYTHON_EXPORT RematchRecording* rematch_begin_recording(RematchCheckpoint* checkpoint,
                                                                int verifies);
REMATCH_PYTHON_EXPORT int rematch_end_recording(RematchRecording* recording, int is_whole);

// One training step in three parts, see TraceSession. `device` is the loss's. `head_json` has the
// trace's model, dimensions, dtype, parameter_bytes, parameters and constant_bytes, and the
// opaque_functions that the step called.
REMATCH_PYTHON_EXPORT RematchTrace* rematch_begin_trace();
REMATCH_PYTHON_EXPORT int rematch_end_forward(RematchTrace* trace, const char* device);
REMATCH_PYTHON_EXPORT const char* rematch_finish_trace(RematchTrace* trace, const char* head_json);
REMATCH_PYTHON_EXPORT void rematch_free_trace(RematchTrace* trace);

// Counts the ops that are executed from here on, in the whole process, and, where memory is
// counted, what holds the most bytes of `device` after an op. Tensors are TensorImpls
// (tensor._cdata): the model's parameters, and its weights that do not learn. The figures are JSON;
// ending it frees it.
REMATCH_PYTHON_EXPORT RematchWatch* rematch_begin_watch(const char* device, void* const* parameters,
                                                        int num_parameters, void* const* frozen,
                                                        int num_frozen);
REMATCH_PYTHON_EXPORT const char* rematch_end_watch(RematchWatch* watch);
// Work that this thread runs is the optimizer's from here on (1), or not any longer (0).
REMATCH_PYTHON_EXPORT void rematch_set_in_optimizer(int is_in_optimizer);

// A policy's plan for a trace, and what a step under a plan takes.
REMATCH_PYTHON_EXPORT const char* rematch_resolve(const char* trace_json, const char* policy);
// For a plan with several shapes, predicts the shape that was made for the trace.
REMATCH_PYTHON_EXPORT const char* rematch_predict(const char* trace_json, const char* plan_json,
                                                  const char* schedule, const char* optimizer);
// One plan of the plans of several shapes of a step; both are JSON lists, in the same order.
REMATCH_PYTHON_EXPORT const char* rematch_combine(const char* traces_json, const char* plans_json);
// The front of a trace, of schema rematch.front. `request_json` has device (whose data sheet gives
// the times) or profile (a profile's JSON), schedule, optimizer, points, baselines (policies; those
// that do not apply to the model are left out) and, for an answer, budget_bytes.
REMATCH_PYTHON_EXPORT const char* rematch_search(const char* trace_json, const char* request_json);
// A front as an HTML page.
REMATCH_PYTHON_EXPORT const char* rematch_render_front(const char* name, const char* front_json);

// Op times of a trace's step on `device`, such as "cpu" or "cuda:0". `card` is the name of the GPU,
// or
// "". The `part` of a watched step that begins is 0 for forward, 1 for backward and 2 for the end.
// rematch_finish_op_times() returns a profile's JSON.
REMATCH_PYTHON_EXPORT RematchOpTimes* rematch_begin_op_times(const char* trace_json, int num_steps,
                                                             const char* device, const char* card);
REMATCH_PYTHON_EXPORT int rematch_watch_part(RematchOpTimes* times, int part);
REMATCH_PYTHON_EXPORT int rematch_note_step(RematchOpTimes* times, std::int64_t forward_ns,
                                            std::int64_t backward_ns);
REMATCH_PYTHON_EXPORT const char* rematch_finish_op_times(RematchOpTimes* times);
REMATCH_PYTHON_EXPORT void rematch_free_op_times(RematchOpTimes* times);

}  // extern "C"
