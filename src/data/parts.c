/* SPDX-License-Identifier: Apache-2.0
 * Finds the folders train, val, validation and test in a folder of data. dataset.c reads what they
 * contain. */
#include "data/parts.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "data/dataset_in.h"

static const char *const test_names[] = {"val", "validation", "test"};
enum { N_TEST_NAMES = sizeof test_names / sizeof *test_names, LONGEST_NAME = 16 };

static bool is_folder(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/** Does the folder contain folders, which could be classes? */
static bool has_folders(const char *path) {
  char inner[PATH_MAX];
  DIR *files = opendir(path);
  bool found = false;
  for (struct dirent *file; files && !found && (file = readdir(files));) {
    if (file->d_name[0] == '.') continue;
    int n = snprintf(inner, sizeof inner, "%s/%s", path, file->d_name);
    found = n > 0 && (size_t)n < sizeof inner && is_folder(inner);
  }
  if (files) (void)closedir(files);
  return found;
}

/** Is the folder a part of a data set? A folder of images only is not: it may be a class called
 * "train". */
static bool is_data_part(const char *path) {
  return has_folders(path) || laci_cifar_exists_in(path) || laci_digits_exist_in(path) ||
         laci_is_flat_image_folder(path) || laci_records_exist_in(path) ||
         laci_arrays_exist_in(path);
}

/** Finds the first of the usual names (test_names) for evaluation data of which a folder exists,
 * and writes its path. NULL: there is no such folder. */
static const char *find_test_folder(const char *data, char path[PATH_MAX]) {
  for (int k = 0; k < N_TEST_NAMES; k++) {
    (void)snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - LONGEST_NAME, data, test_names[k]);
    if (is_folder(path)) return test_names[k];
  }
  return NULL;
}

static lac_status fail_missing_part(const char *data, laci_parts_use use, lac_error *err) {
  return laci_fail(err, LAC_NOT_FOUND,
                   "%s: it has a folder train, but none for evaluation: wanted val, validation or "
                   "test next to it, or %s",
                   data,
                   use == LACI_PARTS_BOTH ? "a training without evaluations"
                                          : "the path of the images that are meant");
}

lac_status laci_parts_find(const char *data, laci_parts_use use, laci_parts *parts,
                           lac_error *err) {
  if (strlen(data) + LONGEST_NAME >= PATH_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: the name is too long", data);
  }
  (void)snprintf(parts->train, PATH_MAX, "%.*s/train", PATH_MAX - LONGEST_NAME, data);
  const char *test = find_test_folder(data, parts->test);
  bool train_is_part = is_data_part(parts->train), test_is_part = test && is_data_part(parts->test);
  if (test && is_folder(parts->train) && (train_is_part || test_is_part)) return LAC_OK;
  if (test_is_part) {
    memcpy(parts->train, parts->test, PATH_MAX);
    if (use == LACI_PARTS_TEST) return LAC_OK;
    return laci_fail(err, LAC_NOT_FOUND,
                     "%s: it has a folder %s, but none for training: wanted train next to it, or "
                     "an evaluation alone",
                     data, test);
  }
  if (train_is_part) {
    memcpy(parts->test, parts->train, PATH_MAX);
    return use == LACI_PARTS_TRAIN ? LAC_OK : fail_missing_part(data, use, err);
  }
  (void)snprintf(parts->train, PATH_MAX, "%s", data);
  (void)snprintf(parts->test, PATH_MAX, "%s", data);
  return LAC_OK;
}
