/* SPDX-License-Identifier: Apache-2.0
 * data: CIFAR's binary folders and folders of images: how many, which label, which pixels, and what
 * is refused. */
#include "data/dataset.h"
#include "data/prepare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/image.h"
#include "unit/data_folder.h"

static laci_dataset *open_set(const folder *f, laci_dataset_part part, const char *classes) {
  laci_dataset *set = NULL;
  lac_error err = {0};
  laci_dataset_options options = {.part = part, .classes_path = classes};
  if (laci_dataset_open(f->path, &options, &set, &err)) fail_msg("%s", err.text);
  return set;
}

/** The text after the folder's name. */
static void expect_refusal(const folder *f, const char *classes, lac_status status,
                           const char *text) {
  laci_dataset *set;
  lac_error err = {0};
  laci_dataset_options options = {.classes_path = classes};
  assert_int_equal(laci_dataset_open(f->path, &options, &set, &err), status);
  assert_null(set);
  if (!strstr(err.text, text)) fail_msg("got '%s', want '%s'", err.text, text);
}

/* ---- CIFAR ---- */

static void cifar10_is_its_files_one_after_the_other(void **state) {
  (void)state;
  folder f = make_folder();
  add_cifar(&f, "data_batch_1.bin", 1, 5, 0, 10);
  add_cifar(&f, "data_batch_2.bin", 1, 3, 5, 10);
  add_cifar(&f, "data_batch_3.bin", 1, 9, 8, 10);
  add_cifar(&f, "test_batch.bin", 1, 2, 40, 10);
  laci_dataset *test = open_set(&f, LACI_PART_TEST, NULL);
  laci_dataset *train = open_set(&f, LACI_PART_TRAIN, NULL);
  assert_int_equal(laci_dataset_count(test), 2);
  assert_int_equal(laci_dataset_count(train), 17);
  assert_int_equal(laci_dataset_count_classes(train), 10);
  assert_null(laci_dataset_class_name(train, 3));
  laci_image image = {0};
  for (int k = 0; k < 17; k++) {
    assert_int_equal(laci_dataset_label(train, k), k % 10);
    assert_int_equal(laci_dataset_read_image(train, k, &image, NULL), LAC_OK);
    assert_int_equal(image.width, 32);
    assert_int_equal(image.height, 32);
    for (int at = 0; at < 3072; at++) {
      int want = (unsigned char)((at % 3 * 1024 + at / 3) * 7 + k * 31);
      assert_int_equal(image.rgb[at], want);
    }
  }
  laci_preprocessing preprocessing = laci_dataset_preprocessing(train);
  assert_int_equal(preprocessing.resize, 0);
  assert_int_equal(preprocessing.height, 32);
  laci_image_clear(&image);
  laci_dataset_close(test);
  laci_dataset_close(train);
  remove_folder(&f);
}

/* Other programs leave arrays next to data, such as labels of what they predicted. */
static void arrays_next_to_cifar_do_not_count(void **state) {
  (void)state;
  folder f = make_folder();
  add_cifar(&f, "test_batch.bin", 1, 2, 40, 10);
  add_text(&f, "labels.npy", "");
  add_text(&f, "x.npy", "");
  laci_dataset *test = open_set(&f, LACI_PART_TEST, NULL);
  assert_int_equal(laci_dataset_count(test), 2);
  assert_int_equal(laci_dataset_preprocessing(test).height, 32);
  laci_dataset_close(test);
  remove_folder(&f);
}

static void cifar100_counts_by_its_fine_label(void **state) {
  (void)state;
  folder f = make_folder();
  char names[2000] = "";
  for (int k = 0; k < 100; k++) { (void)snprintf(names + strlen(names), 20, "class%02d\n", k); }
  add_cifar(&f, "test.bin", 2, 101, 0, 100);
  add_text(&f, "fine_label_names.txt", names);
  laci_dataset *set = open_set(&f, LACI_PART_TEST, NULL);
  assert_int_equal(laci_dataset_count(set), 101);
  assert_int_equal(laci_dataset_count_classes(set), 100);
  assert_int_equal(laci_dataset_label(set, 77), 77);
  assert_string_equal(laci_dataset_class_name(set, 77), "class77");
  assert_null(laci_dataset_class_name(set, 100));
  laci_dataset_close(set);
  remove_folder(&f);
}

static void broken_cifar_files_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  uint8_t record[3073] = {9};
  char path[FOLDER_PATH];
  path_in(path, &f, "test_batch.bin");
  add_bytes(&f, "test_batch.bin", record, 3072);
  expect_refusal(&f, NULL, LAC_BAD_FILE,
                 "test_batch.bin: 3072 bytes, wanted whole records of 3073");
  add_bytes(&f, "test_batch.bin", record, 0);
  expect_refusal(&f, NULL, LAC_BAD_FILE, "test_batch.bin: 0 bytes");
  record[0] = 10;
  add_bytes(&f, "test_batch.bin", record, 3073);
  expect_refusal(&f, NULL, LAC_BAD_FILE, "record 0 has label 10, wanted 0 to 9");
  record[0] = 9;
  add_bytes(&f, "test_batch.bin", record, 3073);
  expect_refusal(&f, "names.txt", LAC_BAD_ARGUMENT, "names.txt: CIFAR's labels are numbers");
  add_text(&f, "batches.meta.txt", "one\ntwo\n");
  expect_refusal(&f, NULL, LAC_BAD_FILE, "batches.meta.txt: 2 lines, wanted 10 class names");
  remove_folder(&f);
  f = make_folder();
  add_cifar(&f, "data_batch_1.bin", 1, 1, 0, 10);
  expect_refusal(&f, NULL, LAC_NOT_FOUND, "test_batch.bin: cannot open");
  remove_folder(&f);
}

/* ---- Images ---- */

static void image_folders_are_sorted_by_name(void **state) {
  (void)state;
  folder f = make_folder();
  static const char *const names[] = {"dog/2.jpg",  "dog/10.JPEG",   "cat/b.jpg",
                                      "cat/a.jpe",  "cat/notes.txt", "cat/.hidden.jpg",
                                      ".git/x.jpg", "emu/x.txt"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) add_picture(&f, names[k]);
  add_text(&f, "README", "not a class");
  laci_dataset *set = open_set(&f, LACI_PART_TEST, NULL);
  assert_int_equal(laci_dataset_count(set), 4);
  assert_int_equal(laci_dataset_count_classes(set), 3);
  assert_string_equal(laci_dataset_class_name(set, 0), "cat");
  assert_string_equal(laci_dataset_class_name(set, 2), "emu");
  static const int labels[] = {0, 0, 1, 1};
  for (int k = 0; k < 4; k++) assert_int_equal(laci_dataset_label(set, k), labels[k]);
  laci_image image = {0};
  assert_int_equal(laci_dataset_read_image(set, 3, &image, NULL), LAC_OK);
  assert_int_equal(image.width, 48);
  laci_image_clear(&image);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void wordnet_ids_are_imagenets_classes(void **state) {
  (void)state;
  folder f = make_folder();
  add_picture(&f, "n01440764/tench.JPEG");
  add_picture(&f, "n02099601/retriever.JPEG");
  add_picture(&f, "n15075141/tissue.JPEG");
  laci_dataset *set = open_set(&f, LACI_PART_TEST, NULL);
  assert_int_equal(laci_dataset_count_classes(set), 1000);
  assert_int_equal(laci_dataset_label(set, 0), 0);
  assert_int_equal(laci_dataset_label(set, 1), 207);
  assert_int_equal(laci_dataset_label(set, 2), 999);
  assert_string_equal(laci_dataset_class_name(set, 207), "n02099601");
  laci_dataset_close(set);
  add_picture(&f, "n00000001/thing.JPEG");
  expect_refusal(&f, NULL, LAC_BAD_FILE, "'n00000001' is none of ImageNet's 1000 classes");
  remove_folder(&f);
}

static void other_ids_are_numbered_in_order(void **state) {
  (void)state;
  folder f = make_folder();
  add_picture(&f, "n00000002/a.jpg");
  add_picture(&f, "n0144076/b.jpg");
  add_picture(&f, "n0144076x/c.jpg");
  laci_dataset *set = open_set(&f, LACI_PART_TEST, NULL);
  assert_int_equal(laci_dataset_count_classes(set), 3);
  assert_int_equal(laci_dataset_label(set, 2), 2);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void a_list_numbers_the_classes(void **state) {
  (void)state;
  folder f = make_folder();
  char list[FOLDER_PATH];
  path_in(list, &f, "classes.txt");
  add_picture(&f, "cat/a.jpg");
  add_picture(&f, "dog/b.jpg");
  add_text(&f, "classes.txt", "dog\tman's friend\r\nemu\ncat\n\n\n");
  laci_dataset *set = open_set(&f, LACI_PART_TEST, list);
  assert_int_equal(laci_dataset_count_classes(set), 3);
  assert_int_equal(laci_dataset_label(set, 0), 2);
  assert_int_equal(laci_dataset_label(set, 1), 0);
  assert_string_equal(laci_dataset_class_name(set, 0), "man's friend");
  assert_string_equal(laci_dataset_class_name(set, 1), "emu");
  laci_dataset_close(set);
  add_text(&f, "classes.txt", "dog\n");
  expect_refusal(&f, list, LAC_BAD_FILE, "classes.txt: no line for the folder 'cat'");
  add_text(&f, "classes.txt", "dog\ncat\ndog\n");
  expect_refusal(&f, list, LAC_BAD_FILE, "classes.txt: 'dog' is there twice");
  add_text(&f, "classes.txt", "dog\n\ncat\n");
  expect_refusal(&f, list, LAC_BAD_FILE, "classes.txt: line 2 has no name");
  add_text(&f, "classes.txt", "\n");
  expect_refusal(&f, list, LAC_BAD_FILE, "classes.txt: no line, wanted one a class");
  expect_refusal(&f, "nowhere.txt", LAC_NOT_FOUND, "nowhere.txt: cannot open");
  remove_folder(&f);
}

static void folders_without_images_are_refused(void **state) {
  (void)state;
  folder f = make_folder();
  expect_refusal(&f, NULL, LAC_BAD_FILE,
                 ": no data, wanted CIFAR's files, folders CLASS/NAME.jpg, images");
  add_picture(&f, "flat.jpg");
  expect_refusal(&f, NULL, LAC_BAD_FILE, ": images, but no labels");
  remove_folder(&f);
  expect_refusal(&f, NULL, LAC_NOT_FOUND, ": cannot list the folder");
}

static void a_broken_image_names_itself(void **state) {
  (void)state;
  folder f = make_folder();
  char want[FOLDER_PATH];
  add_text(&f, "cat/broken.jpg", "\xFF\xD8 no JPEG at all");
  laci_dataset *set = open_set(&f, LACI_PART_TEST, NULL);
  laci_image image = {0};
  lac_error err = {0};
  assert_int_equal(laci_dataset_read_image(set, 0, &image, &err), LAC_BAD_FILE);
  path_in(want, &f, "cat/broken.jpg: no whole JPEG: ");
  assert_memory_equal(err.text, want, strlen(want));
  laci_image_clear(&image);
  laci_dataset_close(set);
  remove_folder(&f);
}

/** Opens, reads an image and closes; true when all went well. */
static bool attempt(const folder *f, const char *classes, long failing) {
  laci_dataset *set = NULL;
  laci_image image = {0};
  lac_error err = {0};
  laci_dataset_options options = {.classes_path = classes};
  laci_memory_fail_from(failing);
  lac_status st = laci_dataset_open(f->path, &options, &set, &err);
  if (!st) st = laci_dataset_read_image(set, 0, &image, &err);
  laci_memory_fail_from(0);
  if (st && st != LAC_NO_MEMORY) fail_msg("allocation %ld: %s", failing, err.text);
  laci_image_clear(&image);
  laci_dataset_close(set);
  return st == LAC_OK;
}

static void every_failed_allocation_is_an_error(void **state) {
  (void)state;
  folder kinds[3] = {make_folder(), make_folder(), make_folder()};
  char list[FOLDER_PATH];
  add_cifar(&kinds[0], "test_batch.bin", 1, 3, 0, 10);
  add_text(&kinds[0], "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n");
  add_picture(&kinds[1], "n01440764/tench.JPEG");
  add_picture(&kinds[2], "cat/a.jpg");
  add_text(&kinds[2], "classes.txt", "dog\ncat\n");
  path_in(list, &kinds[2], "classes.txt");
  for (int k = 0; k < 3; k++) {
    long n = 1;
    while (!attempt(&kinds[k], k == 2 ? list : NULL, n)) n++;
    assert_true(n > 5);
    remove_folder(&kinds[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cifar10_is_its_files_one_after_the_other),
      cmocka_unit_test(arrays_next_to_cifar_do_not_count),
      cmocka_unit_test(cifar100_counts_by_its_fine_label),
      cmocka_unit_test(broken_cifar_files_are_refused),
      cmocka_unit_test(image_folders_are_sorted_by_name),
      cmocka_unit_test(wordnet_ids_are_imagenets_classes),
      cmocka_unit_test(other_ids_are_numbered_in_order),
      cmocka_unit_test(a_list_numbers_the_classes),
      cmocka_unit_test(folders_without_images_are_refused),
      cmocka_unit_test(a_broken_image_names_itself),
      cmocka_unit_test(every_failed_allocation_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
