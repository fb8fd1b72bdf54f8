/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a pack, their checksums made right: files or one error line. */
#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "pack/packfile.h"
#include "support/pack_mend.h"

/* Reads every byte that it is given. */
static lac_status sum_up(const void *bytes, size_t n, void *context, lac_error *err) {
  const uint8_t *at = bytes;
  (void)err;
  for (size_t i = 0; i < n; i++) *(uint64_t *)context += at[i];
  return LAC_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_packfile *pack = NULL;
  lac_error err = {0};
  uint64_t sum = 0;
  uint8_t *mended = laci_alloc(size_bytes, 1);
  require(mended != NULL);
  if (size_bytes) memcpy(mended, bytes, size_bytes);
  pack_mend(mended, size_bytes);
  lac_status st = laci_packfile_open_memory(mended, size_bytes, &pack, &err);
  require_one_line(st, &err);
  require((st == LAC_OK) == (pack != NULL));
  for (size_t file = 0; pack && file < laci_packfile_n_files(pack); file++) {
    st = laci_packfile_restore_file(pack, file, sum_up, &sum, &err);
    require(st == LAC_OK || st == LAC_BAD_FILE);
  }
  laci_packfile_close(pack);
  laci_free(mended);
  return 0;
}
