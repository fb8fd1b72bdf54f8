/* SPDX-License-Identifier: Apache-2.0
 * data: CIFAR as Python pickles it: the same images and labels as the binary files, every damaged
 * file an error, and nothing that a pickle could call. tests/interop asks Python about such files.
 */
#include "data/pickle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/image.h"
#include "unit/data_folder.h"

enum { IMAGE = 3072, MOST = 200000 };

/** A pickle as Python 2 writes it, opcode by opcode. */
typedef struct pickle {
  size_t n;
  unsigned memo;
  uint8_t *bytes; /* [MOST] */
} pickle;

static void add(pickle *p, const void *bytes, size_t n) {
  assert_true(p->n + n <= MOST);
  memcpy(p->bytes + p->n, bytes, n);
  p->n += n;
}

static void code(pickle *p, const char *text) { add(p, text, strlen(text)); }

static void keep(pickle *p) {
  uint32_t number = ++p->memo;
  code(p, number < 256 ? "q" : "r");
  add(p, &number, number < 256 ? 1 : 4);
}

static void text(pickle *p, const void *bytes, size_t n) {
  uint32_t length = (uint32_t)n;
  code(p, n < 256 ? "U" : "T");
  add(p, &length, n < 256 ? 1 : 4);
  add(p, bytes, n);
  keep(p);
}

static void word(pickle *p, const char *letters) { text(p, letters, strlen(letters)); }

static void number(pickle *p, int value) {
  code(p, value < 256 ? "K" : "M");
  add(p, &value, value < 256 ? 1 : 2);
}

static void name(pickle *p, const char *lines) {
  code(p, "c");
  code(p, lines);
  keep(p);
}

static void begin(pickle *p) {
  *p = (pickle){.bytes = p->bytes};
  code(p, "\x80\x02}");
  keep(p);
  code(p, "(");
}

static void array(pickle *p, int n, const uint8_t *pixels) {
  name(p, "numpy.core.multiarray\n_reconstruct\n");
  name(p, "numpy\nndarray\n");
  add(p, "K\0\x85", 3);
  keep(p);
  word(p, "b");
  code(p, "\x87");
  keep(p);
  code(p, "R");
  keep(p);
  code(p, "(K\x01");
  number(p, n);
  number(p, IMAGE);
  code(p, "\x86");
  keep(p);
  name(p, "numpy\ndtype\n");
  word(p, "u1");
  add(p, "K\0K\x01\x87", 5);
  keep(p);
  code(p, "R");
  keep(p);
  code(p, "(K\x03");
  word(p, "|");
  add(p, "NNNJ\xFF\xFF\xFF\xFFJ\xFF\xFF\xFF\xFFK\0t", 16);
  keep(p);
  code(p, "b\x89");
  text(p, pixels, (size_t)n * IMAGE);
  code(p, "t");
  keep(p);
  code(p, "b");
}

static void labels(pickle *p, int n, int first, int n_classes) {
  code(p, "]");
  keep(p);
  code(p, "(");
  for (int k = 0; k < n; k++) number(p, (first + k) % n_classes);
  code(p, "e");
}

static void batch(pickle *p, const char *key, int n, int first, int n_classes) {
  uint8_t *pixels = malloc((size_t)n * IMAGE);
  assert_non_null(pixels);
  for (int at = 0; at < n * IMAGE; at++) {
    pixels[at] = (uint8_t)(at % IMAGE * 7 + (first + at / IMAGE) * 31);
  }
  begin(p);
  word(p, "batch_label");
  word(p, "training batch 1 of 5");
  word(p, key);
  labels(p, n, first, n_classes);
  word(p, "data");
  array(p, n, pixels);
  code(p, "u.");
  free(pixels);
}

static void names(pickle *p, const char *key, int n) {
  begin(p);
  word(p, "num_vis");
  number(p, IMAGE);
  word(p, key);
  code(p, "]");
  keep(p);
  code(p, "(");
  for (int k = 0; k < n; k++) {
    char label[16];
    (void)snprintf(label, sizeof label, "class%d", k);
    word(p, label);
  }
  code(p, "eu.");
}

static pickle new_pickle(void) {
  pickle p = {.bytes = malloc(MOST)};
  assert_non_null(p.bytes);
  return p;
}

static void add_pickle(const folder *f, const char *file, const pickle *p) {
  add_bytes(f, file, p->bytes, p->n);
}

static laci_dataset *open_set(const folder *f, laci_dataset_part part) {
  laci_dataset *set = NULL;
  lac_error err = {0};
  laci_dataset_options options = {.part = part};
  if (laci_dataset_open(f->path, &options, &set, &err)) fail_msg("%s", err.text);
  return set;
}

static void expect_images(const laci_dataset *set, int n, int n_classes) {
  laci_image image = {0};
  assert_int_equal(laci_dataset_count(set), n);
  assert_int_equal(laci_dataset_count_classes(set), n_classes);
  assert_string_equal(laci_dataset_class_name(set, 3), "class3");
  for (int k = 0; k < n; k++) {
    assert_int_equal(laci_dataset_label(set, k), k % n_classes);
    assert_int_equal(laci_dataset_read_image(set, k, &image, NULL), LAC_OK);
    for (int at = 0; at < IMAGE; at++) {
      int want = (uint8_t)((at % 3 * 1024 + at / 3) * 7 + k * 31);
      assert_int_equal(image.rgb[at], want);
    }
  }
  laci_image_clear(&image);
}

static void cifar10_is_read_from_its_pickles(void **state) {
  (void)state;
  folder f = make_folder();
  pickle p = new_pickle();
  batch(&p, "labels", 30, 0, 10);
  add_pickle(&f, "data_batch_1", &p);
  add_pickle(&f, "test_batch", &p);
  batch(&p, "labels", 12, 30, 10);
  add_pickle(&f, "data_batch_2", &p);
  names(&p, "label_names", 10);
  add_pickle(&f, "batches.meta", &p);
  laci_dataset *train = open_set(&f, LACI_PART_TRAIN), *test = open_set(&f, LACI_PART_TEST);
  expect_images(train, 42, 10);
  expect_images(test, 30, 10);
  assert_string_equal(laci_dataset_format(train), "cifar10");
  laci_dataset_close(train);
  laci_dataset_close(test);
  free(p.bytes);
  remove_folder(&f);
}

static void cifar100_is_read_from_its_pickles(void **state) {
  (void)state;
  folder f = make_folder();
  pickle p = new_pickle();
  batch(&p, "fine_labels", 60, 0, 100);
  add_pickle(&f, "train", &p);
  add_pickle(&f, "test", &p);
  names(&p, "fine_label_names", 100);
  add_pickle(&f, "meta", &p);
  laci_dataset *set = open_set(&f, LACI_PART_TRAIN);
  expect_images(set, 60, 100);
  assert_string_equal(laci_dataset_format(set), "cifar100");
  laci_dataset_close(set);
  free(p.bytes);
  remove_folder(&f);
}

static lac_status parse(const uint8_t *bytes, size_t n, lac_error *err) {
  laci_arena arena = {0};
  const laci_pickle_value *value;
  uint8_t *exact = malloc(n + !n);
  assert_non_null(exact);
  memcpy(exact, bytes, n);
  lac_status st = laci_pickle_parse(&arena, "p", exact, n, &value, err);
  laci_arena_clear(&arena);
  free(exact);
  return st;
}

static void what_could_do_something_is_refused_by_name_and_place(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *want;
  } cases[] = {
      {"\x80\x02"
       "cos\nsystem\nU\x04true\x85R.",
       "p: byte 2: the name 'os.system', wanted NumPy's arrays only"},
      {"\x80\x02"
       "c__builtin__\neval\n.",
       "p: byte 2: the name '__builtin__.eval'"},
      {"\x80\x02"
       "cnumpy\nload\n.",
       "p: byte 2: the name 'numpy.load'"},
      {"\x80\x02]i__main__\nx\n.", "p: byte 3: the opcode INST (0x69)"},
      {"\x80\x02]\x81.", "p: byte 3: the opcode NEWOBJ (0x81)"},
      {"\x80\x02]\x93.", "p: byte 3: the opcode STACK_GLOBAL (0x93)"},
      {"\x80\x02]P1\n.", "p: byte 3: the opcode PERSID (0x50)"},
      {"\x80\x02]\x82\x01.", "p: byte 3: the opcode EXT1 (0x82)"},
      {"\x80\x02]\x7F.", "p: byte 3: the opcode unknown (0x7f)"},
      {"\x80\x04]\x94.", "p: a pickle of protocol 4, wanted 2"},
      {"(dp0\n.", "p: no pickle of protocol 2"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    lac_error err = {0};
    assert_int_not_equal(parse((const uint8_t *)cases[k].bytes, strlen(cases[k].bytes), &err), 0);
    if (!strstr(err.text, cases[k].want)) fail_msg("got '%s', want '%s'", err.text, cases[k].want);
  }
}

static void a_wrong_machine_state_is_an_error(void **state) {
  (void)state;
  static const struct {
    const char *bytes, *want;
    size_t n;
  } cases[] = {
      {"\x80\x02.", "an end without a value", 3},
      {"\x80\x02]].", "an end with more than a value", 5},
      {"\x80\x02(].", "an end with more than a value", 5},
      {"\x80\x02].]", "bytes after the end", 5},
      {"\x80\x02]", "cut off", 3},
      {"\x80\x02"
       "e",
       "no mark", 3},
      {"\x80\x02(e", "no list to append to", 4},
      {"\x80\x02K\x01(K\x02"
       "e",
       "no list to append to", 8},
      {"\x80\x02}(K\x01u", "a key without a value", 7},
      {"\x80\x02](K\x01u", "no dictionary for entries", 7},
      {"\x80\x02\x85", "too few values for a tuple", 3},
      {"\x80\x02](\x85", "too few values for a tuple", 5},
      {"\x80\x02}K\x01s", "too few values for an entry", 6},
      {"\x80\x02q\x01", "no value to keep", 4},
      {"\x80\x02h\x01", "nothing kept there", 4},
      {"\x80\x02]r\xFF\xFF\xFF\xFF", "far beyond the last", 8},
      {"\x80\x02U\x05"
       "abc",
       "cut off", 7},
      {"\x80\x02T\xFF\xFF\xFF\xFF"
       "abc",
       "cut off", 10},
      {"\x80\x02"
       "cnumpy",
       "a name without an end", 8},
      {"\x80\x02]]R", "a call that is none of NumPy's", 5},
      {"\x80\x02"
       "cnumpy\nndarray\n]R",
       "a call that is none of NumPy's", 19},
      {"\x80\x02]]b", "a state that is none of an array", 5},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    lac_error err = {0};
    assert_int_equal(parse((const uint8_t *)cases[k].bytes, cases[k].n, &err), LAC_BAD_FILE);
    if (!strstr(err.text, cases[k].want)) fail_msg("got '%s', want '%s'", err.text, cases[k].want);
  }
}

static void a_file_cut_off_anywhere_is_refused(void **state) {
  (void)state;
  pickle p = new_pickle();
  batch(&p, "labels", 2, 0, 10);
  for (size_t n = 0; n < p.n; n++) {
    lac_error err = {0};
    assert_int_equal(parse(p.bytes, n, &err), LAC_BAD_FILE);
  }
  assert_int_equal(parse(p.bytes, p.n, NULL), LAC_OK);
  free(p.bytes);
}

static void expect_refusal(const folder *f, const char *want) {
  laci_dataset *set;
  lac_error err = {0};
  assert_int_equal(laci_dataset_open(f->path, &(laci_dataset_options){0}, &set, &err),
                   LAC_BAD_FILE);
  if (!strstr(err.text, want)) fail_msg("got '%s', want '%s'", err.text, want);
}

static void files_without_images_or_labels_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  pickle p = new_pickle();
  batch(&p, "coarse_labels", 3, 0, 10);
  add_pickle(&f, "test_batch", &p);
  expect_refusal(&f, "test_batch: no list 'labels' of 3 labels");
  batch(&p, "labels", 11, 0, 11);
  add_pickle(&f, "test_batch", &p);
  expect_refusal(&f, "test_batch: label 10 is 10, wanted 0 to 9");
  names(&p, "labels", 10);
  add_pickle(&f, "test_batch", &p);
  expect_refusal(&f, "test_batch: no array 'data' of two axes");
  begin(&p);
  code(&p, "u.");
  add_pickle(&f, "test_batch", &p);
  expect_refusal(&f, "test_batch: no array 'data' of two axes");
  batch(&p, "labels", 3, 0, 10);
  add_pickle(&f, "test_batch", &p);
  names(&p, "label_names", 9);
  add_pickle(&f, "batches.meta", &p);
  expect_refusal(&f, "batches.meta: no list 'label_names' of 10 class names");
  free(p.bytes);
  remove_folder(&f);
}

static void a_wrong_array_is_refused(void **state) {
  (void)state;
  pickle p = new_pickle();
  batch(&p, "labels", 2, 0, 10);
  uint8_t *shape = NULL, *order = NULL, *type = NULL;
  for (size_t at = 0; at + 8 < p.n && !order; at++) {
    if (memcmp(p.bytes + at, "K\x02M\0\x0C\x86", 6) == 0) shape = p.bytes + at + 1;
    if (memcmp(p.bytes + at, "U\x02u1", 4) == 0) type = p.bytes + at + 3;
    if (memcmp(p.bytes + at, "b\x89T", 3) == 0) order = p.bytes + at + 1;
  }
  assert_true(shape && type && order);
  lac_error err = {0};
  *shape = 3;
  assert_int_equal(parse(p.bytes, p.n, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "an array whose shape has not its bytes"));
  *shape = 2;
  *order = 0x88;
  assert_int_equal(parse(p.bytes, p.n, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "no array of bytes in C order"));
  *order = 0x89;
  *type = '2';
  assert_int_equal(parse(p.bytes, p.n, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "no array of bytes in C order"));
  free(p.bytes);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  folder f = make_folder();
  pickle p = new_pickle();
  batch(&p, "labels", 3, 0, 10);
  add_pickle(&f, "test_batch", &p);
  names(&p, "label_names", 10);
  add_pickle(&f, "batches.meta", &p);
  free(p.bytes);
  for (long n = 1;; n++) {
    laci_dataset *set = NULL;
    laci_memory_fail_from(n);
    lac_status st = laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, NULL);
    bool reached = !laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_dataset_close(set);
    if (!reached) break;
    assert_int_not_equal(st, LAC_OK);
  }
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cifar10_is_read_from_its_pickles),
      cmocka_unit_test(cifar100_is_read_from_its_pickles),
      cmocka_unit_test(what_could_do_something_is_refused_by_name_and_place),
      cmocka_unit_test(a_wrong_machine_state_is_an_error),
      cmocka_unit_test(a_file_cut_off_anywhere_is_refused),
      cmocka_unit_test(files_without_images_or_labels_are_refused),
      cmocka_unit_test(a_wrong_array_is_refused),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
