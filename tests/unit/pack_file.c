/* SPDX-License-Identifier: Apache-2.0
 * pack/packfile: files come back byte for byte; a pack that was cut, changed or made up is refused,
 * or at least does no harm. */
#include "pack/format_in.h"
#include "pack/packfile.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "base/reader.h"
#include "support/light.h"
#include "support/pack_mend.h"

enum { MODEL_BYTES = 700, DATA_BYTES = 400, MOST = 1 << 16 };

static char folder[] = "pack_file_XXXXXX";
static uint8_t model[MODEL_BYTES], data[DATA_BYTES];

static const char *path_of(const char *name) {
  static char path[256];
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* Two of four non-zero (a NaN among them), from bytes + offset on. */
static laci_packfile_weight put_weight(uint8_t *bytes, size_t offset, const char *name,
                                       laci_weight_view w) {
  laci_packfile_weight weight = {.offset = offset};
  w.name = name;
  w.run = w.columns;
  assert_int_equal(laci_packing_init(&weight.packing, &w, (laci_pattern){2, 4}, 0, NULL), LAC_OK);
  const laci_packing *p = &weight.packing;
  memset(bytes + offset, 0, p->dense_bytes);
  for (int64_t e = 0; e < (int64_t)(p->dense_bytes / p->element_bytes); e++) {
    int64_t c = e / p->inner % p->columns, o = e / p->inner / p->columns;
    if (c % 4 == o % 3 || c % 4 == 3) {
      memset(bytes + offset + (size_t)e * p->element_bytes, (int)(e % 251 + 1), p->element_bytes);
    }
  }
  laci_pack_check check = laci_pack_check_weight(p, bytes + offset);
  assert_true(check.holds);
  weight.needs_signs = check.needs_signs;
  return weight;
}

/* A model of 700 bytes with two weights and a data file that begins with one; a file without any;
 * an empty one. names: of the three data files. */
static lac_status write_pack(const char *name, const char *const names[3], lac_error *err) {
  for (int at = 0; at < MODEL_BYTES; at++) model[at] = (uint8_t)(at * 31 + at / 3);
  for (int at = 0; at < DATA_BYTES; at++) data[at] = (uint8_t)(at * 17);
  const laci_weight_view conv = {.dtype = LAC_DTYPE_F32, .outer = 2, .columns = 8, .inner = 4};
  const laci_weight_view dense = {.dtype = LAC_DTYPE_BF16, .outer = 5, .columns = 10, .inner = 1};
  laci_packfile_weight weights[3] = {put_weight(model, 41, "conv.weight", conv),
                                     put_weight(model, 500, "fc.weight", dense),
                                     put_weight(data, 0, "big.weight", conv)};
  model[41 + 4 * (5 * 4) + 3] = 0x80; /* column 5: a -0.0 that is lost */
  weights[0].needs_signs = laci_pack_check_weight(&weights[0].packing, model + 41).needs_signs;
  assert_true(weights[0].needs_signs);
  weights[2].file = 2;
  const laci_packfile_part files[4] = {{"", model, MODEL_BYTES},
                                       {names[0], model, 100},
                                       {names[1], data, DATA_BYTES},
                                       {names[2], NULL, 0}};
  const laci_packfile_input input = {files, 4, weights, 3};
  const laci_write_options options = {.force = true};
  uint64_t size;
  return laci_packfile_write(&input, path_of(name), &options, &size, err);
}

static const char *const good_names[3] = {"a.bin", "b.bin", "c.bin"};

/** The pack's bytes; the caller's. */
static uint8_t *make_pack(size_t *n) {
  lac_error err = {0};
  laci_file_bytes map;
  if (write_pack("p.pack", good_names, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_file_bytes_read(path_of("p.pack"), &map, &err), LAC_OK);
  uint8_t *bytes = laci_alloc(map.size_bytes, 1);
  memcpy(bytes, map.bytes, *n = map.size_bytes);
  laci_file_bytes_clear(&map);
  return bytes;
}

typedef struct sink {
  uint8_t bytes[MOST];
  size_t n;
} sink;

static lac_status to_sink(const void *bytes, size_t n, void *context, lac_error *err) {
  sink *s = context;
  (void)err;
  if (n > MOST - s->n) return LAC_BAD_FILE; /* a mended pack may hold long files */
  memcpy(s->bytes + s->n, bytes, n);
  s->n += n;
  return LAC_OK;
}

static void expect_file(const laci_packfile *pack, size_t file, const uint8_t *bytes, size_t n) {
  static sink s;
  lac_error err = {0};
  s.n = 0;
  if (laci_packfile_restore_file(pack, file, to_sink, &s, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_packfile_file_size(pack, file), n);
  assert_int_equal(s.n, n);
  if (n) assert_memory_equal(s.bytes, bytes, n);
}

/* Parts of every length and place are parts of the whole. */
static void expect_parts(const laci_packfile *pack, size_t file, const uint8_t *bytes, size_t n) {
  static uint8_t part[MOST];
  lac_error err = {0};
  for (size_t from = 0; from < n; from += 1 + from % 7) {
    size_t some = (from * 31) % (n - from + 1);
    memset(part, 0xa5, sizeof part);
    if (laci_packfile_read_file_range(pack, file, from, some, part, &err)) fail_msg("%s", err.text);
    assert_memory_equal(part, bytes + from, some);
    assert_int_equal(part[some], 0xa5);
  }
}

static void files_come_back_byte_for_byte(void **state) {
  (void)state;
  size_t n;
  laci_free(make_pack(&n));
  laci_packfile *pack;
  lac_error err = {0};
  if (laci_packfile_open(path_of("p.pack"), &pack, &err)) fail_msg("%s", err.text);
  assert_int_equal(laci_packfile_n_files(pack), 4);
  assert_int_equal(laci_packfile_size(pack), n);
  assert_string_equal(laci_packfile_file_name(pack, 0), "");
  assert_string_equal(laci_packfile_file_name(pack, 2), "b.bin");
  expect_file(pack, 2, data, DATA_BYTES); /* in any order */
  expect_file(pack, 0, model, MODEL_BYTES);
  expect_file(pack, 1, model, 100);
  expect_file(pack, 3, NULL, 0);
  laci_packfile_close(pack);
}

static void parts_of_files_come_back_alone(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n), to[MODEL_BYTES];
  laci_packfile *pack;
  lac_error err = {0};
  assert_int_equal(laci_packfile_open(path_of("p.pack"), &pack, &err), LAC_OK);
  expect_parts(pack, 0, model, MODEL_BYTES);
  expect_parts(pack, 2, data, DATA_BYTES);
  memset(to, 0, sizeof to);
  assert_int_equal(laci_packfile_copy_unpacked_parts(pack, 0, to, &err), LAC_OK);
  assert_memory_equal(to, model, 40); /* before the first weight */
  laci_packfile_close(pack);
  assert_int_equal(laci_packfile_open_memory(bytes, n, &pack, &err), LAC_OK);
  expect_parts(pack, 0, model, MODEL_BYTES);
  laci_packfile_close(pack);
  laci_free(bytes);
}

/* What was checked is what is used: a byte that changes after its checksum was computed is found,
 * even where the file's time does not tell. */
static void a_pack_changed_while_it_is_open_is_an_error(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n), to[MODEL_BYTES];
  laci_packfile *pack;
  lac_error err = {0};
  struct stat before;
  assert_int_equal(stat(path_of("p.pack"), &before), 0);
  assert_int_equal(laci_packfile_open(path_of("p.pack"), &pack, &err), LAC_OK);
  int fd = open(path_of("p.pack"), O_WRONLY);
  bytes[64] ^= 1; /* the first part's first byte */
  assert_int_equal(pwrite(fd, bytes + 64, 1, 64), 1);
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  assert_int_equal(futimens(fd, times), 0);
  assert_int_equal(close(fd), 0);
  assert_int_equal(laci_packfile_read_file_range(pack, 0, 0, 1, to, &err), LAC_IO);
  assert_non_null(strstr(err.text, "was changed meanwhile"));
  laci_packfile_close(pack);
  laci_free(bytes);
}

/* Somebody else's program, not a damaged file: it opens well. */
static void a_pack_cut_while_it_is_open_is_an_error(void **state) {
  (void)state;
  size_t n;
  uint8_t to[MODEL_BYTES];
  laci_free(make_pack(&n));
  laci_packfile *pack;
  lac_error err = {0};
  assert_int_equal(laci_packfile_open(path_of("p.pack"), &pack, &err), LAC_OK);
  assert_int_equal(truncate(path_of("p.pack"), 64), 0);
  assert_int_equal(laci_packfile_read_file_range(pack, 0, 0, MODEL_BYTES, to, &err), LAC_IO);
  assert_non_null(strstr(err.text, "cut"));
  laci_packfile_close(pack);
}

static void packed_weights_are_used_in_place(void **state) {
  (void)state;
  size_t n;
  laci_free(make_pack(&n));
  laci_packfile *pack;
  lac_error err = {0};
  assert_int_equal(laci_packfile_open_whole(path_of("p.pack"), &pack, &err), LAC_OK);
  assert_int_equal(laci_packfile_n_tensors(pack), 3);
  const laci_packfile_tensor *t = laci_packfile_tensor_at(pack, 1);
  assert_string_equal(t->packing.name, "fc.weight");
  assert_int_equal(t->packing.dtype, LAC_DTYPE_BF16);
  assert_int_equal(t->packing.n_rows, 5);
  assert_int_equal(t->packing.row_values, 6);
  for (size_t at = 0; at < 3; at++) {
    t = laci_packfile_tensor_at(pack, at);
    assert_int_equal((uintptr_t)t->packed.values % 64, 0);
    assert_int_equal((uintptr_t)t->packed.index % 64, 0);
    assert_int_equal(t->packed.signs != NULL, at == 0);
  }
  laci_packfile_close(pack);
}

static void every_element_type_has_a_word_of_its_own(void **state) {
  (void)state;
  pack_word words[LAC_DTYPE_COUNT];
  for (int a = 1; a < LAC_DTYPE_COUNT; a++) {
    const char *text = pack_dtype_word((lac_dtype)a);
    assert_true(strlen(text) <= sizeof words[a].text);
    memset(&words[a], 0, sizeof words[a]);
    memcpy(words[a].text, text, strlen(text));
    for (int b = 1; b < a; b++) assert_memory_not_equal(&words[a], &words[b], sizeof words[a]);
  }
}

static void the_same_input_gives_the_same_bytes(void **state) {
  (void)state;
  size_t n, n_again;
  uint8_t *bytes = make_pack(&n), *again = make_pack(&n_again);
  assert_int_equal(n, n_again);
  assert_memory_equal(bytes, again, n);
  laci_free(bytes);
  laci_free(again);
}

/** Opens the bytes; where that works, reads everything. True: all of it was good. */
static bool survives(const uint8_t *bytes, size_t n, lac_error *err) {
  static sink s;
  laci_packfile *pack;
  *err = (lac_error){0};
  lac_status st = laci_packfile_open_memory(bytes, n, &pack, err);
  assert_int_equal(st == LAC_OK, pack != NULL);
  for (size_t file = 0; !st && file < laci_packfile_n_files(pack); file++) {
    s.n = 0;
    st = laci_packfile_restore_file(pack, file, to_sink, &s, err);
  }
  assert_true(!st || st == LAC_BAD_FILE || st == LAC_UNSUPPORTED || st == LAC_NO_MEMORY);
  laci_packfile_close(pack);
  return !st;
}

static void a_pack_that_was_cut_is_refused(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n);
  lac_error err;
  assert_true(survives(bytes, n, &err));
  for (size_t cut = 0; cut < n; cut++) {
    if (survives(bytes, cut, &err)) fail_msg("%zu of %zu bytes are a pack", cut, n);
    assert_true(err.text[0] != '\0');
  }
  uint8_t *longer = laci_resize(bytes, n, n + 64, 1);
  for (size_t more = 1; more <= 64; more++) assert_false(survives(longer, n + more, &err));
  laci_free(longer);
}

static void a_pack_with_any_other_bit_is_refused(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n);
  lac_error err;
  for (size_t at = 0; at < n; at++) {
    for (int bit = (int)at % tests_stride(3); bit < 8; bit += tests_stride(3)) {
      bytes[at] ^= (uint8_t)(1 << bit);
      if (survives(bytes, n, &err))
        fail_msg("bit %d of byte %zu of %zu does not count", bit, at, n);
      if (!strstr(err.text, "pack")) fail_msg("byte %zu: '%s'", at, err.text);
      bytes[at] ^= (uint8_t)(1 << bit);
    }
  }
  laci_free(bytes);
}

/* The sanitizers watch. */
static void a_pack_with_good_checksums_and_bad_contents_does_no_harm(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n), *made = laci_alloc(n, 1);
  static const uint8_t puts[] = {0, 1, 2, 63, 64, 65, 'r', 't', 127, 128, 255};
  lac_error err;
  for (size_t at = 0; at < n; at++) {
    const size_t stride = (size_t)tests_stride(4);
    for (size_t k = at % stride; k < sizeof puts; k += stride) {
      memcpy(made, bytes, n);
      made[at] = puts[k];
      pack_mend(made, n);
      (void)survives(made, n, &err);
    }
  }
  laci_free(made);
  laci_free(bytes);
}

static void names_that_lead_elsewhere_are_refused(void **state) {
  (void)state;
  static const char *const bad[][3] = {{"../a", "b", "c"}, {"a", "/b", "c"},  {"", "a", "b"},
                                       {"a", "a", "b"},    {"b", "a", "c"},   {".", "a", "b"},
                                       {"..", "a", "b"},   {"a\\", "b/", "c"}};
  for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
    laci_packfile *pack;
    lac_error err = {0};
    assert_int_equal(write_pack("bad.pack", bad[k], &err), LAC_OK);
    assert_int_equal(laci_packfile_open(path_of("bad.pack"), &pack, &err), LAC_BAD_FILE);
    assert_non_null(strstr(err.text, "cannot be the name of its file"));
    assert_non_null(strstr(err.text, "bad.pack: "));
  }
}

static void another_version_says_so(void **state) {
  (void)state;
  size_t n;
  uint8_t *bytes = make_pack(&n);
  laci_packfile *pack;
  lac_error err = {0};
  bytes[offsetof(pack_head, version)] = 2;
  pack_mend(bytes, n);
  assert_int_equal(laci_packfile_open_memory(bytes, n, &pack, &err), LAC_UNSUPPORTED);
  assert_non_null(strstr(err.text, "version 2"));
  laci_free(bytes);
}

static void what_is_no_pack_says_so(void **state) {
  (void)state;
  laci_packfile *pack;
  lac_error err = {0};
  assert_int_equal(laci_packfile_open(LAC_SOURCE_DIR "/README.md", &pack, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "README.md: not a pack"));
  assert_int_equal(laci_packfile_open("no/such", &pack, &err), LAC_NOT_FOUND);
  assert_int_equal(laci_packfile_open(".", &pack, &err), LAC_BAD_FILE);
}

static void a_file_that_is_there_is_kept(void **state) {
  (void)state;
  size_t n;
  laci_free(make_pack(&n));
  const laci_packfile_part file = {"", model, 10};
  const laci_packfile_input input = {&file, 1, NULL, 0};
  const laci_write_options options = {0};
  uint64_t size;
  lac_error err = {0};
  assert_int_equal(laci_packfile_write(&input, path_of("p.pack"), &options, &size, &err),
                   LAC_EXISTS);
  laci_packfile *pack;
  assert_int_equal(laci_packfile_open(path_of("p.pack"), &pack, &err), LAC_OK);
  assert_int_equal(laci_packfile_n_files(pack), 4);
  laci_packfile_close(pack);
}

static void writing_and_reading_survive_failed_allocations(void **state) {
  (void)state;
  size_t n, n_failed = 0;
  uint8_t *bytes = make_pack(&n);
  for (long at = 1;; at++) {
    lac_error err = {0};
    laci_memory_fail_from(at);
    lac_status st = write_pack("failed.pack", good_names, &err);
    bool read = !st && survives(bytes, n, &err);
    laci_memory_fail_from(0);
    if (read) break;
    assert_true(st == LAC_NO_MEMORY || err.status == LAC_NO_MEMORY);
    n_failed++;
  }
  assert_true(n_failed > 15);
  laci_free(bytes);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  static const char *const names[] = {"p.pack", "bad.pack", "failed.pack"};
  for (int k = 0; k < 3; k++) (void)unlink(path_of(names[k]));
  return rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(files_come_back_byte_for_byte),
      cmocka_unit_test(parts_of_files_come_back_alone),
      cmocka_unit_test(a_pack_changed_while_it_is_open_is_an_error),
      cmocka_unit_test(a_pack_cut_while_it_is_open_is_an_error),
      cmocka_unit_test(packed_weights_are_used_in_place),
      cmocka_unit_test(every_element_type_has_a_word_of_its_own),
      cmocka_unit_test(the_same_input_gives_the_same_bytes),
      cmocka_unit_test(a_pack_that_was_cut_is_refused),
      cmocka_unit_test(a_pack_with_any_other_bit_is_refused),
      cmocka_unit_test(a_pack_with_good_checksums_and_bad_contents_does_no_harm),
      cmocka_unit_test(names_that_lead_elsewhere_are_refused),
      cmocka_unit_test(another_version_says_so),
      cmocka_unit_test(what_is_no_pack_says_so),
      cmocka_unit_test(a_file_that_is_there_is_kept),
      cmocka_unit_test(writing_and_reading_survive_failed_allocations),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
