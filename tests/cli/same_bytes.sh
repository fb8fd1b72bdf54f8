#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# same_bytes.sh LACUNA: one input, options and seed give the same file, whatever the threads and the instruction set.
set -eu
lacuna=$1
model=${LAC_SOURCE_DIR:-$(dirname "$0")/../..}/examples/digits/digits.onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0

prune() { # prune NAME THREADS
  "$lacuna" prune --no-calibration -q --force --no-verify --threads "$2" --save-permutation "$folder/$1.json" -o "$folder/$1.onnx" "$model" \
    > /dev/null
}
same() { # same NAME WHAT
  if cmp -s "$folder/first.onnx" "$folder/$1.onnx" && cmp -s "$folder/first.json" "$folder/$1.json"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: other bytes with $2"
  fi
}

prune first 1
for threads in 2 3 8; do
  prune other "$threads"
  same other "$threads threads"
done
for cpu in scalar avx2 avx512; do
  LAC_CPU=$cpu prune other 2
  same other "LAC_CPU=$cpu"
done
prune other 2
if cmp -s "$folder/first.onnx" "$folder/other.onnx"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
