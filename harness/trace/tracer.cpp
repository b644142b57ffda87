#include "harness/trace/tracer.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/engine/program_hooks.h"
#include "harness/engine/record/generator_state.h"
#include "harness/engine/record/record.h"
#include "harness/engine/record/saved_version.h"
#include "harness/engine/record/wrapped_tensor.h"
#include "harness/measure/gradient_hooks.h"
#include "harness/measure/memory.h"
#include "harness/trace/backward_as_with_data.h"
#include "harness/trace/backward_holds.h"
#include "harness/trace/program_holds.h"
#include "harness/trace/trace_from_record.h"
#include "models/scope/scope.h"

namespace rematch {

namespace {

// Returns zeros if the allocators do not count.
BackwardBytes bytes_tagged_in_backward(c10::Device device) {
  if (!counting_allocators_installed()) return {};
  const MemorySample now = device.is_meta() ? current_meta_memory() : current_cpu_memory();
  const Bytes gradients = now.at(MemoryTag::kGradient);
  return {now.at(MemoryTag::kBackward) + gradients, gradients};
}

}  // namespace

// Observes one step through the thread's op mode, saved-tensor hooks and scope listener.
class TraceSession::Tracer final : public OpMode, public SavedTensorProvider, public ScopeListener {
 public:
  Tracer() : outer_listener_(scope_listener()) {
    recorder_.set_use(RecordUse::kTrace);
    recorder_.open(&observations_.record, &region_);
    scope_listener() = this;
  }
  ~Tracer() override {
    *self_ = nullptr;  // hooks in the graph may outlive the tracer
    if (scope_listener() == this) scope_listener() = outer_listener_;
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // `device` is the device of the loss. It is needed because some ops of backward have no tensor
  // argument.
  void end_forward(c10::Device device) {
    device_ = device;
    holds_.look(num_ops());
    note_replay_only_ops();
    recorder_.close();
    for (const PackId pack : observations_.packs.ids()) note_last_version(pack);
    gradients_before_ = bytes_alive().gradients;
    gradient_hooks_.emplace(parameters_, [this](const at::Tensor& it) { note_gradient(it); });
    in_backward_ = true;
  }

  void run(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack,
           std::size_t depth) override {
    if (in_backward_) {
      run_in_backward(op, keys, stack, depth);
      return;
    }
    const OpFacts& facts = facts_of(op);
    const bool draws = draws_random(facts, *stack);
    const std::size_t base = stack->size() - facts.arguments.size();
    for (std::size_t i = base; i < stack->size(); ++i) note_tensors((*stack)[i]);
    const bool is_collective = facts.collective == CollectivePart::kStart;
    std::string group = is_collective ? group_of_collective(*stack) : "";
    const std::vector<HashedArgument> hashed = hash_unmarked(facts, *stack);
    note_replay_only_ops();
    recorder_.run(facts, keys, stack, depth, Keep::kNothing);
    for (const HashedArgument& each : hashed) {
      if (hash_of(each.tensor) != each.hash) mark_silent_writer(facts, each.position);
    }
    for (std::size_t i = stack->size() - facts.num_returns; i < stack->size(); ++i) {
      note_tensors((*stack)[i]);
    }
    // The recorder may have added replay-only ops before and after this op.
    const std::size_t num_after = num_replay_only_at_end();
    note_replay_only_ops(/*num_left=*/1 + num_after);
    observations_.ops.push_back(
        {.scope = innermost_scope(), .draws_random = draws, .group = std::move(group)});
    note_kept_by_recorder(observations_.ops.end_id() - 1);
    note_replay_only_ops();
    holds_.look(num_ops() - 1);
  }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override;

  // Returns nullopt for a tensor that the trace does not list.
  std::optional<PackId> pack(const at::Tensor& tensor) {
    // a trace does not list tensors saved for a double backward
    if (in_backward_) return std::nullopt;
    note_tensor(tensor);
    const std::int32_t value = recorder_.saved_value_of(tensor);
    const Record& record = observations_.record;
    const std::int32_t storage = record.values[value].storage;
    observations_.packs.push_back(
        {.value = ValueId(value), .version = record.storages[storage].version, .at_op = num_ops()});
    saved_versions_.emplace_back(tensor);
    holds_.note_own_reference(StorageId(storage));
    return observations_.packs.end_id() - 1;
  }

  void note_demand(PackId pack) {
    if (!in_backward_) return;
    const BackwardBytes made = bytes_made();
    observations_.backward.push_back({.kind = BackwardEvent::Kind::kDemand,
                                      .pack = pack,
                                      .other_bytes = made.all,
                                      .gradient_bytes = made.gradients,
                                      .scope = node_scopes_.scope_at_work()});
    handed_out_.push_back(pack);
  }

  void note_release(PackId pack) {
    std::erase(handed_out_, pack);
    holds_.drop_own_reference(storage_of(pack));
    if (in_backward_) {
      observations_.backward.push_back({.kind = BackwardEvent::Kind::kRelease, .pack = pack});
    } else {
      observations_.packs[pack].dropped_at = num_ops();
    }
  }

  void enter(std::string_view name, std::optional<int> index) override {
    note_replay_only_ops();
    std::string path;
    if (!open_paths_.empty()) path.append(open_paths_.back()).append(1, '.');
    path.append(name);
    if (index) path.append(1, '.').append(std::to_string(*index));
    open_paths_.push_back(path);
    // Ignores scopes that open while grad mode is off, because the engine makes no region for them.
    is_recorded_.push_back(at::GradMode::is_enabled());
    if (is_recorded_.back()) record_opening(std::move(path), index);
    if (outer_listener_ != nullptr) outer_listener_->enter(name, index);
  }

  void leave() noexcept override {
    note_replay_only_ops();
    if (is_recorded_.back()) record_closing();
    is_recorded_.pop_back();
    open_paths_.pop_back();
    if (outer_listener_ != nullptr) outer_listener_->leave();
  }

  Observations take() {
    observations_.gradient_bytes = bytes_made().gradients;
    observations_.freed_at = holds_.freed_at(observations_.record.storages.size());
    observations_.values.resize(observations_.record.values.size());
    return std::move(observations_);
  }

 private:
  void refuse_checkpoint_around_scope() const;

  void record_opening(std::string path, std::optional<int> index) {
    const ScopeId scope = observations_.scopes.end_id();
    observations_.scopes.push_back(
        {.path = path, .parent = innermost_scope(), .first_op = num_ops(), .end_op = num_ops()});
    if (index) {
      observations_.blocks.push_back(
          {.scope = scope, .list = path.substr(0, path.rfind('.')), .index = *index});
    }
    open_scopes_.push_back(scope);
    node_scopes_.enter(scope);
  }

  void record_closing() noexcept {
    observations_.scopes[open_scopes_.back()].end_op = num_ops();
    open_scopes_.pop_back();
    if (!open_scopes_.empty()) node_scopes_.enter(open_scopes_.back());
  }

  OpId num_ops() const { return OpId(observations_.record.ops.size()); }

  // Excludes gradients that existed before backward. The difference may be negative, because an
  // optimizer that runs inside backward frees gradients at once.
  BackwardBytes bytes_made() {
    BackwardBytes made = bytes_alive();
    made.gradients = std::max(Bytes{}, made.gradients - gradients_before_);
    return made;
  }

  bool has_tags() const { return device_.is_cpu() || device_.is_meta(); }
  BackwardBytes bytes_alive() {
    return has_tags() ? bytes_tagged_in_backward(device_) : backward_holds_.bytes();
  }

  // Called after autograd has stored a parameter's gradient. Counts the gradient's memory.
  void note_gradient(const at::Tensor& parameter) {
    if (!parameter.grad().defined()) return;
    const at::Tensor gradient = tensor_with_data(parameter.grad());
    if (!gradient.has_storage()) return;
    if (!has_tags()) return backward_holds_.note_gradient(gradient.storage());
    retag_storage(*gradient.storage().unsafeGetStorageImpl(), MemoryTag::kBackward,
                  MemoryTag::kGradient);
  }

  std::optional<ScopeId> innermost_scope() const {
    return open_scopes_.empty() ? std::nullopt : std::optional(open_scopes_.back());
  }

  const RecordedValue& value_of(PackId pack) const {
    return observations_.record.values[observations_.packs[pack].value.index];
  }

  void run_in_backward(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                       torch::jit::Stack* stack, std::size_t depth) {
    const OpFacts& facts = facts_of(op);
    BackwardEvent event{.kind = BackwardEvent::Kind::kOp, .op = facts.name};
    const bool is_collective = facts.collective == CollectivePart::kStart;
    if (is_collective) {
      event.group = group_of_collective(*stack);
      event.collective_bytes = bytes_of_tensors((*stack)[stack->size() - facts.arguments.size()]);
    }
    call_next(op, keys, stack, depth);
    if (!has_tags()) backward_holds_.watch_results(op, *stack);
    if (is_collective) {
      event.collective_bytes = std::max(event.collective_bytes, bytes_of_tensors(stack->back()));
    }
    note_put_away();
    const BackwardBytes made = bytes_made();
    event.other_bytes = made.all;
    event.gradient_bytes = made.gradients;
    event.scope = node_scopes_.scope_at_work();
    observations_.backward.push_back(std::move(event));
  }

  // Sets the version that backward reads. This is the storage's last version, unless the version
  // counter shows that the saved tensor was overwritten. In that case, keeps the saved version.
  void note_last_version(PackId pack) {
    std::int32_t& version = observations_.packs[pack].version;
    const RecordedStorage& storage = observations_.record.storages[storage_of(pack).index];
    if (storage.outside) {
      version = version_for_backward(storage, version);
    } else if (!saved_versions_[pack].is_stale()) {
      version = storage.version;
    }
  }

  StorageId storage_of(PackId pack) const { return StorageId(value_of(pack).storage); }

  // Records which unpacked tensors the backward formulas have dropped. A formula may drop a tensor
  // before its last op.
  void note_put_away() {
    std::erase_if(handed_out_, [this](PackId pack) {
      if (!value_of(pack).op.has_value()) return true;
      if (holds_.is_held(storage_of(pack))) return false;
      observations_.backward.push_back({.kind = BackwardEvent::Kind::kPutAway, .pack = pack});
      return true;
    });
  }

  // Assigns new replay-only ops of the record to the scope that is open. Call this before a scope
  // opens or closes.
  void note_replay_only_ops(std::size_t num_left = 0) {
    while (observations_.ops.size() + num_left < observations_.record.ops.size()) {
      observations_.ops.push_back({.scope = innermost_scope()});
      note_kept_by_recorder(OpId(observations_.ops.size() - 1));
    }
  }

  std::size_t num_replay_only_at_end() const {
    const std::vector<RecordedOp>& ops = observations_.record.ops;
    const auto last = std::find_if(ops.rbegin(), ops.rend(), [](const RecordedOp& op) {
      return !is_replay_only(op.facts->name);
    });
    return static_cast<std::size_t>(last - ops.rbegin());
  }

  // Counts the recorder's own references, so that they do not count as references of the program.
  void note_kept_by_recorder(OpId id) {
    const Record& record = observations_.record;
    const RecordedOp& op = record.ops[static_cast<std::size_t>(id.index)];
    if (op.facts->mutates) {
      std::erase_if(kept_by_recorder_, [&](std::int32_t value) {
        if (record.shares_kept(value)) return false;
        holds_.drop_own_reference(StorageId(record.values[value].storage));
        return true;
      });
    }
    const auto note = [&](std::int32_t value) {
      if (!record.shares_kept(value)) return;
      if (record.storages[record.values[value].storage].outside) return;
      if (kept_by_recorder_.insert(value).second) {
        holds_.note_own_reference(StorageId(record.values[value].storage));
      }
    };
    for (std::size_t i = 0; i < op.num_uses; ++i) note(record.uses[op.first_use + i].value);
    for (std::size_t i = 0; i < op.num_outputs; ++i) {
      const OptionalIndex output = record.outputs[op.first_output + i];
      if (output.has_value()) note(*output);
    }
  }

  struct HashedArgument {
    std::size_t position;
    at::Tensor tensor;
    std::uint64_t hash;
  };

  // Hashes arguments that the schema does not mark as mutable, to detect hidden writes. Skips
  // PyTorch's ops and arguments that are already known to be written.
  static std::vector<HashedArgument> hash_unmarked(const OpFacts& facts,
                                                   const torch::jit::Stack& stack) {
    std::vector<HashedArgument> hashed;
    const bool is_of_torch = facts.name.starts_with("aten::") ||
                             facts.name.starts_with("rematch::") ||
                             facts.collective != CollectivePart::kNothing;
    if (is_of_torch) return hashed;
    const std::size_t base = stack.size() - facts.arguments.size();
    for (std::size_t position = 0; position < facts.arguments.size(); ++position) {
      const c10::IValue& argument = stack[base + position];
      const bool is_tensor = argument.isTensor() && argument.toTensor().defined();
      if (!is_tensor || writes_to(facts, position)) continue;
      hashed.push_back({position, argument.toTensor(), hash_of(argument.toTensor())});
    }
    return hashed;
  }

  void note_tensors(const c10::IValue& argument) {
    if (argument.isTensor()) {
      note_tensor(argument.toTensor());
    } else if (argument.isTensorList()) {
      const auto list = argument.toTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) note_tensor(list.get(i));
    } else if (argument.isOptionalTensorList()) {
      const auto list = argument.toOptionalTensorList();
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::optional<at::Tensor> tensor = list.get(i);
        if (tensor.has_value()) note_tensor(*tensor);
      }
    }
  }

  void note_tensor(const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    const std::int32_t value = recorder_.value_of(tensor);
    const ValueId id(value);
    if (!observations_.values.contains(id)) {
      observations_.values.resize(static_cast<std::size_t>(value) + 1);
    }
    ObservedValue& seen = observations_.values[id];
    if (!seen.dtype.empty()) return;
    // For a DTensor, this is the local tensor of this rank.
    const at::Tensor with_data = tensor_with_data(tensor);
    seen.shape = with_data.sizes().vec();
    seen.dtype = dtype_name(tensor.scalar_type());
    seen.storage_bytes = recorder_.storage_bytes(value, tensor);
    seen.is_parameter = tensor.requires_grad() && tensor.is_leaf();
    const RecordedValue& recorded = observations_.record.values[value];
    if (seen.is_parameter) {
      parameters_.push_back(tensor);
    } else if (recorded.op.has_value() && with_data.has_storage()) {
      holds_.watch(StorageId(recorded.storage), with_data.storage());
    }
  }

  const std::shared_ptr<Tracer*> self_ = std::make_shared<Tracer*>(this);
  Observations observations_;
  Recorder recorder_;
  ProgramHolds holds_;
  std::set<std::int32_t> kept_by_recorder_;  // a std::set suffices, because it contains few values
  NodeScopes node_scopes_;
  IdTable<PackId, SavedVersion> saved_versions_;
  std::vector<PackId> handed_out_;  // unpacked tensors that backward formulas still hold
  std::vector<at::Tensor> parameters_;
  BackwardHolds backward_holds_;
  Bytes gradients_before_;
  std::optional<GradientHooks> gradient_hooks_;
  const std::string region_ = "(trace)";
  ScopeListener* outer_listener_;
  std::vector<std::string> open_paths_;
  std::vector<bool> is_recorded_;     // one entry for each of open_paths_
  std::vector<ScopeId> open_scopes_;  // open scopes that were opened with grad mode enabled
  bool in_backward_ = false;
  c10::Device device_{c10::kCPU};
};

namespace {

using Tracer = TraceSession::Tracer;

// Saves a tensor as autograd would without hooks. Tells the tracer when autograd unpacks the
// tensor, and when autograd frees it.
class ObservedSave final : public torch::autograd::SavedVariableHooks {
 public:
  explicit ObservedSave(std::shared_ptr<Tracer*> tracer) : tracer_(std::move(tracer)) {}
  ~ObservedSave() override {
    if (*tracer_ != nullptr && pack_) (*tracer_)->note_release(*pack_);
  }
  void call_pack_hook(const at::Tensor& tensor) override {
    pack_ = (*tracer_)->pack(tensor);
    saved_ = without_graph(tensor);
  }
  at::Tensor call_unpack_hook() override {
    if (*tracer_ != nullptr && pack_) (*tracer_)->note_demand(*pack_);
    // Returns a new tensor object, so that the tracer can detect when the formula drops it.
    return without_graph(saved_);
  }

 private:
  std::shared_ptr<Tracer*> tracer_;  // points to null once the tracer is destroyed
  std::optional<PackId> pack_;
  at::Tensor saved_;
};

}  // namespace

std::unique_ptr<torch::autograd::SavedVariableHooks> TraceSession::Tracer::make() {
  if (!open_scopes_.empty()) refuse_checkpoint_around_scope();
  return std::make_unique<ObservedSave>(self_);
}

// Rejects torch.utils.checkpoint around a scope. Other saved-tensor hooks of the program are
// ignored while a step is traced.
void TraceSession::Tracer::refuse_checkpoint_around_scope() const {
  const std::optional<HookPair> hooks = hooks_of_program(std::nullopt);
  if (!hooks.has_value() || hooks->id >= 0) return;
  throw Refused("scope " + observations_.scopes[open_scopes_.back()].path +
                " runs inside torch.utils.checkpoint, but here the plan decides what is kept; turn "
                "it off for this model");
}

struct TraceSession::Step {
  Tracer tracer;
  OpModeGuard watch{&tracer};
  BackwardThreadsGuard watch_backward{&tracer};
  BackwardAsWithData as_with_data;  // replaces ops before the tracer records them
  OpModeGuard accumulate{&as_with_data};
  std::optional<SavedTensorGuard> save{std::in_place, &tracer};  // set only during forward
  std::optional<MemoryTagGuard> tag{std::in_place, MemoryTag::kForward};
};

TraceSession::TraceSession() : step_(std::make_unique<Step>()) {}
TraceSession::~TraceSession() = default;

void TraceSession::end_forward(c10::Device device) {
  if (step_ == nullptr) throw std::logic_error("this trace is finished");
  if (!step_->save) throw std::logic_error("the forward pass of this trace has ended");
  step_->tag.reset();
  step_->save.reset();
  step_->tracer.end_forward(device);
  step_->tag.emplace(MemoryTag::kBackward);
}

Trace TraceSession::finish() {
  if (step_ == nullptr) throw std::logic_error("this trace is finished");
  if (step_->save) throw std::logic_error("the forward pass of this trace has not ended");
  Observations observations = step_->tracer.take();
  step_.reset();
  return trace_from_observations(std::move(observations));
}

Trace record_trace(const std::function<at::Tensor()>& loss) {
  TraceSession session;
  {
    const at::Tensor value = loss();
    session.end_forward(value.device());
    value.backward();
  }
  return session.finish();
}

}  // namespace rematch
