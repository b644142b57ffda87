#include "harness/cli/flags/run_flags.h"

#include "harness/cli/flags/flag_values.h"
#include "models/preset/parallel.h"

namespace rematch {
namespace {

constexpr int kMostRepeats = 1000;
constexpr int kUsualRepeats = 4;

}  // namespace

RunFlags::RunFlags(CLI::App& app) : model(app, ModelFlags::Name::kFlag) {
  add_policy_flags(app);
  app.add_option("--schedule", schedule, "whole_region, on_demand or both");
  app.add_option(
      "--device", device,
      "cpu, meta, cuda, cuda:1, or cuda-dry: kernel launches and memory of CUDA without a GPU");
  app.add_option("--card", card,
                 "Card that cuda-dry stands for: h100, h200, l40s or a100 (default: h100)");
  app.add_option("--attention", attention,
                 "Attention backend: flash, cudnn, efficient or math (default: the first that "
                 "device and dtype have; for times on CUDA, LibTorch's choice)");
  app.add_option("--allocator", allocator,
                 "Allocator of CUDA: caching, or expandable (segments) (default: as "
                 "PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF says)");
  add_measure_flags(app);
  app.add_option("--optimizer", optimizer,
                 "adamw, adamw(learning_rate=3e-4), or none for forward and backward alone");
  app.add_option("--data", data_file,
                 "Text file to train on (default: the text that ships with rematch)");
  app.add_option("--pretend-rank", pretend_rank,
                 "Measure this rank of --parallel's layout alone, in one process: collectives "
                 "fill their results locally, so counts and bytes are right and values are not")
      ->check(CLI::Range(0, static_cast<int>(kMaxWorld) - 1));
  app.add_option("--reference", reference, "Policy that the others are compared with");
  app.add_option("--repeat-reference", num_repeats,
                 "Number of further runs of the reference, 4 if no number is given; rematch gate "
                 "takes the noise from them (default: 0)")
      ->expected(0, 1)
      ->default_str(std::to_string(kUsualRepeats))
      ->check(CLI::Range(0, kMostRepeats));
  app.add_option("--shard", shard,
                 "Run only a share of the points, counted from 0: 2/8; or slurm: the share of "
                 "this task of a Slurm job array");
  app.add_flag("--deterministic-times", deterministic_times,
               "Time deterministic kernels on CUDA instead of the fastest");
  app.add_option("--snapshot", snapshot,
                 "File for the CUDA allocator's snapshot over one step of one policy, for "
                 "pytorch.org/memory_viz; of several ranks one each: x.rank-0-of-2.pickle for "
                 "x.pickle");
  app.add_option(
      "-o,--output", output,
      "Report to write; points are stored in a folder beside it, and a rerun resumes from them");
  app.add_flag("--json", json, "Print the report instead of the table");
}

}  // namespace rematch
