// Scopes name stretches of a forward pass. A model opens them as RAII objects and knows nothing
// else of this project; whoever wants the names (the engine, a tracer) listens on the thread.
// Without a listener a scope costs one thread-local read.
#pragma once

#include <optional>
#include <string_view>

namespace rematch {

// Hears scopes open and close on the thread it is installed on. `index` is the layer index of
// a block scope (`blocks.3` opens as name "blocks", index 3) and absent elsewhere.
class ScopeListener {
 public:
  virtual ~ScopeListener() = default;
  virtual void enter(std::string_view name, std::optional<int> index) = 0;
  // Also called while an exception unwinds the model; must not throw.
  virtual void leave() noexcept = 0;
};

// The thread's listener, or null. Scopes already open keep telling the listener they told first.
inline ScopeListener*& scope_listener() {
  thread_local ScopeListener* listener = nullptr;
  return listener;
}

// Opens a scope while it lives: `Scope block("blocks", 3); Scope part("attention");` names the
// ops between `blocks.3.attention`.
class Scope {
 public:
  explicit Scope(std::string_view name, std::optional<int> index = std::nullopt)
      : listener_(scope_listener()) {
    if (listener_ != nullptr) listener_->enter(name, index);
  }
  ~Scope() {
    if (listener_ != nullptr) listener_->leave();
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  ScopeListener* listener_;
};

}  // namespace rematch
