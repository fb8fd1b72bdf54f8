/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a pickle of CIFAR's: a value, or one error line. */
#include "data/pickle.h"

#include "base/memory.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_arena arena = {0};
  const laci_pickle_value *value = NULL;
  lac_error err = {0};
  lac_status st = laci_pickle_parse(&arena, "batch", bytes, size_bytes, &value, &err);
  require_one_line(st, &err);
  require((st == LAC_OK) == (value != NULL));
  (void)laci_pickle_find_in_dict(value, "data");
  laci_arena_clear(&arena);
  return 0;
}
