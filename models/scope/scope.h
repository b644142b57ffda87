// Scopes name parts of a forward pass. A model opens scopes as RAII objects. The engine or a tracer
// receives the names through a listener on the thread. Without a listener a scope costs one
// thread-local read.
#pragma once

#include <optional>
#include <string_view>

namespace rematch {

// Is notified when scopes open and close on the thread on which it is installed. `blocks.3` opens
// with name "blocks" and index 3. Scopes other than blocks have no index.
class ScopeListener {
 public:
  virtual ~ScopeListener() = default;
  virtual void enter(std::string_view name, std::optional<int> index) = 0;
  // Must not throw, because it is also called while an exception unwinds the model.
  virtual void leave() noexcept = 0;
};

// Returns the thread's listener, or null. A Scope always notifies the listener that was installed
// when the scope opened.
inline ScopeListener*& scope_listener() {
  thread_local ScopeListener* listener = nullptr;
  return listener;
}

// A scope that is open while this object lives. For example, with `Scope block("blocks", 3); Scope
// part("attention");` ops get the scope name `blocks.3.attention`.
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
