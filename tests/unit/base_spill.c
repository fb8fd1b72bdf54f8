/* SPDX-License-Identifier: Apache-2.0
 * Bytes that are elsewhere: held for a while, spilled to files without names, written as holes. */
#include "onnx_build.h"

#include "base/acquire.h"
#include "base/reader.h"
#include "base/spill.h"
#include "base/writer.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LONG = 300000 };

static folder dir;
static uint8_t content[LONG];

static int make_folder(void **state) {
  (void)state;
  folder_make(&dir);
  for (size_t at = 0; at < LONG; at++) content[at] = (uint8_t)(at * 31 >> 3 | 1);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  folder_remove(&dir);
  return 0;
}

static int n_files(const char *path) {
  int n = 0;
  DIR *files = opendir(path);
  assert_non_null(files);
  for (const struct dirent *file; (file = readdir(files));)
    n += file->d_name[0] != '.' || file->d_name[1] == 'l';
  (void)closedir(files);
  return n;
}

/* ---- Held ---- */

typedef struct elsewhere {
  const uint8_t *bytes; /* at these addresses ... */
  size_t n;
  bool fails;
} elsewhere;

static lac_status fetch(void *context, const uint8_t *bytes, size_t n, void *to, lac_error *err) {
  const elsewhere *from = context;
  (void)err;
  if (from->fails) return LAC_IO;
  memcpy(to, content + (bytes - from->bytes), n);
  return LAC_OK;
}

static bool is_there(void *context, const uint8_t *bytes, size_t n) {
  const elsewhere *from = context;
  return bytes < from->bytes || bytes + n > from->bytes + from->n;
}

static void holds_a_copy_of_what_is_elsewhere(void **state) {
  (void)state;
  static uint8_t places[LONG]; /* never filled */
  elsewhere from = {places, LONG, false};
  const laci_byte_source source = {fetch, is_there, &from};
  laci_acquired_bytes held;
  assert_true(laci_bytes_need_copy(&source, places + 100, 50));
  assert_int_equal(laci_bytes_acquire(&source, places + 100, 50, "w", &held, NULL), LAC_OK);
  assert_memory_equal(held.bytes, content + 100, 50);
  assert_non_null(held.copy);
  laci_bytes_release(&held);
  assert_null(held.bytes);
  from.fails = true;
  assert_int_equal(laci_bytes_acquire(&source, places, 50, "w", &held, NULL), LAC_IO);
  assert_null(held.copy);
  laci_memory_fail_from(1);
  lac_error err = {0};
  assert_int_equal(laci_bytes_acquire(&source, places, 50, "w", &held, &err), LAC_NO_MEMORY);
  laci_memory_fail_from(0);
  assert_non_null(strstr(err.text, "w"));
}

static void holds_what_is_in_memory_where_it_is(void **state) {
  (void)state;
  static uint8_t places[4];
  elsewhere from = {places, sizeof places, true};
  const laci_byte_source source = {fetch, is_there, &from}, none = {0};
  const laci_byte_source *const sources[] = {NULL, &none, &source};
  for (size_t at = 0; at < 3; at++) {
    laci_acquired_bytes held;
    assert_int_equal(laci_bytes_acquire(sources[at], content, LONG, "w", &held, NULL), LAC_OK);
    assert_ptr_equal(held.bytes, content);
    assert_null(held.copy);
    laci_bytes_release(&held);
  }
  laci_acquired_bytes nothing;
  assert_int_equal(laci_bytes_acquire(&source, places, 0, "w", &nothing, NULL), LAC_OK);
  laci_bytes_release(&nothing);
}

/* ---- Spilled ---- */

static void gives_back_what_was_put(void **state) {
  (void)state;
  laci_spill *spill;
  const uint8_t *first, *second, *empty;
  uint8_t *sparse = calloc(1, LONG); /* zeros, but for a few */
  assert_non_null(sparse);
  sparse[5000] = 7;
  sparse[LONG - 1] = 9;
  assert_int_equal(laci_spill_create(dir.path, &spill, NULL), LAC_OK);
  assert_int_equal(laci_spill_append(spill, "a", content, LONG, &first, NULL), LAC_OK);
  assert_int_equal(laci_spill_append(spill, "b", NULL, 0, &empty, NULL), LAC_OK);
  assert_int_equal(laci_spill_append(spill, "c", sparse, LONG, &second, NULL), LAC_OK);
  assert_memory_equal(first, content, LONG);
  assert_memory_equal(second, sparse, LONG);
  memset(sparse, 0, LONG);
  const uint8_t *zeros;
  assert_int_equal(laci_spill_append(spill, "d", sparse, LONG, &zeros, NULL), LAC_OK);
  assert_memory_equal(zeros, sparse, LONG);
  assert_true(laci_spill_size_bytes(spill) >= 3 * (uint64_t)LONG);
  assert_int_equal(n_files(dir.path), 0); /* it has no name */
  laci_spill *all = NULL, *other;
  assert_int_equal(laci_spill_create(dir.path, &other, NULL), LAC_OK);
  laci_spill_add_to_list(&all, spill);
  laci_spill_add_to_list(&all, NULL);
  laci_spill_add_to_list(&all, other);
  assert_memory_equal(first, content, LONG);
  laci_spill_destroy(all);
  laci_spill_destroy(NULL);
  free(sparse);
}

static void a_full_disk_is_an_error(void **state) {
  (void)state;
  laci_spill *spill;
  const uint8_t *view;
  lac_error err = {0};
  struct rlimit before, little;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  little = before;
  little.rlim_cur = LONG / 2;
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(laci_spill_create(dir.path, &spill, NULL), LAC_OK);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
  assert_int_equal(laci_spill_append(spill, "w1", content, LONG, &view, &err), LAC_IO);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)signal(SIGXFSZ, handler);
  assert_memory_equal(err.text, "w1: ", 4);
  assert_non_null(strstr(err.text, dir.path));
  /* What failed left nothing: the next part is where this one would have been. */
  static const uint8_t zeros[LONG];
  assert_int_equal(laci_spill_append(spill, "w2", zeros, LONG, &view, &err), LAC_OK);
  assert_memory_equal(view, zeros, LONG);
  laci_spill_destroy(spill);
}

static void fails_where_there_is_no_folder(void **state) {
  (void)state;
  laci_spill *spill;
  lac_error err = {0};
  assert_int_equal(laci_spill_create(in_folder(&dir, "none"), &spill, &err), LAC_NOT_FOUND);
  assert_null(spill);
  assert_non_null(strstr(err.text, "none"));
  for (long n = 1;; n++) { /* each allocation fails once */
    const uint8_t *view;
    laci_memory_fail_from(n);
    lac_status st = laci_spill_create(dir.path, &spill, &err);
    if (!st) st = laci_spill_append(spill, "w", content, LONG, &view, &err);
    const bool pending = laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_spill_destroy(spill);
    if (pending) break;
    assert_int_equal(st, LAC_NO_MEMORY);
  }
}

/* ---- Holes ---- */

/** Writes a file of many parts and compares it; returns the space it takes. */
static uint64_t write_parts(bool holes, size_t first, size_t zeros, size_t last) {
  const laci_write_options options = {.force = true, .holes = holes};
  const size_t n = first + zeros + last;
  uint8_t *bytes = calloc(1, n), *found;
  assert_non_null(bytes);
  memcpy(bytes, content, first);
  memcpy(bytes + first + zeros, content, last);
  laci_writer *writer;
  assert_int_equal(laci_writer_open(in_folder(&dir, "f"), &options, &writer, NULL), LAC_OK);
  for (size_t at = 0; at < n; at += 1 << 20) {
    size_t some = n - at < 1 << 20 ? n - at : 1 << 20;
    assert_int_equal(laci_writer_append(writer, bytes + at, some, NULL), LAC_OK);
  }
  assert_int_equal(laci_writer_finish(writer, NULL), LAC_OK);
  assert_int_equal(laci_writer_commit(writer, NULL), LAC_OK);
  laci_writer_destroy(writer);
  struct stat info;
  size_t size;
  found = read_bytes(in_folder(&dir, "f"), &size);
  assert_int_equal(size, n);
  assert_memory_equal(found, bytes, n);
  assert_int_equal(stat(in_folder(&dir, "f"), &info), 0);
  laci_free(found);
  free(bytes);
  return (uint64_t)info.st_blocks * 512;
}

static void zeros_take_no_room(void **state) {
  (void)state;
  const size_t sizes[][3] = {{0, 3 << 20, 0},     {1, 3 << 20, 1},      {70000, 3 << 20, 0},
                             {0, 3 << 20, 70000}, {LONG, 0, 0},         {0, 1, 0},
                             {0, 65536, 0},       {65536, 65536, 65536}};
  for (size_t at = 0; at < sizeof sizes / sizeof *sizes; at++) {
    uint64_t plain = write_parts(false, sizes[at][0], sizes[at][1], sizes[at][2]);
    uint64_t sparse = write_parts(true, sizes[at][0], sizes[at][1], sizes[at][2]);
    assert_true(sparse <= plain + 4096);
    if (at == 0 && plain >= 3 << 20) assert_true(sparse < 1 << 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(holds_a_copy_of_what_is_elsewhere),
      cmocka_unit_test(holds_what_is_in_memory_where_it_is),
      cmocka_unit_test(gives_back_what_was_put),
      cmocka_unit_test(a_full_disk_is_an_error),
      cmocka_unit_test(fails_where_there_is_no_folder),
      cmocka_unit_test(zeros_take_no_room),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
