// The engine, the tracer and the predictor as C functions. Python calls them through ctypes, in a
// process that has imported torch.
//
// A function that fails returns -1 or null, and rematch_error() then returns the reason. A returned
// text is valid until the thread's next call. Tensors are passed as TensorImpls (tensor._cdata).
#pragma once

#include <cstdint>

#define REMATCH_PYTHON_EXPORT __attribute__((visibility("default")))

extern "C" {

struct RematchCheckpoint;
struct RematchHidden;
struct RematchJoint;
struct RematchRecording;
struct RematchTrace;
struct RematchWatch;
struct RematchOpaqueCall;
struct RematchOpTimes;

// Returns the last error of this thread, as one line.
REMATCH_PYTHON_EXPORT const char* rematch_error();
// Returns the class of the last error. 1: the program did something that the engine cannot support.
// 2: a plan, policy or trace is malformed or does not belong to the model. 0: any other error.
REMATCH_PYTHON_EXPORT int rematch_error_class();
// Sets the Python classes (PyTypeObject) of errors for which rematch_error_class() returns 1 and 2.
// Ops and backward raise these classes. The classes must outlive the last step of the process.
REMATCH_PYTHON_EXPORT void rematch_set_error_types(void* refused, void* plan_error);

// Returns the version of LibTorch that the library was built for, such as "2.11.0".
REMATCH_PYTHON_EXPORT const char* rematch_torch_version();

// Hooks the engine into LibTorch. Call this once per process. With `counts_memory`, also replaces
// the allocators of devices cpu and meta by counting allocators. In this case, call it before the
// first tensor exists, and only for measurements.
REMATCH_PYTHON_EXPORT int rematch_install(int counts_memory);
// Sets the function that finds the inner tensor of a Python tensor subclass. The function returns a
// TensorImpl, or null if the object wraps no tensor.
REMATCH_PYTHON_EXPORT void rematch_set_look_inside(void* (*look_inside)(void* python_object));
// Sets the functions of harness/engine/program_hooks.h. The first function identifies a pair of
// saved-tensor hooks. The second finds the tensor that a pack hook returned.
REMATCH_PYTHON_EXPORT void rematch_set_program_hooks(std::int64_t (*identify)(void* pack,
                                                                              void* unpack),
                                                     void* (*tensor_of)(void* python_object));
// Returns the bytes that tensors on `device`, "cpu" or "meta", hold. Returns -1 without counting
// allocators.
REMATCH_PYTHON_EXPORT std::int64_t rematch_allocated_bytes(const char* device);

// Enters a scope of the forward pass on this thread. `index` is a block's layer index, else -1.
// Returns 1 outside of recorded and traced steps, else 0. Call rematch_leave_scope() in both cases.
REMATCH_PYTHON_EXPORT int rematch_enter_scope(const char* name, int index);
REMATCH_PYTHON_EXPORT void rematch_leave_scope();
// Returns 1 while this thread is inside a scope of a recorded or traced step, else 0.
REMATCH_PYTHON_EXPORT int rematch_is_in_scope();
// Returns 1 while this thread's ops are recorded for a region of the plan, else 0.
REMATCH_PYTHON_EXPORT int rematch_is_in_region();
// Call this when the program takes a raw pointer into the memory of `tensor`, as in
// harness/engine/record/pointer_taken.h. `is_lasting` is 1 for PointerUse::kLasting.
REMATCH_PYTHON_EXPORT int rematch_note_pointer_taken(void* tensor, int is_lasting);

// Returns a hash of the tensor's content; 0 for a tensor without memory. The ops that compute the
// hash are not recorded.
REMATCH_PYTHON_EXPORT std::uint64_t rematch_hash(void* tensor);
// Returns the number of ops with hidden writes that this process has found. Such an op writes to an
// argument that its schema does not mark as written.
REMATCH_PYTHON_EXPORT std::int64_t rematch_num_silent_writers();

// Begins an opaque call, which is recorded as one op: see harness/engine/record/opaque_call.h.
// Returns null without an error if nothing is recorded. End the call with rematch_end_opaque(), or
// with rematch_abort_opaque() if it fails.
REMATCH_PYTHON_EXPORT RematchOpaqueCall* rematch_begin_opaque(void* const* overwritten,
                                                              int num_overwritten);
REMATCH_PYTHON_EXPORT int rematch_end_opaque(RematchOpaqueCall* call, const char* name,
                                             void* const* arguments, int num_arguments,
                                             void* const* results, int num_results);
REMATCH_PYTHON_EXPORT void rematch_abort_opaque(RematchOpaqueCall* call);
// Like mark_unrepeatable() of harness/engine/record/op_facts.h. Returns 1 if an op has this name.
REMATCH_PYTHON_EXPORT int rematch_mark_unrepeatable(const char* op);
// Begins a section on this thread whose ops are not recorded (harness/engine/opaque_section.h).
// Sections nest; the innermost must end first.
REMATCH_PYTHON_EXPORT RematchHidden* rematch_begin_hidden();
REMATCH_PYTHON_EXPORT void rematch_end_hidden(RematchHidden* section);

// `refuses_mismatch` is 1 for OnMismatch::kRefuse, 0 for kFollowQuietly.
REMATCH_PYTHON_EXPORT RematchCheckpoint* rematch_make_checkpoint(const char* plan_json,
                                                                 const char* schedule,
                                                                 int refuses_mismatch);
// Returns how often regions left the plan, by running other ops than planned, over all threads.
REMATCH_PYTHON_EXPORT std::int64_t rematch_num_left(const RematchCheckpoint* checkpoint);
// Returns Checkpoint::departures() as a JSON list.
REMATCH_PYTHON_EXPORT const char* rematch_departures(const RematchCheckpoint* checkpoint);
// Returns Checkpoint::recompute_differences() as a JSON list.
REMATCH_PYTHON_EXPORT const char* rematch_recompute_differences(
    const RematchCheckpoint* checkpoint);
// Registers tensors whose content may be missing between forward and backward: see
// harness/engine/record/gathered.h. `is_back` returns 1 if the tensor has the same content as in
// forward.
REMATCH_PYTHON_EXPORT int rematch_add_gathered(RematchCheckpoint* checkpoint, void* const* tensors,
                                               int num_tensors, int (*is_back)(void* tensor));
REMATCH_PYTHON_EXPORT void rematch_free_checkpoint(RematchCheckpoint* checkpoint);
// Records this thread's forward passes until rematch_end_recording(). `verifies` is 1 for
// Verify::kRecomputedOps. `is_whole` is 0 if the forward pass failed. rematch_end_recording()
// returns a RegionsRun (harness/engine/recording.h), or -1 on failure. The recording ends in both
// cases.
REMATCH_PYTHON_EXPORT RematchRecording* rematch_begin_recording(RematchCheckpoint* checkpoint,
                                                                int verifies);
REMATCH_PYTHON_EXPORT int rematch_end_recording(RematchRecording* recording, int is_whole);

// Traces one training step, as TraceSession does. `device` is the device of the loss. `head_json`
// contains the trace's model, dimensions, dtype, parameter_bytes, parameters, constant_bytes and
// opaque_functions.
REMATCH_PYTHON_EXPORT RematchTrace* rematch_begin_trace();
REMATCH_PYTHON_EXPORT int rematch_end_forward(RematchTrace* trace, const char* device);
REMATCH_PYTHON_EXPORT const char* rematch_finish_trace(RematchTrace* trace, const char* head_json);
REMATCH_PYTHON_EXPORT void rematch_free_trace(RematchTrace* trace);

// Counts all ops that the process executes between rematch_begin_watch() and rematch_end_watch().
// If memory of `device` is counted, also measures the bytes in use. `parameters` are the model's
// trained parameters, and `frozen` its frozen weights. rematch_end_watch() returns the figures as
// JSON and frees `watch`.
REMATCH_PYTHON_EXPORT RematchWatch* rematch_begin_watch(const char* device, void* const* parameters,
                                                        int num_parameters, void* const* frozen,
                                                        int num_frozen);
REMATCH_PYTHON_EXPORT const char* rematch_end_watch(RematchWatch* watch);
// Sets whether the ops that this thread runs from now on belong to the optimizer.
REMATCH_PYTHON_EXPORT void rematch_set_in_optimizer(int is_in_optimizer);

// Returns the trace of a step with several micro-batches of the traced step.
REMATCH_PYTHON_EXPORT const char* rematch_accumulate(const char* trace_json,
                                                     std::int64_t num_micro_batches);
// Fails unless the text names a policy. Whether the policy applies to a model depends on the trace.
REMATCH_PYTHON_EXPORT int rematch_require_policy(const char* policy);
// Returns the plan of a policy for a trace.
REMATCH_PYTHON_EXPORT const char* rematch_resolve(const char* trace_json, const char* policy);
// Predicts the bytes and recomputed ops of a step under a plan. If the plan has several shapes,
// uses the shape of the trace.
REMATCH_PYTHON_EXPORT const char* rematch_predict(const char* trace_json, const char* plan_json,
                                                  const char* schedule, const char* optimizer);
// Combines plans for steps that run different ops. Each argument is a JSON list with one entry for
// each step.
REMATCH_PYTHON_EXPORT const char* rematch_combine(const char* traces_json, const char* plans_json);
// Searches for plans. Returns the front, as JSON of schema rematch.front. `request_json` contains
// either `device`, whose data sheet gives the op times, or `profile`, the JSON of a profile.
// Baselines are policies; policies that do not apply to the model are skipped. If `request_json`
// contains budget_bytes, the front contains the best plan within the budget. `hull` is that of
// `rematch search`.
REMATCH_PYTHON_EXPORT const char* rematch_search(const char* trace_json, const char* request_json);

// Reads a compiled model's joint graph: see policies/joint/joint_graph.h. `joint_json` also has
// `fuses`, whether the backend fuses elementwise ops, `free`, the nodes that forward may save
// without memory of its own, and `aims`, a list of CutAims. Nodes are given by index.
REMATCH_PYTHON_EXPORT RematchJoint* rematch_make_joint(const char* joint_json);
REMATCH_PYTHON_EXPORT void rematch_free_joint(RematchJoint* joint);
// Returns the plans that save the values of FewestSaved, one for each aim, as a JSON list of
// GraphOptions.
REMATCH_PYTHON_EXPORT const char* rematch_joint_options(RematchJoint* joint,
                                                        const std::int32_t* recomputed,
                                                        int num_recomputed);
// Returns the plan that saves nodes of `offered`, as a JSON object: see GraphOption.
REMATCH_PYTHON_EXPORT const char* rematch_joint_option(RematchJoint* joint,
                                                       const std::int32_t* offered,
                                                       int num_offered);
// Returns the schedule of such a plan, as a JSON object: see GraphSchedule.
REMATCH_PYTHON_EXPORT const char* rematch_joint_schedule(RematchJoint* joint,
                                                         const std::int32_t* offered,
                                                         int num_offered, int by_layer);
// Returns a front as an HTML page.
REMATCH_PYTHON_EXPORT const char* rematch_render_front(const char* name, const char* front_json);

// Measures the op times of a trace's step on `device`, such as "cpu" or "cuda:0". `card` is the
// name of the GPU, or "". Call rematch_watch_part() with 0 before forward, 1 before backward, and 2
// after backward. rematch_finish_op_times() returns the JSON of a profile.
REMATCH_PYTHON_EXPORT RematchOpTimes* rematch_begin_op_times(const char* trace_json, int num_steps,
                                                             const char* device, const char* card);
REMATCH_PYTHON_EXPORT int rematch_watch_part(RematchOpTimes* times, int part);
REMATCH_PYTHON_EXPORT int rematch_note_step(RematchOpTimes* times, std::int64_t forward_ns,
                                            std::int64_t backward_ns);
REMATCH_PYTHON_EXPORT const char* rematch_finish_op_times(RematchOpTimes* times);
REMATCH_PYTHON_EXPORT void rematch_free_op_times(RematchOpTimes* times);

}  // extern "C"
