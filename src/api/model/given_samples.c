/* SPDX-License-Identifier: Apache-2.0 */
#include "api/model/given_samples.h"

#include <pthread.h>

#include "api/model/arrays.h"
#include "api/model/callback.h"
#include "api/model/structs.h"
#include "base/error.h"
#include "base/memory.h"

struct laci_given_samples {
  lac_samples from;
  laci_rows_memory *rows; /* [from.n_arrays] each array as rows of samples */
  pthread_mutex_t lock;   /* held while read_row runs */
};

const char laci_memory_name[] = "(memory)";

static lac_status read_row_locked(void *context, const char *name, int64_t row, void *to,
                                  lac_error *err) {
  laci_given_samples *own = context;
  lac_error said = {0};
  (void)pthread_mutex_lock(&own->lock);
  lac_status st = own->from.read_row(own->from.read_context, name, row, to, &said);
  (void)pthread_mutex_unlock(&own->lock);
  return st ? laci_callback_copy_error(st, &said, name, "read_row", err) : st;
}

lac_status laci_given_samples_open(const lac_samples *samples, laci_given_samples **own,
                                   lac_error *err) {
  *own = NULL;
  laci_given_samples *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, "the samples");
  (void)pthread_mutex_init(&made->lock, NULL); /* never fails with default attributes */
  lac_status st = laci_take_samples(samples, &made->from, err);
  laci_rows_fetch *read = made->from.read_row ? read_row_locked : NULL;
  if (!st) {
    st = laci_arrays_as_rows(made->from.arrays, made->from.n_arrays, read, made, &made->rows, err);
  }
  if (st) laci_given_samples_close(made);
  else *own = made;
  return st;
}

void laci_given_samples_close(laci_given_samples *own) {
  if (!own) return;
  (void)pthread_mutex_destroy(&own->lock);
  laci_free(own->rows);
  laci_free(own);
}

const laci_rows_memory *laci_given_samples_rows(const laci_given_samples *own, int *n) {
  *n = own ? own->from.n_arrays : 0;
  return own ? own->rows : NULL;
}

lac_status laci_check_data_source(const char *function, const char *data, const lac_samples *memory,
                                  lac_error *err) {
  if (!data != !memory) return LAC_OK;
  if (!data) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: data is NULL", function);
  return laci_fail(err, LAC_BAD_ARGUMENT, "%s: data and options.from_memory: wanted one of them",
                   function);
}
