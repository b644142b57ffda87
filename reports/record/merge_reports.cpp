#include "reports/record/merge_reports.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "policies/base/field_value.h"
#include "policies/base/json.h"
#include "policies/trace/by_phase.h"
#include "reports/record/json/point_json.h"

namespace rematch {
namespace {

struct Entry {
  PointRecord point;
  std::string key;
  std::string fingerprint;
  std::string provenance;  // the provenance as JSON; it differs between commands
  std::size_t place = 0;   // position in the requested order
  std::string text;  // the point's JSON; empty until two measurements of the point must be compared
};

// Returns the first key whose values differ, among the keys whose values must be equal in all
// measurements of a point.
std::optional<std::string> difference(const PointRecord& left, const PointRecord& right) {
  const Json one = repeated_fields(left);
  const Json other = repeated_fields(right);
  for (const auto& [name, value] : one.items()) {
    if (!other.contains(name) || other[name] != value) return name;
  }
  for (const auto& [name, value] : other.items()) {
    if (!one.contains(name)) return name;
  }
  return std::nullopt;
}

class Merge {
 public:
  Merge(std::vector<Report> reports, MixedEnvironments mixed, PointOrder order)
      : reports_(std::move(reports)), mixed_(mixed), order_(order) {}

  std::variant<MergedReport, Rejected, FingerprintsDiffer> run() {
    if (reports_.empty()) return Rejected{"nothing to merge: give one report or more"};
    merged_.report.unknown = unknown_in_common();
    collect_planned();
    collect_repeats();
    collect_unmeasured();
    for (Report& report : reports_) collect(report);
    if (auto differ = different_fingerprints()) return std::move(*differ);
    sort();
    if (auto rejected = drop_repeated()) return std::move(*rejected);
    list_missing();
    write();
    return std::move(merged_);
  }

 private:
  std::map<std::string, std::string> unknown_in_common() const {
    std::map<std::string, std::string> common = reports_.front().unknown;
    for (const Report& report : reports_) {
      std::erase_if(common, [&](const auto& member) {
        const auto found = report.unknown.find(member.first);
        return found == report.unknown.end() || found->second != member.second;
      });
    }
    return common;
  }

  // Merges this list of all reports. If all nonempty lists are equal, keeps their order. Otherwise
  // sorts by `order` and drops duplicates.
  template <class T, class Order, class IsSame>
  std::vector<T> united(std::vector<T> Report::*list, Order order, IsSame is_same) const {
    std::vector<T> all;
    bool is_one_list = true;
    for (const Report& report : reports_) {
      const std::vector<T>& own = report.*list;
      if (own.empty() || own == all) continue;
      is_one_list = is_one_list && all.empty();
      all.insert(all.end(), own.begin(), own.end());
    }
    if (is_one_list) return all;
    std::sort(all.begin(), all.end(),
              [&](const T& left, const T& right) { return order(left) < order(right); });
    all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
    return all;
  }

  void collect_planned() {
    const auto order = [](const PlannedPoint& point) { return std::tie(point.policy, point.key); };
    const std::vector<PlannedPoint>& planned = merged_.report.planned =
        united(&Report::planned, order, std::equal_to<>());
    for (std::size_t place = 0; place < planned.size(); ++place) {
      places_.emplace(std::pair(planned[place].key, planned[place].policy), place);
    }
  }

  // The number of copies of a repeat is the largest number in any report, not the sum. Merging a
  // report with itself therefore adds nothing.
  void collect_repeats() {
    bool one_list = true;
    std::map<std::string, std::pair<RepeatRecord, std::ptrdiff_t>> kept;
    for (const Report& report : reports_) {
      std::map<std::string, std::ptrdiff_t> of_this_one;
      one_list = one_list && report.repeats == reports_.front().repeats;
      for (const RepeatRecord& repeat : report.repeats) {
        const std::string text = to_value(repeat).dump();
        auto& [record, count] = kept.try_emplace(text, repeat, 0).first->second;
        count = std::max(count, ++of_this_one[text]);
      }
    }
    if (one_list) {
      merged_.report.repeats = reports_.front().repeats;
      return;
    }
    for (const auto& [text, entry] : kept) {
      merged_.report.repeats.insert(merged_.report.repeats.end(), entry.second, entry.first);
    }
  }

  // Collects the unmeasured comparisons of all sweeps, except those that another sweep measured.
  void collect_unmeasured() {
    const auto which = [](const auto& one) {
      return std::tie(one.model, one.dimensions, one.dtype, one.seed);
    };
    const auto order = [&](const UnmeasuredComparison& one) {
      return std::tuple_cat(which(one), std::tie(one.outcome, one.reason, one.policies));
    };
    std::set<decltype(which(UnmeasuredComparison()))> measured;
    for (const Report& report : reports_) {
      for (const PointRecord& point : report.points) measured.insert(which(point.identity));
    }
    merged_.report.unmeasured =
        united(&Report::unmeasured, order,
               [&](const auto& left, const auto& right) { return which(left) == which(right); });
    std::erase_if(merged_.report.unmeasured,
                  [&](const auto& one) { return measured.count(which(one)) != 0; });
  }

  void collect(Report& report) {
    if (report.sources.empty()) {
      report.sources.push_back({report.provenance, {}});
      for (std::size_t index = 0; index < report.points.size(); ++index) {
        report.sources.back().points.push_back(index);
      }
    }
    const std::size_t first_place = entries_.size();
    for (const ReportSource& source : report.sources) {
      const std::string text = to_value(source.provenance).dump();
      const std::string machine = fingerprint(source.provenance.environment);
      provenances_.emplace(text, source.provenance);
      for (const std::size_t index : source.points) {
        PointRecord& point = report.points[index];
        std::string key = point_key(point.identity);
        const std::size_t place =
            order_ == PointOrder::kGiven ? first_place + index : place_of(key, point.policy);
        entries_.push_back({std::move(point), std::move(key), machine, text, place, ""});
      }
    }
  }

  std::optional<FingerprintsDiffer> different_fingerprints() const {
    std::set<std::string> fingerprints;
    for (const auto& [text, provenance] : provenances_) {
      fingerprints.insert(fingerprint(provenance.environment));
    }
    if (fingerprints.size() < 2 || mixed_ == MixedEnvironments::kKeepApart) return std::nullopt;
    const Json first = to_value(provenances_.begin()->second.environment);
    std::string names;
    for (const auto& [name, value] : first.items()) {
      if (!is_in_fingerprint(name)) continue;
      const bool differs =
          std::any_of(provenances_.begin(), provenances_.end(), [&, key = name](const auto& other) {
            return to_value(other.second.environment).at(key) != first.at(key);
          });
      if (differs) names.append(names.empty() ? "" : ", ").append(name);
    }
    return FingerprintsDiffer{"the reports were measured in " +
                              std::to_string(fingerprints.size()) +
                              " environments, which differ in " + names +
                              "; merge one environment at a time, or add --allow-mixed to keep the "
                              "environments apart in one file"};
  }

  std::size_t place_of(const std::string& key, const std::string& policy) const {
    const auto found = places_.find({key, policy});
    return found == places_.end() ? places_.size() : found->second;
  }

  static auto identity_of(const Entry& entry) {
    return std::tie(entry.fingerprint, entry.key, entry.point.policy);
  }

  // Sorts by environment, then planned order, then names. Measurements of one point are then
  // ordered by their whole content.
  void sort() {
    const auto order = [](const Entry& entry) {
      return std::make_tuple(std::cref(entry.fingerprint), entry.place,
                             std::cref(entry.point.identity.model), std::cref(entry.point.policy),
                             entry.point.identity.schedule, std::cref(entry.key));
    };
    std::sort(entries_.begin(), entries_.end(),
              [&](const Entry& left, const Entry& right) { return order(left) < order(right); });
    for (auto begin = entries_.begin(); begin != entries_.end();) {
      const auto end = std::find_if(begin, entries_.end(), [&](const Entry& entry) {
        return identity_of(entry) != identity_of(*begin);
      });
      if (end - begin > 1) sort_measurements(begin, end);
      begin = end;
    }
  }

  static void sort_measurements(std::vector<Entry>::iterator begin,
                                std::vector<Entry>::iterator end) {
    for (auto entry = begin; entry != end; ++entry)
      entry->text = point_to_json(entry->point).dump();
    const auto order = [](const Entry& entry) {
      return std::make_tuple(is_mishap(entry.point.status), entry.point.status,
                             std::cref(entry.text), std::cref(entry.provenance));
    };
    std::sort(begin, end,
              [&](const Entry& left, const Entry& right) { return order(left) < order(right); });
  }

  // True if the process or machine made the point fail: out of memory, time-out, a killed process,
  // too small a machine. Another measurement may then replace the point. A point of status
  // invalid is never replaced, because its measurement shows an error.
  static bool is_mishap(PointStatus status) {
    return status != PointStatus::kOk && status != PointStatus::kInvalid;
  }

  std::optional<Rejected> drop_repeated() {
    std::vector<Entry> kept;
    for (Entry& entry : entries_) {
      if (kept.empty() || identity_of(kept.back()) != identity_of(entry)) {
        kept.push_back(std::move(entry));
        continue;
      }
      if (is_mishap(entry.point.status)) {
        note_mishap(entry, kept.back());
        continue;
      }
      if (const auto differing = difference(kept.back().point, entry.point)) {
        return Rejected{"point " + entry.point.policy + " with the key " + entry.key +
                        " was measured twice and differs in \"" + *differing +
                        "\", which must repeat exactly; leave one of the files out"};
      }
      if (kept.back().text != entry.text) ++repeated_[entry.point.policy];
    }
    entries_ = std::move(kept);
    for (const auto& [policy, times] : repeated_) {
      merged_.notes.push_back("point " + policy + " was measured " + std::to_string(times + 1) +
                              " times with equal ops, bytes and bits; one measurement is kept");
    }
    return std::nullopt;
  }

  // Adds a note that the better measurement was kept. Adds no note if both measurements failed in
  // the same way.
  void note_mishap(const Entry& failed, const Entry& kept) {
    if (is_mishap(kept.point.status) && kept.point.status == failed.point.status) return;
    merged_.notes.push_back("point " + failed.point.policy + " ended " +
                            std::string(to_string(failed.point.status)) +
                            " in one of the reports; the kept point ended " +
                            std::string(to_string(kept.point.status)));
  }

  void list_missing() {
    std::set<std::pair<std::string, std::string>> there;
    for (const Entry& entry : entries_) there.emplace(entry.key, entry.point.policy);
    for (const PlannedPoint& point : merged_.report.planned) {
      if (there.count({point.key, point.policy}) == 0) merged_.missing.push_back(point);
    }
  }

  void write() {
    Report& report = merged_.report;
    report.provenance = provenance_in_common(provenances_);
    std::map<std::string, ReportSource> sources;
    for (const auto& [text, provenance] : provenances_) sources[text].provenance = provenance;
    for (std::size_t index = 0; index < entries_.size(); ++index) {
      sources[entries_[index].provenance].points.push_back(index);
      report.points.push_back(std::move(entries_[index].point));
    }
    if (sources.size() < 2) return;
    for (auto& [text, source] : sources) report.sources.push_back(std::move(source));
  }

  std::vector<Report> reports_;
  MixedEnvironments mixed_;
  PointOrder order_;
  std::map<std::string, Provenance> provenances_;
  // position of each planned point, by key and policy
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::vector<Entry> entries_;
  std::map<std::string, int> repeated_;
  MergedReport merged_;
};

}  // namespace

std::variant<MergedReport, Rejected, FingerprintsDiffer> merge_reports(std::vector<Report> reports,
                                                                       MixedEnvironments mixed,
                                                                       PointOrder order) {
  return Merge(std::move(reports), mixed, order).run();
}

}  // namespace rematch
