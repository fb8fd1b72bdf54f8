/* SPDX-License-Identifier: Apache-2.0
 * data: folders in class folders, and images in one folder whose labels a text file has: which
 * label, and what is refused, since a label at another image would never be noticed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "data/dataset.h"
#include "data/image.h"
#include "data/parts.h"
#include "unit/data_folder.h"

static laci_dataset *open_set(const char *path, const char *classes) {
  laci_dataset *set = NULL;
  lac_error err = {0};
  laci_dataset_options options = {.classes_path = classes};
  if (laci_dataset_open(path, &options, &set, &err)) fail_msg("%s", err.text);
  return set;
}

static void expect_labels(const laci_dataset *set, int n, const int *labels) {
  assert_int_equal(laci_dataset_count(set), n);
  for (int k = 0; k < n; k++) assert_int_equal(laci_dataset_label(set, k), labels[k]);
}

static folder make_flat(void) {
  folder f = make_folder();
  static const char *const names[] = {"val_3.JPEG", "val_1.JPEG", "val_2.jpg", ".hidden.jpg"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) add_picture(&f, names[k]);
  return f;
}

static void folders_of_any_depth_belong_to_their_class(void **state) {
  (void)state;
  folder f = make_folder();
  add_picture(&f, "cat/x.jpg");
  add_picture(&f, "dog/z.jpg");
  char path[FOLDER_PATH];
  static const char *const folders[] = {"dog/a", "dog/a/b", "dog/a/b/c"};
  for (size_t k = 0; k < 3; k++) {
    path_in(path, &f, folders[k]);
    assert_int_equal(mkdir(path, 0777), 0);
  }
  add_picture(&f, "dog/a/b/c/1.jpg");
  add_picture(&f, "dog/a/2.jpg");
  laci_dataset *set = open_set(f.path, NULL);
  expect_labels(set, 4, (const int[]){0, 1, 1, 1});
  assert_int_equal(laci_dataset_count_classes(set), 2);
  laci_image image = {0};
  assert_int_equal(laci_dataset_read_image(set, 3, &image, NULL), LAC_OK);
  laci_image_clear(&image);
  laci_dataset_close(set);
  remove_folder(&f);
}

static void a_circle_of_links_ends(void **state) {
  (void)state;
  folder f = make_folder();
  char path[FOLDER_PATH];
  add_picture(&f, "cat/x.jpg");
  path_in(path, &f, "cat/again");
  assert_int_equal(symlink(".", path), 0);
  laci_dataset *set;
  lac_error err = {0};
  assert_int_equal(laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "more than 32 levels of folders"));
  remove_folder(&f);
}

static void labels_come_from_a_text_file(void **state) {
  (void)state;
  static const struct {
    const char *file, *text, *comment;
    int labels[3], classes;
    laci_numbering numbering;
  } cases[] = {
      {"labels.txt",
       "n02099601\nn01440764\nn15075141\n",
       "a synset a line, in the images' order",
       {207, 0, 999},
       1000,
       LACI_NUMBERED_BY_WORDNET},
      {"synset_labels.txt",
       "n02099601\r\nn01440764\r\nn15075141",
       "as others write lines",
       {207, 0, 999},
       1000,
       LACI_NUMBERED_BY_WORDNET},
      {"labels.txt",
       "val_3.JPEG n15075141\nval_2.jpg n01440764\nval_1.JPEG n02099601\n",
       "names in any order",
       {207, 0, 999},
       1000,
       LACI_NUMBERED_BY_WORDNET},
      {"labels.txt",
       "val_1.JPEG 4\nval_2.jpg,0\nval_3.JPEG\t 2 \nother.jpg 9\n",
       "numbers; an image that is not there",
       {4, 0, 2},
       5,
       LACI_NUMBERED_BY_DATA},
      {"labels.txt", "1\n1\n0\n", "numbers alone", {1, 1, 0}, 2, LACI_NUMBERED_BY_DATA},
      {"labels.txt", "cat\ndog\ncat\n", "names", {0, 1, 0}, 2, LACI_NUMBERED_IN_ORDER},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    folder f = make_flat();
    add_text(&f, cases[k].file, cases[k].text);
    laci_dataset *set = open_set(f.path, NULL);
    expect_labels(set, 3, cases[k].labels);
    assert_int_equal(laci_dataset_count_classes(set), cases[k].classes);
    assert_int_equal(laci_dataset_numbering(set), cases[k].numbering);
    laci_dataset_close(set);
    remove_folder(&f);
  }
}

static void a_list_of_classes_says_what_labels_mean(void **state) {
  (void)state;
  folder f = make_flat();
  char list[FOLDER_PATH];
  add_text(&f, "list", "dog\na cat\tCat\ncow\nemu\n");
  path_in(list, &f, "list");
  add_text(&f, "labels.txt", "cow\ndog\ncow\n");
  laci_dataset *set = open_set(f.path, list);
  expect_labels(set, 3, (const int[]){2, 0, 2});
  assert_int_equal(laci_dataset_count_classes(set), 4);
  laci_dataset_close(set);
  add_text(&f, "labels.txt", "3\n1\n1\n");
  set = open_set(f.path, list);
  expect_labels(set, 3, (const int[]){3, 1, 1});
  assert_int_equal(laci_dataset_count_classes(set), 4);
  assert_string_equal(laci_dataset_class_name(set, 1), "Cat");
  laci_dataset_close(set);
  remove_folder(&f);
}

static void what_could_be_a_wrong_label_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *want;
  } cases[] = {
      {"0\n1\n", "labels.txt: 2 lines, wanted one for each of the 3 images of "},
      {"0\n1\n2\n3\n", "labels.txt: 4 lines, wanted one for each of the 3 images of "},
      {"", "labels.txt: 0 lines, wanted one for each of the 3 images of "},
      {"0\n\n2\n", "labels.txt: line 2 has no label"},
      {"0\ncat\n2\n", "labels.txt: 'cat' is no number, as others are"},
      {"val_1.JPEG 0\nval_3.JPEG 1\n", "labels.txt: no line for 'val_2.jpg'"},
      {"val_1.JPEG 0\nval_1.JPEG 1\n", "labels.txt: 'val_1.JPEG' is there twice"},
      {"val_1.JPEG 0\n1\n2\n", "labels.txt: line 2 names none, line 1 names one"},
      {"0\nval_2.jpg 1\n2\n", "labels.txt: line 2 names an image, line 1 none"},
      {"n01440764\ncat\nn01440764\n", "'cat' is none of ImageNet's 1000 classes"},
      {"0\n9999999\n1\n", "labels.txt: '9999999' is no number"},
  };
  folder f = make_flat();
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    laci_dataset *set;
    lac_error err = {0};
    add_text(&f, "labels.txt", cases[k].text);
    assert_int_equal(laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, &err),
                     LAC_BAD_FILE);
    if (!strstr(err.text, cases[k].want)) fail_msg("got '%s', want '%s'", err.text, cases[k].want);
  }
  add_text(&f, "labels.txt", "0\n1\n2\n");
  add_picture(&f, "dog/1.jpg");
  laci_dataset *set;
  lac_error err = {0};
  assert_int_equal(laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, "but also the folder 'dog'"));
  remove_folder(&f);
}

static void images_without_labels_are_refused(void **state) {
  (void)state;
  folder f = make_flat();
  laci_dataset *set;
  lac_error err = {0};
  assert_int_equal(laci_dataset_open(f.path, &(laci_dataset_options){0}, &set, &err), LAC_BAD_FILE);
  assert_non_null(strstr(err.text, ": images, but no labels: wanted folders CLASS/"));
  remove_folder(&f);
}

static void a_flat_val_is_a_part_next_to_train(void **state) {
  (void)state;
  folder f = make_folder();
  laci_parts *parts = malloc(sizeof *parts);
  assert_non_null(parts);
  char path[FOLDER_PATH];
  path_in(path, &f, "train");
  assert_int_equal(mkdir(path, 0777), 0);
  add_picture(&f, "train/n01440764/1.JPEG");
  add_picture(&f, "val/1.JPEG");
  add_text(&f, "val.txt", "1.JPEG n02099601\n");
  assert_int_equal(laci_parts_find(f.path, LACI_PARTS_BOTH, parts, NULL), LAC_OK);
  path_in(path, &f, "val");
  assert_string_equal(parts->test, path);
  laci_dataset *set = open_set(parts->test, NULL);
  expect_labels(set, 1, (const int[]){207});
  laci_dataset_close(set);
  free(parts);
  remove_folder(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folders_of_any_depth_belong_to_their_class),
      cmocka_unit_test(a_circle_of_links_ends),
      cmocka_unit_test(labels_come_from_a_text_file),
      cmocka_unit_test(a_list_of_classes_says_what_labels_mean),
      cmocka_unit_test(what_could_be_a_wrong_label_is_refused),
      cmocka_unit_test(images_without_labels_are_refused),
      cmocka_unit_test(a_flat_val_is_a_part_next_to_train),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
