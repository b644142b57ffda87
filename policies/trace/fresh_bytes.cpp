#include "policies/trace/fresh_bytes.h"

#include <set>

namespace rematch {

Bytes fresh_bytes(const Trace& trace, const TracedOp& op) {
  if (op.is_view) return {};
  std::set<StorageId> storages;
  for (ValueId output : op.outputs) storages.insert(trace.values[output].storage);
  for (const TracedUse& input : op.inputs) storages.erase(trace.values[input.value].storage);
  Bytes bytes;
  for (StorageId storage : storages) bytes += trace.storages[storage].bytes;
  return bytes;
}

}  // namespace rematch
