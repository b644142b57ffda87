#include "harness/engine/record/opaque_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "harness/engine/interception.h"
#include "harness/engine/record/record.h"
#include "harness/engine/recording.h"

namespace rematch {
namespace {

thread_local std::vector<at::Tensor> results_of_call;

std::vector<at::Tensor> take_results(const std::string& /*name*/) {
  return std::exchange(results_of_call, {});
}

// The op rematch::opaque. Leaked, because threads may still record while the process ends.
const c10::OperatorHandle& opaque_op() {
  static const c10::OperatorHandle& op = [&]() -> const c10::OperatorHandle& {
    static auto* library =
        new torch::Library(torch::Library::FRAGMENT, "rematch", std::nullopt, __FILE__, __LINE__);
    library->def("opaque(str name) -> Tensor[]");
    library->impl("opaque",
                  torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd, &take_results));
    mark_unrepeatable("rematch::opaque");
    return find_facts("rematch::opaque")->op;
  }();
  return op;
}

thread_local OpaqueCall::Timer* timer_of_thread = nullptr;

// Saves a tensor as autograd would without hooks, and also appends it to a list.
class NotedSave final : public torch::autograd::SavedVariableHooks {
 public:
  explicit NotedSave(std::vector<at::Tensor>* saved) : noted_(saved) {}
  void call_pack_hook(const at::Tensor& tensor) override {
    saved_ = without_graph(tensor);
    noted_->push_back(saved_);
  }
  at::Tensor call_unpack_hook() override { return saved_; }

 private:
  std::vector<at::Tensor>* noted_;  // used by the pack hook only
  at::Tensor saved_;
};

}  // namespace

// In a trace, collects the tensors that autograd saves, to count their bytes. A record for replay
// does not need this, because autograd keeps the tensors.
struct OpaqueCall::State final : SavedTensorProvider {
  explicit State(Recorder* open) : recorder(open) {
    unseen.emplace(c10::DispatchKey::Fake);
    saves.emplace(recorder->is_replayed() ? nullptr : this);
  }
  explicit State(Timer* timing) : timer(timing) { unseen.emplace(c10::DispatchKey::Fake); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make() override {
    return std::make_unique<NotedSave>(&saved);
  }

  Recorder* recorder = nullptr;
  Timer* timer = nullptr;  // set only if `recorder` is null
  std::vector<at::Tensor> saved;
  std::optional<c10::impl::ExcludeDispatchKeyGuard> unseen;
  std::optional<SavedTensorGuard> saves;
};

void OpaqueCall::define_op() { opaque_op(); }

OpaqueCall::OpaqueCall(std::unique_ptr<State> state) : state_(std::move(state)) {}

OpaqueCall::~OpaqueCall() = default;

OpaqueCall::TimerGuard::TimerGuard(Timer* timer)
    : previous_(std::exchange(timer_of_thread, (define_op(), timer))) {}
OpaqueCall::TimerGuard::~TimerGuard() { timer_of_thread = previous_; }

std::unique_ptr<OpaqueCall> OpaqueCall::begin(const std::vector<at::Tensor>& overwritten) {
  Recorder* const recorder = open_recorder();
  if (is_in_kernel()) return nullptr;
  if (recorder == nullptr) {
    if (timer_of_thread == nullptr) return nullptr;
    timer_of_thread->begin_opaque();
    return std::unique_ptr<OpaqueCall>(new OpaqueCall(std::make_unique<State>(timer_of_thread)));
  }
  for (const at::Tensor& each : overwritten) recorder->note_write_ahead(each);
  return std::unique_ptr<OpaqueCall>(new OpaqueCall(std::make_unique<State>(recorder)));
}

void OpaqueCall::end(const std::string& name, const std::vector<at::Tensor>& arguments,
                     const std::vector<at::Tensor>& results) {
  const std::unique_ptr<State> state = std::move(state_);
  state->saves.reset();
  state->unseen.reset();
  if (state->timer != nullptr) return state->timer->end_opaque(find_facts("rematch::opaque")->name);
  std::vector<at::Tensor> all = results;
  all.insert(all.end(), state->saved.begin(), state->saved.end());
  Recorder::UnseenResults made = state->recorder->unseen_results(all);
  const auto base_of = [&](const at::Tensor& view) {
    const auto shares = [&](const at::Tensor& each) {
      return each.defined() && storage_address(each) == storage_address(view) &&
             each.scalar_type() == view.scalar_type() && !each.is_same(view);
    };
    const auto base = std::find_if(arguments.begin(), arguments.end(), shares);
    if (base != arguments.end()) return *base;
    const auto made_base = std::find_if(made.fresh.begin(), made.fresh.end(), shares);
    return made_base != made.fresh.end() ? *made_base : at::Tensor();
  };
  // Autograd holds every tensor that the call saved. A trace counts such a tensor as held, even if
  // the trace already contains its storage.
  const auto is_held_in_trace = [&](const at::Tensor& each) {
    const auto is_it = [&](const at::Tensor& saved) { return saved.is_same(each); };
    return !state->recorder->is_replayed() &&
           (std::any_of(state->saved.begin(), state->saved.end(), is_it) ||
            !base_of(each).defined());
  };
  const auto held =
      std::stable_partition(made.views.begin(), made.views.end(), std::not_fn(is_held_in_trace));
  std::vector<at::Tensor> outputs = made.fresh;
  outputs.insert(outputs.end(), held, made.views.end());
  made.views.erase(held, made.views.end());
  results_of_call = std::move(outputs);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  torch::jit::Stack stack{name};
  opaque_op().callBoxed(&stack);
  for (const at::Tensor& view : made.views) {
    const at::Tensor base = base_of(view);
    if (!base.defined()) {
      throw Refused("opaque call " + name + " returns " + describe_tensor(view) +
                    ", a view of a tensor that is neither an argument of the call nor another "
                    "result; return a copy, or pass the tensor as an argument");
    }
    state->recorder->append_view(base, view);
  }
}

}  // namespace rematch
