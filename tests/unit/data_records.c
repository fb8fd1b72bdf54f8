/* SPDX-License-Identifier: Apache-2.0
 * data: TFRecords of ImageNet: what is written is read again; a missing shard, cut-off files and
 * every flipped bit are errors that name the file and the byte, never another label. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/crc32c.h"
#include "base/memory.h"
#include "data/dataset.h"
#include "data/example.h"
#include "data/image.h"
#include "data/parts.h"
#include "data/tfrecord.h"
#include "unit/data_folder.h"

typedef struct row {
  int label;
  const char *synset;
} row;

static void write_shard(const folder *f, const char *name, const row *rows, int n) {
  char path[FOLDER_PATH];
  laci_file_bytes picture;
  laci_writer *writer;
  path_in(path, f, name);
  assert_int_equal(laci_file_bytes_read(PICTURE, &picture, NULL), LAC_OK);
  laci_write_options options = {.force = true};
  assert_int_equal(laci_writer_open(path, &options, &writer, NULL), LAC_OK);
  for (int k = 0; k < n; k++) {
    laci_example example = {.encoded = picture.bytes,
                            .encoded_bytes = picture.size_bytes,
                            .height = 40,
                            .width = 48,
                            .label = rows[k].label,
                            .synset = rows[k].synset,
                            .text = "",
                            .filename = "x.JPEG"};
    uint8_t *bytes;
    size_t size;
    assert_int_equal(laci_example_pack(&example, &bytes, &size, NULL), LAC_OK);
    assert_int_equal(laci_tfrecord_append(writer, bytes, size, NULL), LAC_OK);
    laci_free(bytes);
  }
  assert_int_equal(laci_writer_finish(writer, NULL), LAC_OK);
  assert_int_equal(laci_writer_commit(writer, NULL), LAC_OK);
  laci_writer_destroy(writer);
  laci_file_bytes_clear(&picture);
}

static const row fish[] = {{1, "n01440764"}, {208, "n02099601"}, {1000, "n15075141"}};

static folder make_records(void) {
  folder f = make_folder();
  write_shard(&f, "train-00000-of-00002", fish, 2);
  write_shard(&f, "train-00001-of-00002", fish + 1, 2);
  write_shard(&f, "validation-00000-of-00001", fish + 2, 1);
  return f;
}

static lac_status open_part(const folder *f, laci_dataset_part part, laci_dataset **set,
                            lac_error *err) {
  laci_dataset_options options = {.part = part};
  return laci_dataset_open(f->path, &options, set, err);
}

static void expect_refusal(const folder *f, lac_status status, const char *want) {
  laci_dataset *set;
  lac_error err = {0};
  assert_int_equal(open_part(f, LACI_PART_TRAIN, &set, &err), status);
  if (!strstr(err.text, want)) fail_msg("got '%s', want '%s'", err.text, want);
}

static void both_parts_are_read(void **state) {
  (void)state;
  folder f = make_records();
  laci_dataset *set;
  laci_image image = {0}, want = {0};
  assert_int_equal(laci_image_read(PICTURE, &want, NULL), LAC_OK);
  assert_int_equal(open_part(&f, LACI_PART_TRAIN, &set, NULL), LAC_OK);
  assert_string_equal(laci_dataset_format(set), "tfrecords");
  assert_int_equal(laci_dataset_count(set), 4);
  assert_int_equal(laci_dataset_count_classes(set), 1000);
  assert_string_equal(laci_dataset_class_name(set, 207), "n02099601");
  static const int labels[] = {0, 207, 207, 999};
  for (int k = 0; k < 4; k++) {
    assert_int_equal(laci_dataset_label(set, k), labels[k]);
    assert_int_equal(laci_dataset_read_image(set, k, &image, NULL), LAC_OK);
    assert_int_equal(image.width, want.width);
    assert_memory_equal(image.rgb, want.rgb, (size_t)(want.width * want.height * 3));
  }
  laci_dataset_close(set);
  assert_int_equal(open_part(&f, LACI_PART_TEST, &set, NULL), LAC_OK);
  assert_int_equal(laci_dataset_count(set), 1);
  assert_int_equal(laci_dataset_label(set, 0), 999);
  laci_dataset_close(set);
  laci_image_clear(&image);
  laci_image_clear(&want);
  remove_folder(&f);
}

static void missing_and_foreign_shards_are_refused(void **state) {
  (void)state;
  folder f = make_records();
  char path[FOLDER_PATH];
  path_in(path, &f, "train-00000-of-00002");
  assert_int_equal(unlink(path), 0);
  expect_refusal(&f, LAC_NOT_FOUND, "/train-00000-of-00002: cannot open");
  write_shard(&f, "train-00000-of-00002", fish, 2);
  write_shard(&f, "train-00002-of-00003", fish, 2);
  expect_refusal(&f, LAC_BAD_FILE, "but not all of one number of shards");
  remove_folder(&f);
  f = make_folder();
  write_shard(&f, "validation-00000-of-00001", fish, 1);
  expect_refusal(&f, LAC_NOT_FOUND, "it has TFRecords, but no train-00000-of-...");
  remove_folder(&f);
}

static void labels_that_cannot_be_are_refused(void **state) {
  (void)state;
  static const struct {
    row row;
    const char *want;
  } cases[] = {{{0, ""}, "train-00000-of-00001: byte 0: label 0, wanted 1 to 1000"},
               {{1001, ""}, "byte 0: label 1001, wanted 1 to 1000"},
               {{-5, ""}, "byte 0: label -5, wanted 1 to 1000"},
               {{2, "n01440764"}, "byte 0: label 2, but n01440764 is 1"}};
  folder f = make_folder();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    write_shard(&f, "train-00000-of-00001", &cases[k].row, 1);
    expect_refusal(&f, LAC_BAD_FILE, cases[k].want);
  }
  remove_folder(&f);
}

/** The bytes of a shard of one record. */
static laci_file_bytes one_record(const folder *f) {
  char path[FOLDER_PATH];
  laci_file_bytes whole;
  write_shard(f, "train-00000-of-00001", fish + 1, 1);
  path_in(path, f, "train-00000-of-00001");
  assert_int_equal(laci_file_bytes_read(path, &whole, NULL), LAC_OK);
  return whole;
}

static void a_cut_off_shard_is_refused(void **state) {
  (void)state;
  folder f = make_folder();
  laci_file_bytes whole = one_record(&f);
  for (size_t n = 1; n < whole.size_bytes; n += n < 40 ? 1 : 97) {
    add_bytes(&f, "train-00000-of-00001", whole.bytes, n);
    expect_refusal(&f, LAC_BAD_FILE, "train-00000-of-00001: byte 0: the file is cut off");
  }
  add_bytes(&f, "train-00000-of-00001", whole.bytes, 0);
  expect_refusal(&f, LAC_BAD_FILE, "no record in any shard");
  laci_file_bytes_clear(&whole);
  remove_folder(&f);
}

/** Opened and read: an error, whichever bit it is. */
static void every_flipped_bit_is_noticed(void **state) {
  (void)state;
  folder f = make_folder();
  laci_file_bytes whole = one_record(&f);
  uint8_t *damaged = malloc(whole.size_bytes);
  assert_non_null(damaged);
  memcpy(damaged, whole.bytes, whole.size_bytes);
  for (size_t at = 0; at < whole.size_bytes;
       at += at < 300 || at + 20 > whole.size_bytes ? 1 : 31) {
    laci_dataset *set = NULL;
    laci_image image = {0};
    lac_error err = {0};
    damaged[at] ^= (uint8_t)(1 << at % 8);
    add_bytes(&f, "train-00000-of-00001", damaged, whole.size_bytes);
    lac_status st = open_part(&f, LACI_PART_TRAIN, &set, &err);
    if (!st) st = laci_dataset_read_image(set, 0, &image, &err);
    if (st != LAC_BAD_FILE) fail_msg("byte %zu: status %d", at, st);
    if (!strstr(err.text, "train-00000-of-00001: byte 0: ")) fail_msg("%s", err.text);
    damaged[at] = whole.bytes[at];
    laci_dataset_close(set);
    laci_image_clear(&image);
  }
  free(damaged);
  laci_file_bytes_clear(&whole);
  remove_folder(&f);
}

static void a_compressed_shard_is_named(void **state) {
  (void)state;
  folder f = make_folder();
  add_bytes(&f, "train-00000-of-00001", "\x1F\x8B\x08\0\0\0\0\0\0\x03xxxxxxxxxxxxxxx", 25);
  expect_refusal(&f, LAC_UNSUPPORTED, "TFRecords compressed by gzip");
  remove_folder(&f);
}

/** An Example in other words that mean the same: unpacked numbers, the value before its key, fields
 * that are not known, another order. */
static void other_writers_examples_are_read(void **state) {
  (void)state;
  uint8_t entry[64] =
      "\x0A\x1C\x12\x07\x1A\x05\x08\xE8\x07\x10\x01\x0A\x11"
      "image/class/label";
  uint8_t image[64] =
      "\x0A\x1C\x0A\x0D"
      "image/encoded"
      "\x12\x0B\x0A\x09\x0A\x07"
      "picture";
  uint8_t message[160] = "\x18\x05\x0A\x3C";
  memcpy(message + 4, entry, 30);
  memcpy(message + 34, image, 30);
  laci_example_source source = {.name = "x", .n = 64, .bytes = message};
  laci_example_view view;
  lac_error err = {0};
  if (laci_example_find_features(&source, &view, &err)) fail_msg("%s", err.text);
  assert_int_equal(view.label, 1000);
  assert_int_equal(view.encoded_bytes, 7);
  assert_memory_equal(message + view.encoded, "picture", 7);
  for (size_t n = 0; n < 64; n++) {
    source.n = n;
    assert_int_equal(laci_example_find_features(&source, &view, NULL), LAC_BAD_FILE);
  }
}

static void parts_are_found(void **state) {
  (void)state;
  folder f = make_records();
  laci_parts *parts = malloc(sizeof *parts);
  assert_non_null(parts);
  assert_int_equal(laci_parts_find(f.path, LACI_PARTS_BOTH, parts, NULL), LAC_OK);
  assert_string_equal(parts->train, f.path);
  assert_string_equal(parts->test, f.path);
  remove_folder(&f);
  f = make_folder();
  char path[FOLDER_PATH];
  path_in(path, &f, "train");
  assert_int_equal(mkdir(path, 0777), 0);
  path_in(path, &f, "validation");
  assert_int_equal(mkdir(path, 0777), 0);
  write_shard(&f, "train/train-00000-of-00001", fish, 1);
  write_shard(&f, "validation/validation-00000-of-00001", fish, 1);
  assert_int_equal(laci_parts_find(f.path, LACI_PARTS_BOTH, parts, NULL), LAC_OK);
  assert_string_equal(parts->test, path);
  free(parts);
  remove_folder(&f);
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  folder f = make_records();
  for (long n = 1;; n++) {
    laci_dataset *set = NULL;
    laci_image image = {0};
    laci_memory_fail_from(n);
    lac_status st = open_part(&f, LACI_PART_TRAIN, &set, NULL);
    if (!st) st = laci_dataset_read_image(set, 0, &image, NULL);
    bool reached = !laci_memory_is_failure_pending();
    laci_memory_fail_from(0);
    laci_dataset_close(set);
    laci_image_clear(&image);
    if (!reached) break;
    assert_int_not_equal(st, LAC_OK);
  }
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(both_parts_are_read),
      cmocka_unit_test(missing_and_foreign_shards_are_refused),
      cmocka_unit_test(labels_that_cannot_be_are_refused),
      cmocka_unit_test(a_cut_off_shard_is_refused),
      cmocka_unit_test(every_flipped_bit_is_noticed),
      cmocka_unit_test(a_compressed_shard_is_named),
      cmocka_unit_test(other_writers_examples_are_read),
      cmocka_unit_test(parts_are_found),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
