/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a .npy file: an array whose bytes its type and shape want, or one error line. */
#include "data/npy.h"

#include "base/memory.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_npy array = {0};
  lac_error err = {0};
  lac_status st = laci_npy_parse("x.npy", bytes, size_bytes, &array, &err);
  require_one_line(st, &err);
  require(st == LAC_OK || !array.bytes);
  laci_npy_clear(&array);
  return 0;
}
