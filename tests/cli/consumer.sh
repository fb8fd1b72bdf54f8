#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# consumer.sh BUILD: a program outside the tree is compiled with what pkg-config says of an installed Lacuna, against the shared
# and the static library, and prunes the digits' network.
set -eu
build=$1
top=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" >/dev/null
pc=$(find "$folder/usr" -name lacuna.pc)
libraries=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH="$(dirname "$pc")" LD_LIBRARY_PATH="$libraries"
passed=0
failed=0
try() { # sentence, what to link
  sentence=$1
  shift
  rm -f "$folder/pruned.onnx"
  # shellcheck disable=SC2046 # a list of words
  if ${CC:-cc} -o "$folder/prune_model" "$top/examples/prune_model.c" $(pkg-config --cflags lacuna) "$@" &&
    "$folder/prune_model" "$top/examples/digits/digits.onnx" "$folder/pruned.onnx" >/dev/null && test -s "$folder/pruned.onnx"; then
    passed=$((passed + 1))
  else
    echo "$sentence: it is not built, or does not run"
    failed=$((failed + 1))
  fi
}
# shellcheck disable=SC2046
try "a program with the shared library" $(pkg-config --libs lacuna)
rm "$libraries"/liblacuna.so*
# What lacuna.pc names, with shared libraries of others: `pkg-config --static` would want their own private ones, which Debian
# does not install with them.
private=$(pkg-config --print-requires-private lacuna | sed 's/ .*//')
# shellcheck disable=SC2046,SC2086
try "a program with the static library alone" $(pkg-config --libs lacuna $private) $(sed -n 's/^Libs.private: //p' "$pc")
version=$(sed -n 's/^#define LAC_VERSION_[A-Z]* //p' "$top/include/lacuna/version.h" | head -3 | paste -sd.)
if [ "$(pkg-config --modversion lacuna)" = "$version" ]; then passed=$((passed + 1)); else
  echo "pkg-config says version $(pkg-config --modversion lacuna), the header $version"
  failed=$((failed + 1))
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
