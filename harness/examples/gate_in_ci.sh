#!/usr/bin/env bash
# Usage: harness/examples/gate_in_ci.sh [FOLDER]
#
# A CI step that fails if checkpointing changes a bit, if the number of recomputed ops is not the promised number, or if
# a step needs too much memory. Writes reports and a page into FOLDER (default: results). Exit code: 3 for a failed
# check, 4 if a check could not decide. scripts/ci_gate_example is a larger example.
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
