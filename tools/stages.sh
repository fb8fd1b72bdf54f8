#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by .ci/run and tools/check_long: stages that go on after a failure, so that one run shows all of them. Each says
# how long it took; stages_end prints "N passed, N failed" and returns 1 where anything failed.
LAC_TOTALS=$(mktemp)
export LAC_TOTALS
trap 'rm -f "$LAC_TOTALS"' EXIT
failed_stages=()

# step NAME COMMAND...: a stage that passes or fails as a whole.
step() {
  local name=$1 begin=$SECONDS
  shift
  printf '== %s\n' "$name"
  if "$@"; then
    echo "1 passed, 0 failed" >> "$LAC_TOTALS"
  else
    echo "0 passed, 1 failed" >> "$LAC_TOTALS"
    failed_stages+=("$name")
  fi
  printf '== %s: %d s\n' "$name" $((SECONDS - begin))
}

# tests NAME COMMAND...: a stage that adds its own counts; one that fails without counting is one failure.
tests() {
  local name=$1 begin=$SECONDS before
  shift
  printf '== %s\n' "$name"
  before=$(awk '{n += $3} END {print n + 0}' "$LAC_TOTALS")
  if ! "$@"; then
    failed_stages+=("$name")
    if [ "$(awk '{n += $3} END {print n + 0}' "$LAC_TOTALS")" -eq "$before" ]; then
      echo "0 passed, 1 failed" >> "$LAC_TOTALS"
    fi
  fi
  printf '== %s: %d s\n' "$name" $((SECONDS - begin))
}

# interop [--torch] BUILD [pytest options]: pytest ends with "3 failed, 20 passed, 1 skipped in 4.2s".
interop() {
  local log=$LAC_TOTALS.pytest code
  tools/interop "$@" 2>&1 | tee "$log"
  code=$?
  tail -n 1 "$log" | awk '
    {for (i = 2; i <= NF; i++) {if ($i ~ /^passed/) ok = $(i - 1); if ($i ~ /^(failed|error)/) bad += $(i - 1)}}
    END {printf "%d passed, %d failed\n", ok, bad}' >> "$LAC_TOTALS"
  rm -f "$log"
  return "$code"
}

# build PRESET [options of cmake --build]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" > /dev/null && cmake --build "build/$preset" "$@"
}

# read_by PRESET FOLDER...: its compiler has no warning of any file in there; nothing is compiled.
read_by() {
  local preset=$1
  shift
  cmake --preset "$preset" > /dev/null && tools/check_warnings "build/$preset" "$@"
}

stages_end() {
  if ((${#failed_stages[@]})); then printf 'failed: %s\n' "${failed_stages[@]}"; fi
  printf '== all of it: %d s\n' "$SECONDS"
  awk '{ok += $1; bad += $3} END {printf "%d passed, %d failed\n", ok, bad; exit bad > 0}' "$LAC_TOTALS" &&
    ((${#failed_stages[@]} == 0))
}
