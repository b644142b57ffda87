#include "tests/reports/render/sample_front.h"

#include <utility>

#include "policies/search/front/measured_front.h"
#include "tests/reports/render/sample_values.h"

namespace rematch::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

FrontPoint planned(const std::string& policy, const std::string& saves, std::int64_t peak_mib,
                   microseconds step) {
  FrontPoint point;
  point.plan.policy = policy;
  point.plan.trace_sha256 = policy;  // gives each plan its own hash
  point.saves = saves;
  point.figures.peak = {peak_mib * kMiB};
  point.figures.peak_place = "blocks.3";
  point.figures.num_recomputed = (160 - peak_mib) * 4;
  point.step_time = step;
  point.step_time_bound = step;
  return point;
}

// Returns measured figures: the predicted step time multiplied by `times`, with an interval of 2 %.
MeasuredFigures ran(const FrontPoint& point, double times, std::int64_t more_bytes = 0) {
  MeasuredFigures figures;
  figures.peak = point.figures.peak + Bytes{more_bytes};
  const auto step = static_cast<double>(point.step_time.count()) * times;
  figures.step_time = nanoseconds(static_cast<std::int64_t>(step));
  figures.step_interval = {nanoseconds(static_cast<std::int64_t>(step * 0.99)),
                           nanoseconds(static_cast<std::int64_t>(step * 1.01))};
  return figures;
}

}  // namespace

FrontRecord predicted_front() {
  FrontRecord record;
  record.model = "wan_small";
  record.dimensions = {{"batch", 1}, {"dim", 256}, {"layers", 4}};
  record.dtype = "float32";
  record.device = "cpu";
  record.device_memory = Bytes{148 * kMiB};
  Front& front = record.front;
  front.points = {
      planned("search(0)", "layers 0-3: recompute all", 60, microseconds(130'000)),
      planned("search(9)", "layers 0-2: keep attention.core::rematch::attention; 3: keep all", 74,
              microseconds(122'000)),
      planned("search(21)", std::string("layers 0-3: keep ") + kHostile, 83, microseconds(117'000)),
      planned("search(40)", "layers 0-1: keep ffn.gate::aten::mm; 2-3: keep all", 96,
              microseconds(108'000)),
      planned("search(55)", "layers 0: recompute all; 1-3: keep all", 128, microseconds(104'000)),
      planned("none", "layers 0-3: keep all", 160, microseconds(100'000))};
  const std::vector<std::string> attention = {"attention.core::rematch::attention"};
  const std::vector<std::string> gate = {"ffn.gate::aten::mm"};
  front.points[0].layers = {{"0-3", true, {}, {}}};
  front.points[1].layers = {{"0-2", true, {}, attention}, {"3", false, {}, {}}};
  front.points[2].layers = {{"0-3", true, {}, {kHostile}}};
  front.points[3].layers = {{"0-1", true, {}, gate}, {"2-3", false, {}, {}}};
  front.points[4].layers = {{"0", true, {}, {}}, {"1-3", false, {}, {}}};
  front.points[5].layers = {{"0-3", false, {}, {}}};
  front.nothing_recomputed = front.points.back();
  front.knee = 3;
  front.num_plans_found = 56;
  front.time_gap = microseconds(120);
  front.hypervolume = 0.25;
  front.baseline_hypervolume = 0.19;
  front.verdict = "checkpointing lowers the peak by up to 62 %, for 30 % more step time";
  for (const auto& [policy, peak, step] :
       {std::tuple{"full", 60, 134'000}, std::tuple{"none", 160, 100'000},
        std::tuple{"nth_first(2)", 110, 117'000}, std::tuple{"first_n(2)", 110, 117'000},
        std::tuple{"torchtune(ac_mode=selective,ac_option=2)", 98, 119'000},
        std::tuple{kHostile, 84, 126'000}}) {
    front.baselines.push_back({planned(policy, "as it says", peak, microseconds(step)), true});
  }
  return record;
}

FrontRecord representative_front() {
  FrontRecord record = predicted_front();
  Front& front = record.front;
  const auto run = [](FrontPoint& point, double times, std::int64_t more_bytes = 0) {
    point.measured = ran(point, times, more_bytes);
  };
  run(front.points[0], 1.0);
  run(front.points[1], 1.15);
  run(front.points[3], 1.02);
  front.points[4].measured.emplace();
  front.points[4].measured->status = "timeout";
  front.points[4].measured->reason = "no result after 10 min";
  run(front.points[5], 1.0);
  run(front.baselines[0].point, 0.98);
  run(front.baselines[1].point, 1.0);
  run(front.baselines[2].point, 1.03);
  run(front.baselines[3].point, 0.97, 2 * kMiB);
  run(front.baselines[5].point, 0.9, -12 * kMiB);
  weigh_measurement(front, {0, 3, 5}, std::array<double, 2>{0.99, 1.01});
  return record;
}

}  // namespace rematch::testing
