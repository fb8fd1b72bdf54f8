/* SPDX-License-Identifier: Apache-2.0
 * Several threads in one process: what may be shared is shared, and nothing else is. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lacuna/mask.h"
#include "lacuna/prune.h"

#define DIGITS LAC_SOURCE_DIR "/examples/digits"

/* cmocka's assertions are for the main thread: the others leave what they found. */

static lac_model *load(void) {
  lac_model *model = NULL;
  lac_error err = {0};
  if (lac_model_load(DIGITS "/digits.onnx", &model, &err)) fail_msg("%s", err.text);
  return model;
}

typedef struct reader {
  pthread_t thread;
  const lac_model *model;
  char *text; /* the report of lac_inspect */
  int n_masks;
  lac_error err;
} reader;

static void *read_model(void *context) {
  reader *r = context;
  lac_options options = lac_options_default();
  lac_report *report = NULL;
  lac_mask *mask = NULL;
  options.threads = 1;
  r->n_masks = -1;
  if (lac_mask_from_model(r->model, &options, &mask, &r->err)) return NULL;
  r->n_masks = lac_mask_count(mask);
  lac_mask_destroy(mask);
  if (lac_inspect(r->model, &options, &report, &r->err)) return NULL;
  if (lac_report_json(report, &r->text, &r->err)) r->text = NULL;
  lac_report_destroy(report);
  return NULL;
}

static void threads_share_a_model_that_is_only_read(void **state) {
  (void)state;
  enum { N = 4 };
  lac_model *model = load();
  reader readers[N];
  for (int t = 0; t < N; t++) {
    readers[t] = (reader){.model = model};
    assert_int_equal(pthread_create(&readers[t].thread, NULL, read_model, &readers[t]), 0);
  }
  for (int t = 0; t < N; t++) assert_int_equal(pthread_join(readers[t].thread, NULL), 0);
  for (int t = 0; t < N; t++) {
    if (!readers[t].text) fail_msg("%s", readers[t].err.text);
    assert_string_equal(readers[t].text, readers[0].text);
    assert_int_equal(readers[t].n_masks, 0);
  }
  for (int t = 0; t < N; t++) lac_text_free(readers[t].text);
  lac_model_destroy(model);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_share_a_model_that_is_only_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
