/* SPDX-License-Identifier: Apache-2.0
 * data: tar archives by a libarchive that is loaded when the first one is read, as in the Python
 * package. Its source is compiled here once more, since other builds link the library. */
#define LAC_ARCHIVE_LOADED
#define laci_archive_visit_files visit_files_by_loaded_library
#include "data/archive.c"
#undef laci_archive_visit_files

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct seen {
  int n;
  size_t offset, size;
  char name[64];
} seen;

static lac_status see(void *context, const laci_archive_member *member, lac_error *err) {
  seen *s = context;
  (void)err;
  s->n++;
  s->offset = member->offset;
  s->size = member->n;
  (void)snprintf(s->name, sizeof s->name, "%s", member->name);
  return LAC_OK;
}

enum { TAR_BYTES = 4 * SECTOR, TEXT_BYTES = 5 };

/* One file, "greeting", of the bytes "hello". */
static void fill_tar(uint8_t tar[TAR_BYTES]) {
  char *const head = (char *)tar;
  unsigned sum = 0;
  memset(tar, 0, TAR_BYTES);
  (void)snprintf(head, 100, "greeting");
  memcpy(head + 100, "0000644", 8);
  memcpy(head + 108, "0000000", 8);
  memcpy(head + 116, "0000000", 8);
  memcpy(head + 124, "00000000005", 12);
  memcpy(head + 136, "00000000000", 12);
  memset(head + 148, ' ', 8);
  head[156] = '0';
  memcpy(head + 257, "ustar\00000", 8);
  for (int k = 0; k < SECTOR; k++) sum += tar[k];
  (void)snprintf(head + 148, 8, "%06o", sum);
  memcpy(head + SECTOR, "hello", TEXT_BYTES);
}

static lac_status visit(const uint8_t *tar, size_t n, seen *s, lac_error *err) {
  laci_archive archive = {.name = "a.tar", .n = n};
  lac_status st = laci_reader_open_memory("a.tar", tar, n, &archive.reader, err);
  if (!st) st = visit_files_by_loaded_library(&archive, see, s, err);
  laci_reader_close(archive.reader);
  return st;
}

static void a_loaded_library_reads_archives(void **state) {
  (void)state;
  uint8_t tar[TAR_BYTES];
  lac_error err = {0};
  seen s = {0};
  fill_tar(tar);
  if (visit(tar, sizeof tar, &s, &err)) fail_msg("%s", err.text);
  assert_int_equal(s.n, 1);
  assert_string_equal(s.name, "greeting");
  assert_int_equal(s.offset, SECTOR);
  assert_int_equal(s.size, TEXT_BYTES);
  for (int k = 0; k < 8; k++) tar[148 + k] = '7'; /* its sum is wrong now */
  assert_int_equal(visit(tar, sizeof tar, &s, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "a.tar: no whole tar archive"));
}

static void a_missing_library_is_named_with_its_cure(void **state) {
  (void)state;
  uint8_t tar[TAR_BYTES];
  lac_error err = {0};
  seen s = {0};
  fill_tar(tar);
  (void)snprintf(why_missing, sizeof why_missing, "%s: not found", LIBRARY);
  assert_int_equal(visit(tar, sizeof tar, &s, &err), LAC_UNSUPPORTED);
  assert_string_equal(err.text,
                      "a.tar: libarchive, which reads it, cannot be loaded (libarchive.so.13: not "
                      "found): wanted the system's package (libarchive13, or libarchive), or the "
                      "archive unpacked");
  assert_int_equal(s.n, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_loaded_library_reads_archives),
      cmocka_unit_test(a_missing_library_is_named_with_its_cure),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
