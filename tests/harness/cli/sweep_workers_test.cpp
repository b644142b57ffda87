// Runs several workers of one sweep, which share a folder. Workers are killed at random moments, or
// are suspended until other workers consider them dead. In some tests the disk is full or read-only
// for a while. Instead of measuring, workers run a script of a few milliseconds.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "harness/sweep/claim_text.h"
#include "policies/base/json.h"
#include "tests/harness/cli/command_line.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace rematch::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

// Imitates `rematch run ... -o FILE`: writes a point next to the report, and replaces the report
// atomically. The report contains the arguments.
constexpr const char* kMeasuringScript = R"(#!/bin/sh
for word; do file=$word; done
mkdir -p "${file%.json}.points" || exit 1
mktemp -d > /dev/null || exit 1
echo "$*" > "${file%.json}.points/point.json" || exit 1
sleep 0.0$(($$ % 4 + 1))
{ echo "begin $*"; echo end; } > "$file.tmp.$$" || { rm -f "$file.tmp.$$"; exit 1; }
mv "$file.tmp.$$" "$file"
)";

// 8 comparisons. Their runs measure no times, so workers of one machine need not wait for each
// other.
constexpr const char* kEightComparisons =
    R"({"schema": "rematch.sweep/1.0", "run": [RUN],
  "groups": [{"model": "llama_small", "policies": ["none", "full"],
              "fixed": {"layers": 2, "heads": 2, "dim": 16, "batch": 1},
              "axes": {"tokens": [8, 16]}, "seeds": [SEEDS]}]})";
constexpr std::size_t kNumComparisons = 8;

enum class Clocks : std::uint8_t { kSteady, kJumping };

class WorkerProcess {
 public:
  WorkerProcess(const std::string& folder, const std::string& program, const std::string& more = {},
                Clocks clocks = Clocks::kSteady) {
    pid_ = fork();
    if (pid_ != 0) return;
    if (clocks == Clocks::kJumping) {
      setenv("LD_PRELOAD", REMATCH_JUMPING_CLOCK, /*overwrite=*/1);
      setenv("ASAN_OPTIONS", "verify_asan_link_order=0", /*overwrite=*/1);
    }
    const int null = open("/dev/null", O_RDWR);
    for (const int stream : {0, 1, 2}) dup2(null, stream);
    if (more.empty()) {
      execl(binary(), binary(), "sweep", "run", folder.c_str(), "--program", program.c_str(),
            nullptr);
    } else {
      execl(binary(), binary(), "sweep", "run", folder.c_str(), "--program", program.c_str(),
            "--for", more.c_str(), nullptr);
    }
    _exit(127);
  }
  ~WorkerProcess() {
    if (code_) return;
    kill(pid_, SIGKILL);
    wait();
  }
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  bool has_ended() {
    int status = 0;
    if (!code_ && waitpid(pid_, &status, WNOHANG) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return code_.has_value();
  }
  void send(int signal_number) const { kill(pid_, signal_number); }
  // Returns the worker's exit code, or 128 plus the signal that ended it.
  int wait() {
    int status = 0;
    if (!code_ && waitpid(pid_, &status, 0) == pid_) {
      code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return *code_;
  }

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

struct Sweep {
  explicit Sweep(const std::string& stale, const std::string& at = {},
                 const std::string& run = R"("--rounds", "0")", int num_seeds = 4) {
    folder = (at.empty() ? scratch.path() : fs::path(at)) / "sweep";
    std::string text = kEightComparisons;
    text.replace(text.find("RUN"), 3, run);
    std::string seeds = "0";
    for (int seed = 1; seed < num_seeds; ++seed) seeds += ", " + std::to_string(seed);
    text.replace(text.find("SEEDS"), 5, seeds);
    std::ofstream(scratch.file("sweep.json")) << text;
    std::ofstream(scratch.file("measure")) << kMeasuringScript;
    fs::permissions(scratch.file("measure"), fs::perms::owner_all);
    REQUIRE(rematch("sweep plan " + scratch.file("sweep.json") + " " + folder.string() +
                    " --stale " + stale)
                .code == 0);
  }
  std::string program() const { return scratch.file("measure"); }
  std::unique_ptr<WorkerProcess> worker(const std::string& time = {},
                                        Clocks clocks = Clocks::kSteady) const {
    return std::make_unique<WorkerProcess>(folder.string(), program(), time, clocks);
  }

  // Checks that every comparison has a complete report with its own seed, and that no other files
  // exist.
  void check_complete() const {
    const Json plan = Json::parse(text_of(folder / "plan.json"));
    REQUIRE(plan["comparisons"].size() == kNumComparisons);
    std::set<std::string> expected;
    for (const Json& comparison : plan["comparisons"]) {
      const std::string id = comparison["id"];
      expected.insert(id + ".json");
      const std::string report = text_of(folder / "reports" / (id + ".json"));
      CAPTURE(id, report);
      CHECK(report.starts_with("begin run --model llama_small"));
      CHECK(report.ends_with("\nend\n"));
      CHECK(report.find("--seed " + comparison["seed"].dump()) != std::string::npos);
    }
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder / "reports")) {
      found.insert(entry.path().filename());
    }
    CHECK(found == expected);
    for (const auto& entry : fs::directory_iterator(folder / "claims")) {
      CAPTURE(entry.path());
      CHECK(parse_claim_name(entry.path().filename().string()));
      CHECK_NOTHROW(parse_claim(text_of(entry.path()), entry.path()));
    }
  }
  static std::string text_of(const fs::path& file) { return testing::text_of(file.string()); }

  ScratchFolder scratch;
  fs::path folder;
};

// Counts finished measurements. Each comparison has a folder for each attempt to measure it, so a
// comparison counts twice if its measurement was repeated.
int num_finished_generations(const Sweep& sweep) {
  int num_finished = 0;
  for (const auto& entry : fs::directory_iterator(sweep.folder / "work")) {
    if (fs::exists(entry.path() / "report.json")) ++num_finished;
  }
  return num_finished;
}

TEST_CASE("four workers share a sweep and measure each comparison once") {
  const Sweep sweep("60s");
  std::vector<std::unique_ptr<WorkerProcess>> workers;
  for (int worker = 0; worker < 4; ++worker) workers.push_back(sweep.worker());
  for (const auto& worker : workers) CHECK(worker->wait() == 0);
  sweep.check_complete();
  CHECK(num_finished_generations(sweep) == static_cast<int>(kNumComparisons));
  // All comparisons are done, so this worker ends at once.
  CHECK(sweep.worker()->wait() == 0);
}

bool has_nameless_files(const fs::path& folder) {
  const int fd = open(folder.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

// Returns the processor time of one process in nanoseconds, excluding its children.
double processor_time(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/schedstat");
  double nanoseconds = 0;
  return file >> nanoseconds ? nanoseconds : 0;
}

// All work is done when the second worker starts, so its time is the cost of starting a worker.
TEST_CASE("prints a worker's own processor time per comparison", "[.speed]") {
  const Sweep sweep("60s", {}, R"("--rounds", "0")", 500);
  std::ofstream(sweep.program()) << "#!/bin/sh\nfor word; do file=$word; done\necho > \"$file\"\n";
  std::array<double, 2> spent{};
  for (double& one : spent) {
    const auto worker = sweep.worker();
    while (!worker->has_ended()) {
      one = std::max(one, processor_time(worker->pid()));
      std::this_thread::sleep_for(Milliseconds(2));
    }
  }
  std::printf("worker: %.3f ms a comparison, %.0f ms to start\n",
              (spent[0] - spent[1]) / 1000 / 1e6, spent[1] / 1e6);
}

// Kills only nine workers per sweep, because a comparison fails for good after ten starts.
TEST_CASE("no comparison is lost if up to four workers are killed at random moments") {
  constexpr int kNumKills = 200;
  constexpr int kKillsOfASweep = 9;
  std::mt19937 random(20260101);
  int num_kills = 0;
  const ScratchFolder temporary;
  const char* const before = std::getenv("TMPDIR");
  const std::string restored = before == nullptr ? "/tmp" : before;
  while (num_kills < kNumKills) {
    const Sweep sweep("60s");
    setenv("TMPDIR", temporary.path().c_str(), /*overwrite=*/1);
    std::vector<std::unique_ptr<WorkerProcess>> workers(1 + random() % 4);
    for (int kill = 0; kill < kKillsOfASweep; ++kill, ++num_kills) {
      for (auto& worker : workers) {
        if (!worker) worker = sweep.worker();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 40'000));
      auto& victim = workers[random() % workers.size()];
      victim->send(SIGKILL);
      victim.reset();
    }
    // Workers notice at once that another worker on their machine has ended. The exception is a
    // worker that dies after it creates its claim and before it writes its name into the claim.
    // Such a claim, which requires a file system without O_TMPFILE, remains valid for 60 s.
    const auto start = Clock::now();
    CHECK(sweep.worker()->wait() == 0);
    for (const auto& worker : workers) {
      if (worker) CHECK(worker->wait() == 0);
    }
    CHECK(sweep.worker()->wait() == 0);
    const bool claims_are_whole = has_nameless_files(sweep.folder);
    CHECK(Clock::now() - start < std::chrono::seconds(claims_are_whole ? 30 : 90));
    sweep.check_complete();
    if (num_finished_generations(sweep) < static_cast<int>(kNumComparisons)) FAIL("work was lost");
    setenv("TMPDIR", restored.c_str(), /*overwrite=*/1);
    CHECK(fs::is_empty(temporary.path()));
  }
}

TEST_CASE(
    "a suspended worker is replaced after the time limit, and does no harm when it continues") {
  const Sweep sweep("300ms");
  std::mt19937 random(7);
  for (int round = 0; round < 3; ++round) {
    const auto sleeper = sweep.worker();
    std::this_thread::sleep_for(Milliseconds(10 + random() % 30));
    sleeper->send(SIGSTOP);
    CHECK(sweep.worker()->wait() == 0);
    sweep.check_complete();
    const std::string first =
        Sweep::text_of(fs::directory_iterator(sweep.folder / "reports")->path());
    sleeper->send(SIGCONT);
    CHECK(sleeper->wait() == 0);
    CHECK(Sweep::text_of(fs::directory_iterator(sweep.folder / "reports")->path()) == first);
    sweep.check_complete();
  }
}

int num_takeovers(const Sweep& sweep) {
  int num_later = 0;
  for (const auto& entry : fs::directory_iterator(sweep.folder / "claims")) {
    const auto name = parse_claim_name(entry.path().filename().string());
    if (name && name->generation > 1) ++num_later;
  }
  return num_later;
}

// A worker whose clock leaps considers other workers dead and takes over their comparisons. If a
// comparison is measured twice, the first report is kept.
TEST_CASE("workers with jumping clocks lose no comparison, and replace no report") {
  std::mt19937 random(3);
  int num_taken_over = 0;
  // A worker takes over a comparison only if its clock leaps while another worker holds a claim.
  // This usually happens within six rounds.
  for (int round = 0; round < 6 || (num_taken_over == 0 && round < 60); ++round) {
    CAPTURE(round);
    const Sweep sweep("300ms");
    std::vector<std::unique_ptr<WorkerProcess>> workers;
    for (int worker = 0; worker < 4; ++worker) {
      workers.push_back(sweep.worker({}, Clocks::kJumping));
    }
    std::this_thread::sleep_for(Milliseconds(random() % 80));
    workers[0].reset();  // killed
    for (std::size_t worker = 1; worker < workers.size(); ++worker) {
      CHECK(workers[worker]->wait() == 0);
    }
    CHECK(sweep.worker()->wait() == 0);
    sweep.check_complete();
    num_taken_over += num_takeovers(sweep);
  }
  CHECK(num_taken_over > 0);
}

TEST_CASE("a worker that receives a signal releases its claims and exits with the right code") {
  const Sweep sweep("60s");
  for (const auto& [signal_number, code] :
       {std::pair(SIGTERM, 143), std::pair(SIGUSR1, 75), std::pair(SIGINT, 130)}) {
    const auto worker = sweep.worker();
    std::this_thread::sleep_for(Milliseconds(40));
    worker->send(signal_number);
    const int ended = worker->wait();
    // A signal that arrives before its handler is installed kills the worker.
    CHECK((ended == code || ended == 128 + signal_number || ended == 0));
  }
  CHECK(sweep.worker("1ms")->wait() == 75);
  CHECK(sweep.worker()->wait() == 0);
  sweep.check_complete();
}

TEST_CASE(
    "a comparison whose child fails is retried once and reported, and does not block other "
    "comparisons") {
  const Sweep sweep("60s");
  std::ofstream(sweep.program()) << "#!/bin/sh\ncase \"$*\" in *'--seed 2'*) echo broken >&2; kill "
                                    "-9 $$;; esac\n"
                                 << std::string(kMeasuringScript).substr(10);
  CHECK(sweep.worker()->wait() == 5);
  const Outcome status = rematch("sweep status " + sweep.folder.string());
  CHECK_THAT(status.out, Catch::StartsWith("8 comparisons: 6 done, 2 failed, 0 skipped"));
  CHECK_THAT(status.out, Catch::Contains("failed: ended by signal 9: broken"));
  const Json json = Json::parse(rematch("sweep status --json " + sweep.folder.string()).out);
  CHECK(json["counts"]["failed"] == 2);
  CHECK(sweep.worker()->wait() == 5);
  // The script works again, but the failed comparison is retried only with --retry-failed.
  std::ofstream(sweep.program()) << kMeasuringScript;
  CHECK(sweep.worker()->wait() == 5);
  CHECK(
      rematch("sweep run " + sweep.folder.string() + " --retry-failed --program " + sweep.program())
          .code == 0);
  sweep.check_complete();
}

TEST_CASE("with --gpus all each visible card has a worker that sees only that card") {
  const Sweep sweep("60s");
  const std::string seen = sweep.scratch.file("seen");
  std::ofstream(sweep.program()) << "#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES\" >> " << seen << "\n"
                                 << std::string(kMeasuringScript).substr(10);
  const Outcome outcome =
      rematch("sweep run " + sweep.folder.string() + " --gpus all --program " + sweep.program(),
              "CUDA_VISIBLE_DEVICES=3,5 ");
  CHECK(outcome.code == 0);
  sweep.check_complete();
  const std::string cards = testing::text_of(seen);
  CHECK(cards.find("3\n") != std::string::npos);
  CHECK(cards.find("5\n") != std::string::npos);
  CHECK(cards.find(',') == std::string::npos);
  check_usage_error("sweep run " + sweep.folder.string() + " --gpus two", "--gpus takes all");
}

TEST_CASE("two CPU workers on one machine do not measure times at the same moment") {
  const Sweep sweep("60s", {}, R"("--rounds", "1")");
  const std::string busy = sweep.scratch.file("busy");
  const std::string overlap = sweep.scratch.file("overlap");
  std::ofstream(sweep.program()) << "#!/bin/sh\nmkdir " << busy << " || touch " << overlap << "\n"
                                 << std::string(kMeasuringScript).substr(10) << "rmdir " << busy
                                 << "\n";
  const auto one = sweep.worker();
  const auto other = sweep.worker();
  CHECK(one->wait() == 0);
  CHECK(other->wait() == 0);
  CHECK_FALSE(fs::exists(overlap));
  sweep.check_complete();
}

// A small file system, if this process has the right to mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& at) : at_(at) {
    fs::create_directories(at);
    is_there_ = mount("tmpfs", at.c_str(), "tmpfs", 0, "size=1m") == 0;
  }
  ~SmallDisk() {
    if (is_there_) umount2(at_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool is_there() const { return is_there_; }
  bool set_read_only(bool is_read_only) const {
    return mount("tmpfs", at_.c_str(), "tmpfs", MS_REMOUNT | (is_read_only ? MS_RDONLY : 0),
                 "size=1m") == 0;
  }
  // Fills the disk completely.
  void fill() const {
    std::ofstream filler(at_ + "/filler", std::ios::binary);
    const std::string block(4096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void empty() const { fs::remove(at_ + "/filler"); }

 private:
  std::string at_;
  bool is_there_ = false;
};

TEST_CASE("a disk that is full for a while loses no comparison") {
  const ScratchFolder scratch;
  const SmallDisk disk(scratch.file("disk"));
  if (!disk.is_there()) {
    WARN("no file system may be mounted here\ndisk test: skipped");
    return;
  }
  for (int round = 0; round < 3; ++round) {
    CAPTURE(round);
    const Sweep sweep("3s", scratch.file("disk/" + std::to_string(round)));
    const auto one = sweep.worker();
    const auto other = sweep.worker();
    std::this_thread::sleep_for(Milliseconds(20 + 30 * round));
    disk.fill();
    std::this_thread::sleep_for(Milliseconds(300));
    disk.empty();
    CHECK(one->wait() == 0);
    CHECK(other->wait() == 0);
    CHECK(sweep.worker()->wait() == 0);
    sweep.check_complete();
  }
}

TEST_CASE("a disk that is read-only for a while loses no comparison") {
  const ScratchFolder scratch;
  const SmallDisk disk(scratch.file("disk"));
  if (!disk.is_there()) {
    WARN("no file system may be mounted here\ndisk test: skipped");
    return;
  }
  const Sweep sweep("3s", scratch.file("disk"));
  const auto worker = sweep.worker();
  bool was_read_only = false;
  // The disk cannot become read-only while a file on it is open for writing, so this is tried
  // several times.
  for (int attempt = 0; attempt < 200 && !was_read_only; ++attempt) {
    was_read_only = disk.set_read_only(true);
    std::this_thread::sleep_for(Milliseconds(1));
  }
  CHECK(was_read_only);
  std::this_thread::sleep_for(Milliseconds(500));
  CHECK(disk.set_read_only(false));
  CHECK(worker->wait() == 0);
  CHECK(sweep.worker()->wait() == 0);
  sweep.check_complete();
}

}  // namespace
}  // namespace rematch::testing
