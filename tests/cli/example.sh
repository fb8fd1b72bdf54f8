#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# example.sh PRUNE_MODEL TRAIN_FROM_MEMORY: the example programs do what docs/reference/c-api.md and the how-to say.
set -u
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0 failed=0
expect() { # expect SENTENCE COMMAND...
  sentence=$1
  shift
  if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $sentence"; fi
}
digits=$LAC_SOURCE_DIR/examples/digits/digits.onnx
expect "prunes the digits network" sh -c "$1 $digits $folder/out.onnx > $folder/said.txt"
expect "says how many layers can be pruned" grep -q "layers can be pruned" "$folder/said.txt"
expect "names a tensor's order and mask" grep -q "^layer1.0.conv1.weight: first channel was [0-9]*, first weight [a-z]" "$folder/said.txt"
expect "takes a network from memory" sh -c "$1 - $folder/memory.onnx < $digits > /dev/null"
expect "writes the same for it" cmp "$folder/out.onnx" "$folder/memory.onnx"
expect "the result holds the pattern" sh -c "$LAC_BUILD_DIR/lacuna check -q $folder/out.onnx > /dev/null"
expect "fails with status 1 on a file that is not there" sh -c "$1 $folder/none.onnx $folder/x.onnx 2> /dev/null; test \$? = 1"
expect "ends with status 2 without arguments" sh -c "$1 2> /dev/null; test \$? = 2"
expect "trains from memory" sh -c "$2 $digits $folder/trained.onnx > $folder/trained.txt"
expect "evaluates from memory" grep -q "^64 samples: top-1 [0-9.]*%$" "$folder/trained.txt"
expect "takes masks out" grep -q "^layer1.0.conv1.weight: [0-9]* of [0-9]* weights kept$" "$folder/trained.txt"
expect "trained weights hold the pattern" sh -c "$LAC_BUILD_DIR/lacuna check -q $folder/trained.onnx > /dev/null"
# An installed tree may be moved: pkg-config's file finds what lies next to it.
libdir=$(sed -n 's|^libdir=${prefix}/||p' "$LAC_BUILD_DIR/lacuna.pc")
mkdir -p "$folder/moved/$libdir/pkgconfig" "$folder/moved/include" && cp "$LAC_BUILD_DIR/lacuna.pc" "$folder/moved/$libdir/pkgconfig"
expect "pkg-config's file finds headers that were moved with it" sh -c "cd $folder/moved/include &&
  test \"\$(cd \"\$(PKG_CONFIG_PATH=$folder/moved/$libdir/pkgconfig pkg-config --variable=includedir lacuna)\" && pwd -P)\" = \"\$(pwd -P)\""
# The page shows the program as it is.
expect "docs/reference/c-api.md names every function of the list" sh -c "! sed 's/.*/\`&/' $LAC_SOURCE_DIR/src/lacuna.symbols |
  while read -r name; do grep -qF \"\$name\" $LAC_SOURCE_DIR/docs/reference/c-api.md || echo \"\$name\"; done | grep ."
echo "$passed passed, $failed failed"
exit $((failed > 0))
