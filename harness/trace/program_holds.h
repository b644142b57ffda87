// When the program lets go of what its ops made: by whom a storage is held is told from its
// reference count, less the references that the tracer itself holds in autograd's place. Knows no
// device.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

class ProgramHolds {
 public:
  // A tensor on this storage was made. `storage` is its id; seeing it again is cheap.
  void watch(StorageId storage, const c10::Storage& tensors_storage);

  // References that are not the program's: saved tensors, and what the recorder keeps.
  void note_own_reference(StorageId storage) { ++entry(storage).own_references; }
  void drop_own_reference(StorageId storage) { --entry(storage).own_references; }

  // Op `op` of forward has just run: what nobody else holds has been let go.
  void look(OpId op);

  // Does anybody else hold it, who made it in forward or got it from autograd. No for what was
  // never watched.
  bool is_held(StorageId storage);

  // As TracedStorage::freed_at.
  IdTable<StorageId, std::optional<OpId>> freed_at(std::size_t num_storages) const;

 private:
  struct Entry {
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> storage;
    std::uint32_t own_references = 0;
    std::optional<OpId> freed_at;
  };

  Entry& entry(StorageId storage);

  IdTable<StorageId, Entry> entries_;
  std::vector<StorageId> held_;  // by the program, as far as is known
};

// In which scope of forward the autograd node that is at work was made: nodes are numbered in the
// order forward makes them.

class NodeScopes {
 public:
  // Nodes made from now on belong to this scope. Those made outside all scopes stay with the last.
  void enter(ScopeId scope);

  // In backward, on the thread that runs the node. Accumulators of gradients have no number of
  // their own: they belong to the node that fed them.
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
