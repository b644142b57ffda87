// Tests how the memory of a machine is read, from made-up /proc and /sys folders and from the real
// ones.
#include "harness/measure/machine_memory.h"

#include <filesystem>
#include <fstream>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch {
namespace {

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

class MadeUpMachine {
 public:
  MadeUpMachine() {
    write("proc/meminfo", "MemTotal:       33554432 kB\nMemAvailable:   25165824 kB\n");
    write("proc/vmstat", "pgfault 7\noom_kill 3\n");
  }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = scratch_.file(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  MachineMemory memory() const { return machine_memory(scratch_.path().string()); }

 private:
  testing::ScratchFolder scratch_;
};

TEST_CASE("without control groups the limit is the machine's own memory") {
  const MadeUpMachine machine;
  CHECK(machine.memory().total == Bytes{32 * kGiB});
  CHECK(machine.memory().available == Bytes{24 * kGiB});
  CHECK(machine.memory().oom_kills == 3);
}

// The job has a limit of 8 GiB and uses 5 GiB, of which 1 GiB is page cache. The slice that
// contains the job has a limit of 16 GiB, of which 6 GiB are left.
TEST_CASE("the lowest limit of a process's control groups applies") {
  const MadeUpMachine machine;
  machine.write("proc/self/cgroup", "0::/slice/job\n");
  const std::string slice = "sys/fs/cgroup/slice/";
  machine.write(slice + "job/memory.max", std::to_string(8 * kGiB) + "\n");
  machine.write(slice + "job/memory.current", std::to_string(5 * kGiB) + "\n");
  machine.write(slice + "job/memory.stat", "anon 1\ninactive_file " + std::to_string(kGiB / 4) +
                                               "\nactive_file " + std::to_string(kGiB / 4 * 3) +
                                               "\n");
  machine.write(slice + "memory.max", std::to_string(16 * kGiB) + "\n");
  machine.write(slice + "memory.current", std::to_string(10 * kGiB) + "\n");
  CHECK(machine.memory().total == Bytes{8 * kGiB});
  CHECK(machine.memory().available == Bytes{4 * kGiB});
  machine.write(slice + "job/memory.max", "max\n");
  CHECK(machine.memory().total == Bytes{16 * kGiB});
  CHECK(machine.memory().available == Bytes{6 * kGiB});
}

TEST_CASE("control groups of version 1 are read, even without a limit") {
  const MadeUpMachine machine;
  machine.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/\n");
  const std::string job = "sys/fs/cgroup/memory/job/";
  machine.write(job + "memory.limit_in_bytes", std::to_string(12 * kGiB) + "\n");
  machine.write(job + "memory.usage_in_bytes", std::to_string(2 * kGiB) + "\n");
  CHECK(machine.memory().total == Bytes{12 * kGiB});
  CHECK(machine.memory().available == Bytes{10 * kGiB});
  machine.write(job + "memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(machine.memory().total == Bytes{32 * kGiB});
  CHECK(machine.memory().available == Bytes{24 * kGiB});
}

// Some files contain no valid number, and one limit has no file with the current usage.
TEST_CASE("unreadable limits and unreadable usage are ignored") {
  const MadeUpMachine machine;
  machine.write("proc/self/cgroup", "nonsense\n0::/job\n");
  const std::string job = "sys/fs/cgroup/job/";
  for (const char* limit : {"", "12 apples\n", "8x\n", "-1\n", "99999999999999999999\n"}) {
    CAPTURE(limit);
    machine.write(job + "memory.max", limit);
    CHECK(machine.memory().total == Bytes{32 * kGiB});
    CHECK(machine.memory().available == Bytes{24 * kGiB});
  }
  machine.write(job + "memory.max", std::to_string(8 * kGiB) + "\n");
  for (const char* usage : {"", "unknown\n"}) {
    CAPTURE(usage);
    machine.write(job + "memory.current", usage);
    CHECK(machine.memory().total == Bytes{8 * kGiB});
    CHECK(machine.memory().available == Bytes{8 * kGiB});
  }
  machine.write(job + "memory.current", std::to_string(9 * kGiB) + "\n");
  CHECK(machine.memory().available == Bytes{0});
}

TEST_CASE("values that cannot be read are absent, and this machine has some memory") {
  const testing::ScratchFolder empty;
  const MachineMemory nothing = machine_memory(empty.file("nowhere"));
  CHECK_FALSE(nothing.total.has_value());
  CHECK_FALSE(nothing.available.has_value());
  CHECK_FALSE(nothing.oom_kills.has_value());
  const MachineMemory here = machine_memory();
  REQUIRE((here.total.has_value() && here.available.has_value()));
  CHECK(here.available->count > 0);
  CHECK(*here.available <= *here.total);
}

}  // namespace
}  // namespace rematch
