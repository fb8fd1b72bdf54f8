/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target of packs: any bytes, their checksums made right, give files or one error line.
 *
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -Iinclude -Isrc -Itests \
 *         tests/fuzz/fuzz_pack.c src/pack/open.c src/pack/restore.c src/sparse/pack.c \
 *         <the sources of src/base and src/tensor> -lxxhash -lm
 *     ./a.out -max_len=8192 tests/fuzz/corpus_pack
 * Inputs worth keeping go into corpus_pack, which tests/unit/pack_file.c replays. */
#include "pack/packfile.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/pack_mend.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes);

static void require(bool holds) {
  if (!holds) abort();
}

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
  require((st == LAC_OK) == (pack != NULL) && (st == LAC_OK) == (err.text[0] == '\0'));
  require(!strchr(err.text, '\n'));
  for (size_t file = 0; pack && file < laci_packfile_n_files(pack); file++) {
    st = laci_packfile_restore(pack, file, sum_up, &sum, &err);
    require(st == LAC_OK || st == LAC_BAD_FILE);
  }
  laci_packfile_close(pack);
  laci_free(mended);
  return 0;
}
