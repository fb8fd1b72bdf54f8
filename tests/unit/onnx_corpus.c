/* SPDX-License-Identifier: Apache-2.0
 * The broken files of fixtures/onnx_bad through the importer. */
#include "graph/graph.h"
#include "onnx_build.h"

#include <dirent.h>

static const char *source_dir(void) {
  const char *dir = getenv("LAC_SOURCE_DIR");
#ifdef LAC_SOURCE_DIR
  if (!dir) dir = LAC_SOURCE_DIR;
#endif
  return dir ? dir : ".";
}

/** Loads every file of a folder of the source tree whose name does not end in .md; counts them and
 * those refused. */
static void load_all(const char *name, int *n, int *n_refused) {
  char path[4096];
  *n = *n_refused = 0;
  (void)snprintf(path, sizeof path, "%s/%s", source_dir(), name);
  DIR *listing = opendir(path);
  if (!listing) fail_msg("cannot list %s", path);
  for (struct dirent *item; (item = readdir(listing));) {
    const char *dot = strrchr(item->d_name, '.');
    if (item->d_name[0] == '.' || (dot && strcmp(dot, ".md") == 0)) continue;
    (void)snprintf(path, sizeof path, "%s/%s/%s", source_dir(), name, item->d_name);
    loaded l = load_path(path);
    ++*n;
    *n_refused += l.status != LAC_OK;
    assert_int_equal(l.status != LAC_OK, l.err.text[0] != '\0');
    assert_null(strchr(l.err.text, '\n'));
    if (l.status && !strstr(l.err.text, item->d_name)) fail_msg("%s: '%s'", path, l.err.text);
    loaded_clear(&l);
  }
  (void)closedir(listing);
}

static void broken_files_are_refused_by_name(void **state) {
  (void)state;
  int n, n_refused;
  load_all("tests/fixtures/onnx_bad", &n, &n_refused);
  assert_true(n >= 8);
  assert_int_equal(n_refused, n);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(broken_files_are_refused_by_name),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
