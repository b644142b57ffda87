#include "harness/ranks/ranks.h"

#include <c10/util/Logging.h>
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <csignal>
#include <exception>
#include <limits>
#include <set>
#include <utility>

#include "harness/ranks/backends.h"
#include "harness/ranks/notes.h"

namespace rematch {
namespace {

using BackendType = c10d::ProcessGroup::BackendType;
using std::chrono::milliseconds;

// The interval at which a waiting rank checks whether another rank has failed.
constexpr milliseconds kSlice{200};
constexpr std::size_t kLongestQuoted = 80;

std::string quoted(const std::string& value) {
  if (value.size() <= kLongestQuoted) return "'" + value + "'";
  return "'" + value.substr(0, kLongestQuoted) + "...' (" + std::to_string(value.size()) +
         " characters)";
}

std::string in_seconds(milliseconds time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count()) + " s";
}

std::string members_of(const RankGroup& group) {
  std::string text;
  for (const int rank : group.ranks) text.append(std::to_string(rank)).append(",");
  return text;
}

// Gloo may write to the connection of a failed rank. With SIGPIPE ignored, as in Python, such a
// write fails the collective. Otherwise SIGPIPE would end this rank, and this rank would seem to
// have failed first.
void ignore_closed_connections() { std::signal(SIGPIPE, SIG_IGN); }

// Returns the index of `rank` in the group. Throws RanksError if the group lacks `rank`, repeats a
// rank, or contains a rank outside the world.
int rank_in_group(const RankGroup& group, int rank, int world) {
  for (const int member : group.ranks) {
    if (member >= 0 && member < world) continue;
    throw RanksError("group '" + group.name + "' has rank " + std::to_string(member) +
                     ", but ranks are 0 to " + std::to_string(world - 1));
  }
  if (std::set(group.ranks.begin(), group.ranks.end()).size() != group.ranks.size()) {
    throw RanksError("group '" + group.name + "' contains a rank twice");
  }
  const auto found = std::ranges::find(group.ranks, rank);
  if (found == group.ranks.end()) {
    throw RanksError("rank " + std::to_string(rank) + " is not in group '" + group.name +
                     "': a rank may only create groups that contain it");
  }
  return static_cast<int>(found - group.ranks.begin());
}

struct DeviceBackend {
  c10::DeviceType device;
  BackendType type;
  c10::intrusive_ptr<c10d::Backend> backend;
};

}  // namespace

// Registers c10d process groups by name while this object lives. Owns the groups, because c10d's
// registry holds only weak references.
struct RegisteredGroups {
  RegisteredGroups() = default;
  ~RegisteredGroups() {
    for (auto group = all.rbegin(); group != all.rend(); ++group) {
      c10d::unregister_process_group(group->first);
    }
  }
  RegisteredGroups(const RegisteredGroups&) = delete;
  RegisteredGroups& operator=(const RegisteredGroups&) = delete;

  // The first of `backends` becomes the group's default backend.
  void add(const std::string& name, const c10::intrusive_ptr<c10d::Store>& store, int rank,
           int size, const std::vector<DeviceBackend>& backends) {
    auto group = c10::make_intrusive<c10d::ProcessGroup>(store, rank, size);
    for (const DeviceBackend& one : backends) group->setBackend(one.device, one.type, one.backend);
    group->setDefaultBackend(backends.front().type);
    group->setGroupName(name);
    c10d::register_process_group(name, group);
    all.emplace_back(name, std::move(group));
  }

  std::vector<std::pair<std::string, c10::intrusive_ptr<c10d::ProcessGroup>>> all;
};

struct Ranks::Groups {
  c10::intrusive_ptr<c10d::Store> store;
  std::shared_ptr<RankNotes> notes = std::make_shared<RankNotes>();
  RegisteredGroups registered;

  // Calls a function that uses the store. If the store is gone, throws RanksError instead of c10d's
  // exception.
  template <class Use>
  auto with_store(const RankPlace& place, Use use) {
    try {
      return use(*store);
    } catch (const c10::DistNetworkError& error) {
      notes->lost_others();
      throw RanksError("rank " + std::to_string(place.rank) + " lost the store at " +
                       place.address + ":" + std::to_string(place.port) +
                       ", served by the process that started rank 0, which has ended (" +
                       error.what_without_backtrace() + ")");
    }
  }
};

Ranks::Ranks(const RankPlace& place, const std::vector<RankGroup>& groups,
             const RanksOptions& options)
    : place_(place),
      options_(options),
      exceptions_before_(std::uncaught_exceptions()),
      groups_(std::make_unique<Groups>()) {
  ignore_closed_connections();
  c10::initLogging();  // initializes c10d's logging, which obeys the launcher's TORCH_CPP_LOG_LEVEL
  for (const RankGroup& group : groups) rank_in_group(group, place.rank, place.world);
  join();
  const bool is_asynchronous = options.transport == RanksOptions::Transport::kAsynchronousGloo;
  for (const RankGroup& group : groups) {
    GroupPlace at;
    at.name = group.name;
    at.rank = rank_in_group(group, place.rank, place.world);
    at.size = static_cast<int>(group.ranks.size());
    at.device = place.local_rank;
    at.address = place.address;
    at.timeout = options.timeout;
    at.notes = groups_->notes;
    const std::string prefix = "group/" + group.name + "/" + members_of(group);
    std::vector<DeviceBackend> backends;
    if (options.transport == RanksOptions::Transport::kNccl) {
      at.store = c10::make_intrusive<c10d::PrefixStore>(prefix + "/nccl", groups_->store);
      backends.push_back({c10::DeviceType::CUDA, BackendType::NCCL, make_nccl_backend(at)});
    }
    at.store = c10::make_intrusive<c10d::PrefixStore>(prefix, groups_->store);
    backends.push_back(
        {c10::DeviceType::CPU, BackendType::GLOO,
         make_gloo_backend(at, is_asynchronous ? GlooKind::kAsynchronous : GlooKind::kQuiet)});
    groups_->registered.add(group.name, at.store, at.rank, at.size, backends);
  }
}

Ranks::~Ranks() {
  try {
    if (std::uncaught_exceptions() > exceptions_before_) {
      groups_->notes->failed();
      groups_->store->set("failed/" + std::to_string(place_.rank), std::string("1"));
    } else {
      barrier("end");
    }
  } catch (const std::exception&) {
    // other ranks have failed, and they report the failure themselves
  }
}

void Ranks::join() {
  c10d::TCPStoreOptions options;
  options.port = place_.port;
  options.isServer = false;
  options.waitWorkers = false;
  options.timeout = options_.timeout;
  try {
    groups_->store = c10::make_intrusive<c10d::PrefixStore>(
        "rematch/" + place_.launch, c10::make_intrusive<c10d::TCPStore>(place_.address, options));
  } catch (const c10::Error& error) {
    groups_->notes->lost_others();
    throw RanksError("rank " + std::to_string(place_.rank) + " finds no store at " +
                     place_.address + ":" + std::to_string(place_.port) +
                     ", served by the process that starts rank 0 (" +
                     error.what_without_backtrace() + ")");
  }
  groups_->notes->joined();
  barrier("join");
}

void Ranks::barrier(const std::string& name) { values_of_all("barrier " + name, ""); }

std::vector<std::string> Ranks::values_of_all(const std::string& name, const std::string& value) {
  const std::string prefix = next_key("of all/" + name);
  std::vector<std::string> values;
  groups_->with_store(place_, [&](c10d::Store& store) {
    store.set(prefix + std::to_string(place_.rank), value);
    wait_for_all(name, prefix);
    for (int rank = 0; rank < place_.world; ++rank) {
      values.push_back(store.get_to_str(prefix + std::to_string(rank)));
    }
  });
  return values;
}

void Ranks::agree(const std::string& name, const std::string& value) {
  const std::vector<std::string> values = values_of_all(name, value);
  for (std::size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] == values[0]) continue;
    throw RanksError("ranks differ in " + name + ": rank 0 has " + quoted(values[0]) + ", rank " +
                     std::to_string(rank) + " has " + quoted(values[rank]));
  }
}

void Ranks::note_step(std::int64_t step) { groups_->notes->step(step); }

// Waits in short intervals, to notice if another rank has failed.
void Ranks::wait_for_all(const std::string& name, const std::string& prefix) {
  const auto give_up_at = std::chrono::steady_clock::now() + options_.timeout;
  for (int rank = 0; rank < place_.world; ++rank) {
    const std::string number = std::to_string(rank);
    while (!groups_->store->check({prefix + number})) {
      if (std::chrono::steady_clock::now() >= give_up_at) {
        throw RanksError("rank " + number + " of " + std::to_string(place_.world) +
                         " has not reached '" + name + "' within " + in_seconds(options_.timeout) +
                         ": the rank hangs, or was never started");
      }
      if (groups_->store->check({"failed/" + number})) {
        // The rank may have joined after the check above, and failed later.
        if (groups_->store->check({prefix + number})) break;
        groups_->notes->lost_others();
        throw RanksError("rank " + number + " failed before '" + name +
                         "'; its own message says why");
      }
      try {
        groups_->store->wait({prefix + number}, kSlice);
      } catch (const c10::DistStoreError&) {
        // the rank has not joined yet
      }
    }
  }
}

// A name may be used several times. Each use is a round with keys of its own. When a rank begins
// round n, all ranks have finished round n - 2, so the keys of round n - 2 can be deleted.
std::string Ranks::next_key(const std::string& name) {
  const int round = ++rounds_[name];
  const auto key = [&](int which) { return name + "/" + std::to_string(which) + "/"; };
  if (round > 2) {
    groups_->with_store(place_, [&](c10d::Store& store) {
      store.deleteKey(key(round - 2) + std::to_string(place_.rank));
    });
  }
  return key(round);
}

PretendedRanks::PretendedRanks(int rank, const std::vector<RankGroup>& groups)
    : groups_(std::make_unique<RegisteredGroups>()) {
  for (const RankGroup& group : groups) {
    const int own = rank_in_group(group, rank, std::numeric_limits<int>::max());
    const int size = static_cast<int>(group.ranks.size());
    const auto backend = make_pretended_backend(own, size);
    groups_->add(group.name, c10::make_intrusive<c10d::HashStore>(), own, size,
                 {{c10::DeviceType::CPU, BackendType::CUSTOM, backend},
                  {c10::DeviceType::CUDA, BackendType::CUSTOM, backend}});
  }
}

PretendedRanks::~PretendedRanks() = default;

}  // namespace rematch
