#include "harness/cli/commands.h"
#include "harness/cli/flags/shared_flags.h"
#include "harness/cli/libtorch/run_points.h"

namespace rematch {

void add_run(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  const auto flags = add_command<RunFlags>(
      app, action, "run",
      "Trains under each policy and compares: executed ops, peak bytes, time, bits", run_points,
      "Examples:\n"
      "  rematch run --model llama_small --policy none,full,attn_only --steps 10 -o report.json\n"
      "  rematch run --model wan_small --policy 'skip_nth(2),save_mm' --schedule both\n"
      "  rematch run --model llama_small --policy none,full --repeat-reference 3 -o report.json\n"
      "  rematch run --model wan_1_3b --layers 30 --dim 64 --heads 4 --ffn 128 --tokens 64 \\\n"
      "      --steps 10 --policy none,full,attn_only\n"
      "  rematch run --model llama_small --policy none,full,attn_only --shard 0/2 -o mine.json\n"
      "  rematch merge mine.shard-*-of-2.json -o mine.json\n"
      "  rematch run --model wan_small --policy none,full --shard slurm -o mine.json\n"
      "  rematch run --model llama_small --parallel tp=2,sp --policy none,full,attn_only\n"
      "  rematch run --model llama_small --parallel tp=8,fsdp=8 --pretend-rank 16 --policy full\n"
      "With -o, rerun the command to resume an interrupted run.");
  flags->command = command;
}

}  // namespace rematch
