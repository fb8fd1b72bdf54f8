/* SPDX-License-Identifier: Apache-2.0
 * Parts that Lacuna may be built without (cmake/optional.cmake): they work, or say that they are
 * not there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "base/memory.h"
#include "data/image.h"
#include "report/label.h"
#include "report/render.h"
#include "support/programs.h"

static void a_photograph_is_read_or_refused(void **state) {
  (void)state;
  laci_image image = {0};
  lac_error err = {0};
  lac_status st = laci_image_read(LAC_SOURCE_DIR "/tests/fixtures/data/colour.jpg", &image, &err);
#ifdef LAC_WITHOUT_JPEG
  assert_int_equal(st, LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "colour.jpg: this Lacuna was built without JPEG"));
#else
  assert_int_equal(st, LAC_OK);
#endif
  laci_image_clear(&image);
}

static void a_picture_is_drawn_or_refused(void **state) {
  (void)state;
  laci_label graph = {0};
  lac_error err = {0};
  char *bytes = NULL;
  size_t n = 0;
  if (is_emulated()) skip(); /* graphviz' program of its own */
  laci_label_add_markup(&graph, "digraph { a -> b }");
  lac_status st = laci_render(&graph, LACI_PICTURE_SVG, &bytes, &n, &err);
#ifdef LAC_WITHOUT_GRAPHVIZ
  assert_int_equal(st, LAC_UNSUPPORTED);
  assert_string_equal(
      err.text, "the drawing: this Lacuna was built without graphviz; a .dot file needs none");
#else
  assert_int_equal(st, LAC_OK);
  assert_true(n > 0);
#endif
  laci_free(bytes);
  laci_label_clear(&graph);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_photograph_is_read_or_refused),
      cmocka_unit_test(a_picture_is_drawn_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
