// Finds out when the program frees the results of its ops. A storage is held if its reference count
// exceeds the references that the tracer holds in autograd's place. Independent of the device.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

class ProgramHolds {
 public:
  // Call this after a tensor on this storage has been made. `storage` is the storage's id. Repeated
  // calls are cheap.
  void watch(StorageId storage, const c10::Storage& tensors_storage);

  // note_own_reference() and drop_own_reference() count references that do not belong to the
  // program: references of saved tensors, and references that the recorder keeps.
  void note_own_reference(StorageId storage) { ++entry(storage).own_references; }
  void drop_own_reference(StorageId storage) { --entry(storage).own_references; }

  // Call this after op `op` of forward has run. A storage that nobody else holds counts as freed by
  // this op.
  void look(OpId op);

  // Returns whether something other than the tracer holds the storage: the program, which made it
  // in forward, or code that got it from autograd. False for a storage that was never watched.
  bool is_held(StorageId storage);

  // Returns TracedStorage::freed_at of every storage.
  IdTable<StorageId, std::optional<OpId>> freed_at(std::size_t num_storages) const;

 private:
  struct Entry {
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage;
    std::uint32_t own_references = 0;
    std::optional<OpId> freed_at;
  };

  Entry& entry(StorageId storage);

  IdTable<StorageId, Entry> entries_;
  std::vector<StorageId> held_;  // storages that the program held at the last look()
};

// Finds the scope of forward in which the running autograd node was made. Nodes are numbered in the
// order in which forward makes them.
class NodeScopes {
 public:
  // Nodes made after this call belong to this scope. Nodes made outside all scopes belong to the
  // last scope.
  void enter(ScopeId scope);

  // Call this in backward, on the thread that runs the node. Accumulators of gradients have no such
  // number. An accumulator belongs to the node that made its gradient.
  std::optional<ScopeId> scope_at_work();

 private:
  struct Interval {
    std::uint64_t first_sequence = 0;
    ScopeId scope;
  };

  std::vector<Interval> intervals_;
  std::optional<ScopeId> last_;
};

}  // namespace rematch
