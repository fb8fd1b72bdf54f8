/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a .npz archive: arrays whose every row can be read, or one error line; and no more
 * memory than such a file could hold. */
#include "data/npz.h"

#include "base/budget.h"
#include "base/memory.h"
#include "fuzz/fuzz.h"
#include "tensor/buf.h"

static void read_rows(const laci_rows *rows) {
  const laci_type *type = laci_rows_type(rows);
  int64_t n = type->shape.rank > 0 ? type->shape.dims[0] : 1,
          width = laci_rows_elements_per_row(rows);
  if (width > 1 << 20 || n == 0) return;
  float *floats = laci_alloc((size_t)width, sizeof *floats);
  int64_t *integers = laci_alloc((size_t)width, sizeof *integers);
  require(floats && integers);
  for (int64_t row = 0; row < n && row < 16; row++) {
    lac_error err = {0};
    int64_t at = row % 2 ? n - 1 - row / 2 : row / 2; /* from both ends */
    bool is_float = laci_dtype_is_float(type->dtype);
    lac_status st = is_float ? laci_rows_read_f32(rows, at, floats, &err)
                             : laci_rows_read_i64(rows, at, integers, &err);
    require(st == LAC_OK);
  }
  laci_free(floats);
  laci_free(integers);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size_bytes) {
  laci_npz *npz = NULL;
  lac_error err = {0};
  lac_status st = laci_npz_open_memory("x.npz", bytes, size_bytes, &npz, &err);
  require_one_line(st, &err);
  require((st == LAC_OK) == (npz != NULL));
  for (int k = 0; npz && k < laci_npz_count(npz); k++) {
    laci_rows *rows = NULL;
    laci_budget budget = {.limit = 1 << 24};
    err = (lac_error){0};
    st = laci_npz_open_rows(npz, k, &budget, &rows, &err);
    require_one_line(st, &err);
    require((st == LAC_OK) == (rows != NULL));
    if (rows) read_rows(rows);
    laci_rows_close(rows);
  }
  laci_npz_close(npz);
  return 0;
}
