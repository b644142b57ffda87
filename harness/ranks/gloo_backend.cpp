#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <thread>
#include <utility>

#include "harness/ranks/backends.h"
#include "harness/ranks/noted_backend.h"
#include "harness/ranks/place.h"

namespace rematch {
namespace {

class NotedGloo final : public NotedBackend<c10d::ProcessGroupGloo> {
 public:
  NotedGloo(const GroupPlace& place, GlooKind kind, c10::intrusive_ptr<Options> options)
      : NotedBackend(place.notes, place.store, place.rank, place.size, std::move(options)),
        group_(place.name),
        kind_(kind) {}

 private:
  StartedWork started(const char* collective, StartedWork work) override {
    if (kind_ == GlooKind::kAsynchronous) return work;
    try {
      work->wait();
    } catch (const std::exception& error) {
      notes().lost_others();
      throw RanksError(
          std::string(collective) + " of group '" + group_ + "' failed on the group's rank " +
          std::to_string(getRank()) + " of " + std::to_string(getSize()) +
          ": another rank has ended, hangs, or runs a different collective (" + error.what() + ")");
    }
    // Gloo's thread still holds the tensors for a short time after the collective is complete.
    while (work.use_count() > 1) std::this_thread::yield();
    return c10::make_intrusive<DoneWork>();
  }

  std::string group_;
  GlooKind kind_;
};

bool is_loopback(const std::string& address) {
  return address == "localhost" || address.starts_with("127.");
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const GroupPlace& place, GlooKind kind) {
  using Gloo = c10d::ProcessGroupGloo;
  c10::intrusive_ptr<Gloo::Options> options;
  if (is_loopback(place.address)) {
    options = Gloo::Options::create(place.timeout);
    options->devices.push_back(Gloo::createDeviceForHostname(place.address));
  } else {
    options = Gloo::Options::create_default(place.timeout);  // the default device uses the network
                                                             // interface that GLOO_SOCKET_IFNAME
                                                             // names
  }
  return c10::make_intrusive<NotedGloo>(place, kind, std::move(options));
}

}  // namespace rematch
