// Runs several workers on one simulated folder, in every possible order of their operations, and
// kills workers at every operation. The claims and the work loop are the real code. ModelFolder
// checks the rules.
#include "harness/sweep/claims.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/sweep/work_loop.h"
#include "policies/base/file.h"
#include "policies/base/json.h"
#include "tests/support/catch.h"
#include "tests/support/interleavings.h"

namespace rematch {
namespace {

using testing::Interleavings;
using Nanoseconds = std::chrono::nanoseconds;

constexpr std::chrono::milliseconds kStale{60};

struct ModelClaim {
  std::size_t maker = 0;
  std::string text;
};

// The simulated folder, and the rules that workers have broken so far.
struct Shared {
  std::map<std::string, ModelClaim> claims;
  // Key: a report's name. Value: the path of the measurement that a worker linked as this report.
  std::map<std::string, std::string> reports;
  std::set<std::string> finished;  // paths of complete measurements
  std::set<std::size_t> killed;
  std::vector<std::string> broken_rules;
  bool links_claims = false;
  int num_measured = 0;
  // number of claims that were taken over before their workers had ended them
  int num_takeovers = 0;
};

// The text that a worker has read from a claim, and the time on the worker's own clock.
struct Reading {
  Nanoseconds at{};
  std::string text;
};

bool ends_with_line(const std::string& text, const std::string& line) {
  return text.ends_with("\n" + line + "\n");
}

// The simulated folder, as one worker sees it. Checks the worker's operations against these rules:
// - A worker may create generation N+1 of a claim only if it knows that generation N has ended.
//   It knows this if it has read an end line, if the text has not changed for the stale time, or if
//   the process of N was killed.
// - Generations are consecutive. Only the creator of a claim writes to it.
// - A comparison that has a report is not claimed and measured again.
// - A worker links only complete reports of its own generation. The first linked report is kept.
class ModelFolder : public SweepFolder {
 public:
  ModelFolder(Shared& shared, Interleavings& orders, std::size_t self, bool sees_processes)
      : shared_(shared), orders_(orders), self_(self), sees_processes_(sees_processes) {}

  Nanoseconds now{};

  std::vector<std::string> claims() override {
    orders_.step();
    std::vector<std::string> names;
    for (const auto& [name, claim] : shared_.claims) names.push_back(name);
    return names;
  }
  std::vector<std::string> reports() override {
    orders_.step();
    std::vector<std::string> names;
    for (const auto& [name, path] : shared_.reports) names.push_back(name);
    return names;
  }
  std::optional<std::string> read_claim(const std::string& name) override {
    orders_.step();
    const auto found = shared_.claims.find(name);
    if (found == shared_.claims.end()) return std::nullopt;
    readings_[name].push_back({now, found->second.text});
    return found->second.text;
  }
  // One operation with links_claims, as on a local file system; otherwise two, as on NFS.
  bool create_claim(const std::string& name, std::string_view text) override {
    orders_.step();
    if (shared_.claims.count(name) != 0) return false;
    const ClaimName parsed = parse_claim_name(name).value();
    if (parsed.generation > 1) check_over(claim_name(parsed.comparison, parsed.generation - 1));
    shared_.claims[name] = {self_, ""};
    had_report_[name] = shared_.reports.count(report_name(parsed.comparison)) != 0;
    if (!shared_.links_claims) orders_.step();
    shared_.claims[name].text = text;
    return true;
  }
  void append_to_claim(const std::string& name, std::string_view text) override {
    orders_.step();
    ModelClaim& claim = shared_.claims.at(name);
    if (claim.maker != self_) broken("wrote into another worker's claim " + name);
    claim.text.append(text);
  }
  bool has_claim(const std::string& name) override {
    orders_.step();
    return shared_.claims.count(name) != 0;
  }
  bool has_report(const std::string& name) override {
    orders_.step();
    return shared_.reports.count(name) != 0;
  }
  bool link_report(const std::string& path, const std::string& name) override {
    orders_.step();
    if (shared_.finished.count(path) == 0) broken("linked an incomplete report: " + path);
    if (shared_.claims.at(path).maker != self_) broken("linked another worker's report " + path);
    return shared_.reports.emplace(name, path).second;
  }

  void begin_measuring(const std::string& claim) {
    if (had_report_.at(claim))
      broken("claimed and measured a comparison that had a report: " + claim);
    ++shared_.num_measured;
  }

 private:
  void check_over(const std::string& previous) {
    const auto found = shared_.claims.find(previous);
    if (found == shared_.claims.end()) return broken("skipped a generation: " + previous);
    const std::vector<Reading>& readings = readings_[previous];
    if (readings.empty()) return broken("took over a claim that it never read: " + previous);
    const Reading& last = readings.back();
    if (ends_with_line(last.text, "released") || ends_with_line(last.text, "skipped")) return;
    ++shared_.num_takeovers;
    if (sees_processes_ && shared_.killed.count(found->second.maker) != 0) return;
    for (const Reading& reading : readings) {
      if (reading.text == last.text && last.at - reading.at >= kStale) return;
    }
    broken("took over a claim before it saw the stale time pass: " + previous);
  }
  void broken(const std::string& what) {
    shared_.broken_rules.push_back("worker " + std::to_string(self_) + " " + what);
  }

  Shared& shared_;
  Interleavings& orders_;
  std::size_t self_;
  bool sees_processes_;
  std::map<std::string, std::vector<Reading>> readings_;
  std::map<std::string, bool> had_report_;
};

class ModelMeasurer : public Measurer {
 public:
  ModelMeasurer(Shared& shared, ModelFolder& folder, int num_beats)
      : shared_(shared), folder_(folder), num_beats_(num_beats) {}

  std::shared_ptr<void> turn() override { return std::make_shared<int>(0); }
  MeasureEnd measure(std::size_t, HeldClaim& claim) override {
    const std::string name = claim_name(claim.comparison(), claim.generation());
    folder_.begin_measuring(name);
    for (int beat = 0; beat < num_beats_; ++beat) {
      claim.beat();
      if (!claim.is_superseded()) continue;
      claim.end(ClaimState::kFree);
      return MeasureEnd::kSuperseded;
    }
    shared_.finished.insert(name);
    claim.finish(name);
    return MeasureEnd::kOk;
  }

 private:
  Shared& shared_;
  ModelFolder& folder_;
  int num_beats_;
};

struct Case {
  std::size_t num_workers = 2;
  std::size_t num_comparisons = 1;
  int num_beats = 1;
  bool sees_processes = false;
  bool links_claims = false;
  std::chrono::milliseconds look_every = kStale;
  Interleavings::Bounds bounds;
};

std::string comparison_at(std::size_t index) {
  return std::string(1, static_cast<char>('a' + index));
}

void run_worker(Shared& shared, Interleavings& orders, const Case& setting, std::size_t self) {
  ModelFolder folder(shared, orders, self, setting.sees_processes);
  std::vector<std::string> ids;
  std::vector<WorkItem> items;
  for (std::size_t index = 0; index < setting.num_comparisons; ++index) {
    ids.push_back(comparison_at(index));
    items.push_back({ids.back(), std::nullopt});
  }
  ClaimHolder holder;
  holder.plan = "p";
  holder.pid = static_cast<std::int64_t>(self);
  Observer observer;
  observer.now = [&folder] { return folder.now; };
  observer.is_gone = [&](const ClaimHolder& other) {
    return setting.sees_processes && shared.killed.count(static_cast<std::size_t>(other.pid)) != 0;
  };
  Claims claims(folder, ids, holder, observer, {kStale, 10});
  ModelMeasurer measurer(shared, folder, setting.num_beats);
  WorkSurroundings surroundings;
  surroundings.now = observer.now;
  surroundings.sleep = [&folder](std::chrono::milliseconds length) { folder.now += length; };
  surroundings.stop_request = [] { return StopRequest::kNone; };
  work(items, claims, measurer, surroundings, {std::nullopt, setting.look_every});
}

struct Totals {
  std::size_t num_orders = 0;
  int most_measured = 0;
  int num_takeovers = 0;
};

// Runs the workers in every order. Each time, one more worker runs afterwards, and all reports must
// then exist.
Totals explore(const Case& setting) {
  Interleavings orders(setting.bounds);
  Totals totals;
  totals.num_orders = orders.explore([&] {
    Shared shared;
    shared.links_claims = setting.links_claims;
    std::vector<std::function<void()>> workers;
    for (std::size_t worker = 0; worker < setting.num_workers; ++worker) {
      workers.emplace_back([&, worker] {
        try {
          run_worker(shared, orders, setting, worker);
        } catch (const testing::Ended&) {
          shared.killed.insert(worker);
          throw;
        }
      });
    }
    orders.run_together(workers);
    const auto reports = shared.reports;
    totals.most_measured = std::max(totals.most_measured, shared.num_measured);
    totals.num_takeovers += shared.num_takeovers;
    Interleavings alone({0, 0});
    alone.explore([&] {
      alone.run_together({[&] { run_worker(shared, alone, setting, setting.num_workers); }});
    });
    for (const auto& [name, path] : reports) {
      if (shared.reports.at(name) != path) shared.broken_rules.push_back("replaced " + name);
    }
    if (shared.reports.size() != setting.num_comparisons) {
      shared.broken_rules.emplace_back("a comparison was lost");
    }
    if (!shared.broken_rules.empty()) FAIL(shared.broken_rules.front());
  });
  UNSCOPED_INFO(totals.num_orders << " orders, " << totals.num_takeovers << " takeovers");
  return totals;
}

// A worker may be paused for any time between two operations. Another worker then takes over its
// claims.
TEST_CASE("two workers on one comparison break no rule in any order of their operations") {
  Case setting;
  setting.look_every = kStale / 2;
  setting.bounds = {4, 0};
  SECTION("a new claim is empty until its text is written") {}
  SECTION("a new claim has its text at once") { setting.links_claims = true; }
  const Totals totals = explore(setting);
  CHECK(totals.num_orders > 1000);
  CHECK(totals.num_takeovers > 0);
  CHECK(totals.most_measured >= 2);
}

TEST_CASE("no comparison is lost if a worker is killed at any operation") {
  Case setting;
  setting.bounds = {3, 1};
  SECTION("on another host") {}
  SECTION("on this host, where other workers see that the killed process has ended") {
    setting.sees_processes = true;
  }
  SECTION("on this host, where a new claim has its text at once") {
    setting.sees_processes = setting.links_claims = true;
  }
  const Totals totals = explore(setting);
  CHECK(totals.num_orders > 1000);
  CHECK(totals.num_takeovers > 0);
}

TEST_CASE("three workers on two comparisons break no rule if one is killed at any operation") {
  Case setting;
  setting.num_workers = 3;
  setting.num_comparisons = 2;
  setting.bounds = {1, 1};
  CHECK(explore(setting).num_orders > 1000);
}

TEST_CASE(
    "a claim becomes stale if its text stays unchanged for the stale time on the observer's "
    "clock") {
  Interleavings alone({0, 0});
  alone.explore([&] {
    alone.run_together({[&] {
      Shared shared;
      ModelFolder folder(shared, alone, 0, false);
      folder.create_claim("a.g1", holder_line({.plan = "p", .host = "h"}));
      Observer observer{[&] { return folder.now; }, [](const ClaimHolder&) { return false; }};
      Claims claims(folder, {"a"}, {.plan = "p"}, observer, {kStale, 10});
      const auto look_at = [&](int milliseconds) {
        folder.now = std::chrono::milliseconds(milliseconds);
        claims.look();
        return claims.of("a").state;
      };
      CHECK(look_at(1000) == ClaimState::kUnsure);
      CHECK(look_at(1059) == ClaimState::kUnsure);
      folder.append_to_claim("a.g1", beat_line());
      CHECK(look_at(1060) == ClaimState::kHeld);
      CHECK(look_at(1061) == ClaimState::kHeld);
      // almost the stale time has passed since the worker last wrote
      CHECK(look_at(1119) == ClaimState::kUnsure);
      CHECK(look_at(1120) == ClaimState::kStale);
      CHECK_FALSE(folder.has_claim("a.g2"));
      REQUIRE(claims.take("a"));
      CHECK(folder.has_claim("a.g2"));
      // another worker has already taken over the stale claim
      CHECK_FALSE(claims.take("a"));
    }});
  });
}

TEST_CASE(
    "a comparison whose workers are killed is abandoned, but a comparison that workers return is "
    "not") {
  Interleavings alone({0, 0});
  alone.explore([&] {
    alone.run_together({[&] {
      Shared shared;
      ModelFolder folder(shared, alone, 0, true);
      Observer observer{[&] { return folder.now; }, [](const ClaimHolder&) { return true; }};
      Claims claims(folder, {"lost", "given_back"}, {.plan = "p"}, observer, {kStale, 10});
      shared.killed.insert(0);
      for (int start = 1; start <= 12; ++start) {
        claims.look();
        CHECK(claims.take("lost").has_value() == (start <= 10));
        claims.look();
        auto claim = claims.take("given_back");
        REQUIRE(claim);
        claim->end(ClaimState::kFree);
      }
      claims.look();
      CHECK(claims.of("lost").state == ClaimState::kFailed);
      CHECK_THAT(claims.of("lost").reason, Catch::StartsWith("given up after 10 starts"));
      CHECK(claims.of("given_back").generation == 12);
    }});
  });
}

// Stands in for measurements. Every measurement has the same outcome.
class SayingMeasurer : public Measurer {
 public:
  explicit SayingMeasurer(MeasureEnd end) : end_(end) {}
  std::shared_ptr<void> turn() override { return std::make_shared<int>(0); }
  MeasureEnd measure(std::size_t item, HeldClaim& claim) override {
    taken.push_back(item);
    claim.end(end_ == MeasureEnd::kSkipped ? ClaimState::kSkipped : ClaimState::kFailed, "why");
    return end_;
  }
  std::vector<std::size_t> taken;

 private:
  MeasureEnd end_;
};

TEST_CASE(
    "a worker takes the longest comparison that fits its time, even if a worker with a smaller "
    "card skipped it") {
  using std::chrono::milliseconds;
  Interleavings alone({0, 0});
  alone.explore([&] {
    alone.run_together({[&] {
      Shared shared;
      ModelFolder folder(shared, alone, 0, true);
      Observer observer{[&] { return folder.now; }, [](const ClaimHolder&) { return true; }};
      const WorkSurroundings surroundings{observer.now,
                                          [&](milliseconds length) { folder.now += length; },
                                          [] { return StopRequest::kNone; }};
      const auto work_with = [&](const std::vector<WorkItem>& items, SayingMeasurer& measurer,
                                 std::optional<Nanoseconds> end) {
        Claims claims(folder, {"a", "b", "c"}, {.plan = "p"}, observer, {kStale, 10});
        return work(items, claims, measurer, surroundings, {end, kStale});
      };
      const std::vector<WorkItem> on_small = {{"a", milliseconds(10), false},
                                              {"b", milliseconds(90), false},
                                              {"c", milliseconds(30), false}};
      SayingMeasurer small(MeasureEnd::kSkipped);
      WorkEnd end = work_with(on_small, small, milliseconds(50));
      CHECK(small.taken == std::vector<std::size_t>{2, 0});
      CHECK(end.why == WorkEnd::Why::kDeadline);  // comparison b would take longer than the
                                                  // remaining time
      CHECK(end.num_left == 1);
      end = work_with(on_small, small, std::nullopt);
      CHECK(small.taken == std::vector<std::size_t>{2, 0, 1});
      CHECK(end.why == WorkEnd::Why::kNothingLeft);
      std::vector<WorkItem> on_large = on_small;
      for (WorkItem& item : on_large) item.fits_card = true;
      SayingMeasurer large(MeasureEnd::kFailed);
      end = work_with(on_large, large, std::nullopt);
      CHECK(large.taken == std::vector<std::size_t>{1, 2, 0});
      CHECK(end.num_failures == 3);
    }});
  });
}

// Two of three comparisons have failed earlier. A worker with retries measures both once more, but
// does not retry comparisons that fail during its own run.
TEST_CASE("a worker retries a failed comparison once") {
  Interleavings alone({0, 0});
  alone.explore([&] {
    alone.run_together({[&] {
      Shared shared;
      ModelFolder folder(shared, alone, 0, true);
      Observer observer{[&] { return folder.now; }, [](const ClaimHolder&) { return true; }};
      const WorkSurroundings surroundings{
          observer.now, [&](std::chrono::milliseconds length) { folder.now += length; },
          [] { return StopRequest::kNone; }};
      const auto work_with = [&](const std::vector<std::string>& ids, bool retries_failed) {
        std::vector<WorkItem> items;
        for (const std::string& id : ids) items.push_back({id, std::nullopt});
        Claims claims(folder, ids, {.plan = "p"}, observer, {kStale, 10});
        SayingMeasurer measurer(MeasureEnd::kFailed);
        work(items, claims, measurer, surroundings, {std::nullopt, kStale, retries_failed});
        return measurer.taken;
      };
      using Taken = std::vector<std::size_t>;
      CHECK(work_with({"a", "b"}, false) == Taken{0, 1});
      CHECK(work_with({"a", "b"}, false).empty());
      CHECK(work_with({"a", "b", "c"}, true) == Taken{0, 1, 2});
      CHECK(shared.claims.count("a.g2") == 1);
      CHECK(shared.claims.count("c.g2") == 0);
      CHECK(work_with({"c"}, true) == Taken{0});
    }});
  });
}

TEST_CASE(
    "an incomplete line of a claim is ignored, and the error for a malformed claim names the "
    "claim") {
  ClaimHolder holder;
  holder.plan = "p";
  holder.host = "node1";
  holder.pid = 12;
  const std::string line = holder_line(holder);
  CHECK(parse_claim(line, "c").holder == holder);
  CHECK_FALSE(parse_claim(line.substr(0, line.size() - 1), "c").holder);
  CHECK(parse_claim(line + "beat\nbeat\nrelea", "c").num_beats == 2);
  CHECK(parse_claim(line + "beat\nreleased", "c").end == std::nullopt);
  // a full disk cut off the line `released`, so `beat` follows on the same line
  CHECK(parse_claim(line + "reabeat\nbeat\nreleased\n", "c").end == ClaimState::kFree);
  const ClaimText failed = parse_claim(line + end_line(ClaimState::kFailed, "two\nlines"), "c");
  CHECK(failed.end == ClaimState::kFailed);
  CHECK(failed.reason == "two\\nlines");
  CHECK_THROWS_WITH(parse_claim("nonsense\n", "claims/a.g1"), Catch::StartsWith("claims/a.g1"));
  CHECK_THROWS_WITH(parse_claim("{\"schema\": \"rematch.claim/2.0\"}\n", "claims/a.g1"),
                    Catch::StartsWith("claims/a.g1: "));
  CHECK(parse_claim_name("0a.g12")->generation == 12);
  for (const char* name : {"", "a", ".g1", "a.g0", "a.g-1", "a.g1x", "a.json"}) {
    CAPTURE(name);
    CHECK_FALSE(parse_claim_name(name));
  }
}

}  // namespace
}  // namespace rematch
