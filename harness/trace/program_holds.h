// Detects when the program frees the results of its ops, on any device. A storage counts as held if
// it has references besides those of the tracer and its recorder.
#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "policies/trace/trace.h"

namespace rematch {

class ProgramHolds {
 public:
  // Starts to watch a storage of the program, given its id. Repeated calls are cheap.
  void watch(StorageId storage, const c10::Storage& tensors_storage);

  // Count the references of saved tensors and of the recorder, which do not belong to the program.
  void note_own_reference(StorageId storage) { ++entry(storage).own_references; }
  void drop_own_reference(StorageId storage) { --entry(storage).own_references; }

  // Call this after op `op` of forward has run. If the program no longer holds a storage, records
  // `op` as the op that freed it.
  void look(OpId op);

  // Returns whether the program or a backward formula holds the storage. False for a storage that
  // is not watched.
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

// Finds the scope that was open in forward when the running autograd node was created, by the
// node's sequence number.
class NodeScopes {
 public:
  // Assigns all nodes that are created from now on to this scope, until the next call.
  void enter(ScopeId scope);

  // Call this in backward, on the thread that runs the node. Nodes that accumulate gradients have
  // no number, so they get the scope of the node that ran before them.
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
