#include "harness/engine/recording.h"

#include <ATen/SavedTensorHooks.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>

#include <exception>
#include <optional>
#include <utility>

#include "harness/engine/frame.h"
#include "harness/engine/interception.h"
#include "harness/engine/off_plan_pass.h"
#include "harness/engine/open_region.h"
#include "harness/engine/prepared_plan.h"
#include "harness/engine/program_hooks.h"
#include "harness/engine/record/op_stream.h"
#include "harness/engine/shape_follower.h"
#include "harness/engine/write_watch.h"
#include "models/scope/scope.h"

namespace rematch {
namespace {

thread_local int num_open_regions = 0;

// Returns the facts of the op if it is the planned op `index`, otherwise null.
const OpFacts* if_planned(const PreparedRegionType& type, std::size_t index,
                          const c10::OperatorHandle& op) {
  if (index >= type.ops.size()) return nullptr;
  const OpFacts* const planned = type.ops[index];
  if (planned != nullptr && planned->schema == &op.schema()) return planned;
  const OpFacts& ran = facts_of(op);
  return ran.id == type.ids[index] ? &ran : nullptr;
}

std::string describe_arguments(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  std::string text = "(";
  const std::size_t base = stack.size() - op.schema().arguments().size();
  for (std::size_t i = base; i < stack.size(); ++i) {
    if (!stack[i].isTensor()) continue;
    text += (text.size() > 1 ? ", " : "") + describe_tensor(stack[i].toTensor());
  }
  return text + ")";
}

}  // namespace

// Opens and closes regions as scopes open and close. While a region is open, this object is the
// thread's op mode and supplies its saved-tensor hooks.
struct Recording::State final : ScopeListener, OpMode, SavedTensorProvider {
  State(std::shared_ptr<const Checkpoint::Prepared> given, Verify given_verify)
      : prepared(std::move(given)), verify(given_verify) {
    if (num_open_regions > 0) {
      throw Refused(
          "a Recording begins inside an open region of another Recording; begin it before forward, "
          "or "
          "outside the scopes that the outer plan governs");
    }
    install_interception();
    if (prepared->plan.watches_writes) {
      write_watch.emplace();
      watch_guard.emplace(&*write_watch);
    }
    outer_listener = scope_listener();
    scope_listener() = this;
  }

  ~State() override {
    if (frame != nullptr) close_region(nullptr);
    if (scope_listener() == this) scope_listener() = outer_listener;
  }

  void enter(std::string_view name, std::optional<int> index) override {
    throw_pending_fault();
    path_lengths.push_back(path.size());
    if (!path.empty()) path += '.';
    path += name;
    if (index) {
      path += '.';
      path += std::to_string(*index);
    }
    if (frame != nullptr && path_lengths.size() == region_depth && !refuses()) {
      go_on_in_scope(index);
    }
    if (frame != nullptr) return;
    if (!at::GradMode::is_enabled()) {
      any_scope_without_grad = true;
      return;
    }
    try {
      open_region_if_planned();
    } catch (...) {
      leave();  // if the Scope's constructor throws, its destructor does not run
      throw;
    }
  }

  void leave() noexcept override {
    if (frame != nullptr && path_lengths.size() == region_depth) end_layer();
    const bool is_last = frame != nullptr && path_lengths.size() == region_depth &&
                         path == frame->region().last_scope;
    const bool is_around = frame != nullptr && path_lengths.size() < region_depth;
    if (is_last || is_around) close_region(find_fault());
    path.resize(path_lengths.back());
    path_lengths.pop_back();
  }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    const std::size_t index = frame->record().num_program_ops();
    if (shapes.is_undecided()) shapes.narrow(*frame, recorder, index, facts_of(op).id);
    const OpFacts* facts = frame->has_left_plan() ? nullptr : if_planned(frame->type(), index, op);
    Keep keep = Keep::kNothing;
    if (facts != nullptr) {
      keep = shapes.is_undecided() ? shapes.keep_for_all(*frame, index) : frame->type().keep[index];
    } else if (is_behind_region()) {
      close_region(find_fault());
      call_next(op, keys, stack, depth);
      return;
    } else if (shapes.switch_to_op(*frame, recorder, facts_of(op).id)) {
      facts = &facts_of(op);
      keep = frame->type().keep[index];
    } else {
      if (!frame->has_left_plan()) {
        std::string difference = describe_difference(index, op, *stack);
        if (refuses()) {
          // Runs the op first. If the op fails, the model must see the op's error, not
          // StreamMismatch.
          call_next(op, keys, stack, depth);
          throw StreamMismatch("region " + frame->region_name() + ", " + difference +
                               ". Was the plan made for another model or other dimensions?");
        }
        leave_plan(std::move(difference));
      }
      facts = &facts_of(op);
      keep = off_plan->keep_next(*facts);
    }
    recorder.run(*facts, keys, stack, depth, keep);
    if (frame->record().streams.size() > 1) refuse_second_stream(*facts);
  }

  bool refuses() const { return prepared->options.on_mismatch == OnMismatch::kRefuse; }

  void leave_plan(std::string difference) {
    shapes.decide(*frame, recorder);
    frame->leave_plan();
    off_plan.emplace(frame->type(), frame->record().num_program_ops(), std::move(difference));
  }

  // Returns whether the program has left the region without running its last scope. This is so if
  // backward has begun, or if a scope has opened that comes after the region.
  bool is_behind_region() const {
    if (refuses()) return false;
    if (path_lengths.size() < region_depth) return in_backward();
    return frame->type().has_several_layers && !is_in_layer;
  }

  // Called when a scope opens at the same depth as the region's first scope. If the step skips,
  // repeats or reorders layers, the scope may belong to another region. In that case, closes the
  // open region.
  void go_on_in_scope(std::optional<int> index) {
    const PreparedRegionType& type = frame->type();
    if (!type.has_several_layers) return;
    std::optional<int> inner;
    if (index) inner = prepared->inner_layer(path, frame->region_index());
    is_in_layer = inner.has_value() || path == frame->region().first_scope;
    const std::size_t num_ops = frame->record().num_program_ops();
    const bool is_next = is_in_layer && !frame->has_left_plan() &&
                         num_ops < type.layer_of_op.size() &&
                         type.layer_of_op[num_ops] == inner.value_or(0);
    if (is_next) return;
    if (shapes.switch_to_layer(*frame, recorder, path)) {
      is_in_layer = true;
      return;
    }
    if (inner.has_value()) {
      if (!frame->has_left_plan()) {
        leave_plan("scope " + path + " opened after " + std::to_string(num_ops) +
                   " ops; the plan expects it after " + std::to_string(type.first_op_of(*inner)));
      }
      off_plan->begin_layer(*inner);
    } else if (frame->has_left_plan() || prepared->regions_at.count(path) != 0) {
      close_region(find_fault());
    }
  }

  void end_layer() noexcept {
    try {
      shapes.end_layer(*frame, recorder, path);
    } catch (...) {
      close_region(std::current_exception());
    }
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    auto slot = std::make_unique<SlotHook>(frame, &recorder);
    const std::optional<HookPair> hooks = hooks_of_program(hooks_around);
    if (!hooks.has_value() || are_applied_to_kept_values(*hooks)) return slot;
    return program_hooks(*hooks, std::move(slot));
  }

  // See Note [Saved-tensor hooks of the program].
  bool are_applied_to_kept_values(const HookPair& hooks) const {
    return hooks.trust == HookTrust::kExact && hooks_around.has_value() &&
           hooks.pack == hooks_around->pack;
  }

  void open_region_if_planned() {
    const auto opening = shapes.find_opening(
        path, refuses() ? ShapeFollower::InnerLayers::kIgnore : ShapeFollower::InnerLayers::kOpen);
    if (!opening.has_value()) return;
    if (c10::InferenceMode::is_enabled()) {
      throw Refused("region " + path +
                    " runs in inference mode, where nothing can be recorded; use "
                    "no_grad for evaluation");
    }
    if (!at::SavedTensorDefaultHooks::is_enabled()) {
      warn_that_plan_is_not_followed();
      return;
    }
    hooks_around = hooks_of_program(std::nullopt);
    if (hooks_around.has_value() && hooks_around->trust == HookTrust::kDecides) {
      warn_that_hooks_decide();
      return;
    }
    open_region(opening->region);
    if (!opening->distance.has_value()) return;
    leave_plan("the scopes before " + path + " did not open");
    off_plan->begin_layer(*opening->distance);
  }

  // While saved-tensor hooks are disabled, no region is recorded. A record would only add memory,
  // because autograd keeps every tensor that it saves.
  void warn_that_plan_is_not_followed() {
    TORCH_WARN_ONCE(
        "rematch: region ", path,
        " runs while saved-tensor hooks are disabled (by torch.func or "
        "disable_saved_tensors_hooks), so it is not recorded and autograd keeps its tensors");
    any_region_entered = true;  // prevents a second report by finish()
  }

  void warn_that_hooks_decide() {
    TORCH_WARN_ONCE(
        "rematch: region ", path,
        " runs inside torch.utils.checkpoint, or inside saved-tensor hooks that change bits. The "
        "checkpoint or the hooks decide what is kept, so the region does not follow the plan; turn "
        "them off to follow the plan");
    any_region_entered = true;  // prevents a second report by finish()
  }

  void open_region(std::size_t region) {
    frame = std::make_shared<Frame>(prepared, region, verify);
    if (prepared->moves_values) frame->follow(before);
    region_depth = path_lengths.size();
    is_in_layer = true;
    exceptions_at_open = std::uncaught_exceptions();
    recorder.open(&frame->record(), &frame->region_name());
    observed.emplace(frame->region_name(), Phase::kForward);
    mode_guard.emplace(this);
    saved_tensor_guard.emplace(this);
    ++num_open_regions;
    any_region_entered = true;
  }

  void close_region(std::exception_ptr fault) noexcept {
    observed.reset();
    saved_tensor_guard.reset();
    mode_guard.reset();
    --num_open_regions;
    recorder.close();
    shapes.close(*frame);
    count_pass();
    if (hooks_around.has_value() && fault == nullptr) fault = pack_kept_values();
    if (fault != nullptr) pending_fault = fault;
    frame->close(std::move(fault));
    if (write_watch.has_value()) write_watch->add(frame);
    if (prepared->moves_values) {
      if (const auto left = before.lock()) left->leave_device();
      before = frame;
    }
    frame.reset();
  }

  // Does nothing if the program has removed its hooks inside the region.
  std::exception_ptr pack_kept_values() noexcept {
    try {
      const std::optional<HookPair> hooks = hooks_of_program(hooks_around);
      if (hooks.has_value() && are_applied_to_kept_values(*hooks)) {
        frame->pack_kept_values(*hooks);
      }
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  void count_pass() noexcept {
    if (shapes.is_empty_pass(*frame)) return;
    const std::size_t type = frame->type().number;
    prepared->departures.add_pass(type);
    if (!frame->has_left_plan()) return;
    const Departures pass = off_plan->summary(frame->region_name(), frame->record());
    off_plan.reset();
    const bool is_first = prepared->departures.add(type, pass);
    if (is_first && prepared->options.on_mismatch == OnMismatch::kFollow) {
      TORCH_WARN(
          "rematch: region ", frame->region_name(), " left its plan (", pass.first_difference,
          "). Loss and gradients are as in the step without the plan; memory and recomputation "
          "differ from the prediction. Make the plan for this step as well");
    }
  }

  // Returns the error of the region that is about to close, or null.
  std::exception_ptr find_fault() {
    const bool unwinding = std::uncaught_exceptions() > exceptions_at_open;
    if (unwinding) return nullptr;
    try {
      return find_fault_of_ended_region();
    } catch (...) {
      return std::current_exception();
    }
  }

  std::exception_ptr find_fault_of_ended_region() {
    if (shapes.is_empty_pass(*frame)) return nullptr;
    const std::size_t num_ops = frame->record().num_program_ops();
    const bool is_early = !frame->has_left_plan() && num_ops < frame->type().ops.size();
    if (is_early && !shapes.switch_to_ended(*frame, recorder)) {
      std::string difference = describe_early_end(num_ops);
      if (refuses()) {
        return std::make_exception_ptr(
            StreamMismatch("region " + frame->region_name() + " " + difference +
                           ". Was the plan made for another model or other dimensions?"));
      }
      leave_plan(std::move(difference));
    }
    if (shapes.is_undecided()) shapes.settle(*frame, recorder);
    for (const RecordedWait& wait : frame->record().waits) {
      if (wait.wait.has_value()) continue;
      return std::make_exception_ptr(
          Refused("region " + frame->region_name() + ": " +
                  frame->record().ops[static_cast<std::size_t>(wait.start)].facts->name +
                  " is not waited for before the region ends, so recompute cannot know when its "
                  "result is ready; call wait_tensor inside the region, or end the region "
                  "after it"));
    }
    return nullptr;
  }

  const std::vector<const PlannedOp*>& planned_ops() const { return frame->type().planned_ops; }

  std::string describe_difference(std::size_t index, const c10::OperatorHandle& op,
                                  const torch::jit::Stack& stack) const {
    const std::string expected =
        index < planned_ops().size() ? planned_ops()[index]->name : "its end";
    return "op " + std::to_string(index) + ": the plan expects " + expected + ", the model ran " +
           facts_of(op).name + describe_arguments(op, stack);
  }

  std::string describe_early_end(std::size_t num_ops) const {
    return "ended after " + std::to_string(num_ops) + " of " +
           std::to_string(planned_ops().size()) + " planned ops; the next planned op is " +
           planned_ops()[num_ops]->name;
  }

  // Rejects the op that ran last if earlier ops of the region ran on another stream of the same
  // device.
  void refuse_second_stream(const OpFacts& facts) const {
    const std::vector<c10::Stream>& streams = frame->record().streams;
    for (std::size_t i = 0; i + 1 < streams.size(); ++i) {
      if (streams[i].device() != streams.back().device()) continue;
      throw Refused("region " + frame->region_name() + ": " + facts.name + " ran on " +
                    describe_stream(streams.back()) + ", but earlier ops of the region ran on " +
                    describe_stream(streams[i]) +
                    "; recompute runs a region on one stream. Switch streams outside the region");
    }
  }

  void throw_pending_fault() {
    if (pending_fault != nullptr) std::rethrow_exception(std::exchange(pending_fault, nullptr));
  }

  const std::shared_ptr<const Checkpoint::Prepared> prepared;
  const Verify verify;
  ScopeListener* outer_listener = nullptr;
  std::string path;
  std::vector<std::size_t> path_lengths;
  ShapeFollower shapes{*prepared};
  bool any_region_entered = false;
  bool any_scope_without_grad = false;
  std::exception_ptr pending_fault;

  std::weak_ptr<Frame> before;  // the region that closed last
  std::optional<WriteWatch> write_watch;
  std::optional<OpModeGuard> watch_guard;

  // State of the open region.
  Recorder recorder;
  std::shared_ptr<Frame> frame;
  std::size_t region_depth = 0;
  std::optional<HookPair> hooks_around;  // the program's hooks when the region opened
  bool is_in_layer = false;  // whether the innermost scope at region_depth is a layer of the region
  std::optional<OffPlanPass> off_plan;
  int exceptions_at_open = 0;
  std::optional<ObservedRegion> observed;
  std::optional<OpModeGuard> mode_guard;
  std::optional<SavedTensorGuard> saved_tensor_guard;
};

bool is_region_open() { return num_open_regions > 0; }

Recording::Recording(const Checkpoint& checkpoint, Verify verify)
    : state_(std::make_unique<State>(checkpoint.prepared(), verify)) {}
Recording::~Recording() = default;

RegionsRun Recording::finish() {
  if (state_ == nullptr) return RegionsRun::kNone;
  const std::unique_ptr<State> state = std::move(state_);
  state->throw_pending_fault();
  if (state->any_region_entered) return RegionsRun::kSome;
  return state->any_scope_without_grad ? RegionsRun::kNoneWithoutGrad : RegionsRun::kNone;
}

}  // namespace rematch
