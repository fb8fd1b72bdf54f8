/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an Example: an image inside of them and a label, or one error line. */
#include "data/example.h"

#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_example_source source = {.name = "shard", .n = size_bytes, .bytes = bytes};
  laci_example_view view;
  lac_error err = {0};
  lac_status st = laci_example_find_features(&source, &view, &err);
  require_one_line(st, &err);
  require(st || (view.encoded <= size_bytes && view.encoded_bytes <= size_bytes - view.encoded));
  return 0;
}
