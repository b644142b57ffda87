#include "harness/run/passes/copy_time_pass.h"

#include <vector>

#include "harness/measure/copy_timer.h"
#include "harness/measure/device_clock.h"
#include "reports/statistics/statistics.h"

namespace rematch {
namespace {

std::chrono::nanoseconds median_of(const std::vector<double>& nanoseconds) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(median(nanoseconds)));
}

// The timer goes when a step throws, too.
class Observed {
 public:
  Observed(const Training& training, MoveObserver& observer) : training_(training) {
    training_.observe_moves(&observer);
  }
  ~Observed() { training_.observe_moves(nullptr); }
  Observed(const Observed&) = delete;
  Observed& operator=(const Observed&) = delete;

 private:
  const Training& training_;
};

}  // namespace

void copy_time_pass(Training& training, at::Device device, std::int64_t first_step, int num_steps,
                    PassPosition& position, HostRecord& host) {
  position = {"copy time", -1, {}};
  Watching listener(position);
  CopyTimer timer;
  const Observed observed(training, timer);
  std::vector<double> hidden;
  std::vector<double> exposed;
  for (int step = 0; step < num_steps; ++step) {
    training.step(first_step + step, listener);
    synchronize(device);
    const CopyTimes times = timer.take();
    hidden.push_back(static_cast<double>(times.hidden().count()));
    exposed.push_back(static_cast<double>(times.exposed().count()));
  }
  host.hidden_time = median_of(hidden);
  host.exposed_time = median_of(exposed);
}

}  // namespace rematch
