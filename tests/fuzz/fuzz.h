/* SPDX-License-Identifier: Apache-2.0
 * What fuzz targets share. Each has LLVMFuzzerTestOneInput, which libFuzzer calls (`cmake --preset
 * fuzz`, target `fuzzers`) and which replay.c calls with every file of its corpus in the suite. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lacuna/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static inline void require(bool holds) {
  if (!holds) abort();
}

/** A failure has a text of one line, success has none. */
static inline void require_one_line(lac_status st, const lac_error *err) {
  require((st == LAC_OK) == (err->text[0] == '\0'));
  require(!strchr(err->text, '\n'));
}

#endif
