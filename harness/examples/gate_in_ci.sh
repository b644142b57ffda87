#!/usr/bin/env bash
# Usage: harness/examples/gate_in_ci.sh [FOLDER]
#
# A CI step that fails if checkpointing changes a bit, recomputes other ops than the policies promise, or needs too much
# memory. Reports and a page go to FOLDER (default: results). The exit code is the code of the first command that
# failed: 3 for a failed check, 4 if a check could not decide. scripts/ci_gate_example is a larger example. It also runs
# on a GPU, compares with a base report, and prints jobs for GitHub and GitLab.
set -euo pipefail
folder=${1:-results}
here=$(dirname "${BASH_SOURCE[0]}")
rematch=$here/../../scripts/rematch
mkdir -p "$folder"

# Train four steps under each policy. No steps are timed, because a CI runner is too noisy to time anything.
# The reference runs three times, to show that equal runs give equal bits.
"$rematch" run --model llama_small --policy none,full,attn_only --steps 4 --rounds 0 --repeat-reference 3 \
  -o "$folder/gate.json"

# Check that losses, gradients and parameters are bitwise equal to those of policy none at every
# step, and that no peak exceeds 64 MiB.
"$rematch" gate "$folder/gate.json" --reference "$folder/gate.json" --loss bitwise --max-peak-bytes 64MiB

# Check the number of recomputed attentions. The model has 8 blocks, so policy full recomputes 32 attentions in four
# steps. Policy attn_only promises to recompute none.
"$rematch" gate "$folder/gate.json" --policy full --expect recompute.attention_forward=32
"$rematch" gate "$folder/gate.json" --policy attn_only --expect recompute.attention_forward=0

# Write one HTML file that loads no scripts from the network. Upload it as an artifact of the job.
"$rematch" render "$folder/gate.json" -o "$folder/gate.html"
