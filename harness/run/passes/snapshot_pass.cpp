#include "harness/run/passes/snapshot_pass.h"

#include "harness/profile/allocator_snapshot.h"
#include "harness/profile/recorded_step.h"
#include "policies/base/file.h"

namespace rematch {

void snapshot_pass(Training& training, std::int64_t step, const std::string& file,
                   PassPosition& position) {
  position = {"snapshot", -1, {}};
  AllocationMarker names;
  OpCallRecorder recorder({&names});
  RecordedStep listener(recorder);
  record_allocations();
  {
    const OpObserverGuard observe(&recorder);
    recorder.begin_step(0);
    training.step(step, listener);
  }
  write_file_atomically(file, take_allocator_snapshot());
}

}  // namespace rematch
