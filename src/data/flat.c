/* SPDX-License-Identifier: Apache-2.0
 * Opens images in one folder, like ImageNet's validation images, with a text file of their classes.
 * It has one line for each image, in the order of the images' sorted names,
 *
 *     n01751748                                   or a number, the first class being 0
 *
 * or with the image's name first, in any order,
 *
 *     ILSVRC2012_val_00000001.JPEG n01751748      or a number
 *
 * If an image had another image's label, every accuracy would be wrong without notice. So each
 * image must have exactly one line, and anything else is refused. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "data/image_files_in.h"

enum { MOST_DIGITS = 6 };

/* ---- The file of labels ---- */

static bool label_file_exists(char path[PATH_MAX], const char *folder, int length,
                              const char *between, const char *name) {
  int n = snprintf(path, PATH_MAX, "%.*s%s%s", length, folder, between, name);
  return n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
}

/** Finds the file of labels in the folder, or next to it; false: there is none. */
static bool find_label_file(const char *folder, char path[PATH_MAX]) {
  int n = (int)strlen(folder);
  while (n > 1 && folder[n - 1] == '/') n--;
  return label_file_exists(path, folder, n, "/", "labels.txt") ||
         label_file_exists(path, folder, n, "/", "synset_labels.txt") ||
         label_file_exists(path, folder, n, "", ".txt") ||
         label_file_exists(path, folder, n, "/../", "synset_labels.txt");
}

static lac_status list_images_in(laci_arena *arena, const char *folder, size_t *n_left_out,
                                 laci_name_list *images, lac_error *err) {
  laci_listing here = {.root = folder, .n_left_out = n_left_out};
  return laci_list_images(arena, &here, "", images, err);
}

bool laci_flat_folder_has_images(const char *folder) {
  laci_arena arena = {0};
  laci_name_list images = {0};
  size_t left_out = 0;
  bool has = !list_images_in(&arena, folder, &left_out, &images, NULL) && images.n > 0;
  laci_free(images.at);
  laci_arena_clear(&arena);
  return has;
}

bool laci_is_flat_image_folder(const char *folder) {
  char path[PATH_MAX];
  return find_label_file(folder, path) && laci_flat_folder_has_images(folder);
}

/* ---- Lines ---- */

typedef struct labelled {
  const char *name, *label; /* the image's name and the text of its label; name NULL: the line has
                               only the label */
  int line;
} labelled;

static bool is_separator(char c) { return c == ' ' || c == '\t' || c == ','; }

/** Splits a line "NAME LABEL" or "LABEL" in place; false: the line has another form. */
static bool split_line(char *line, labelled *row) {
  size_t n = strlen(line);
  while (n > 0 && is_separator(line[n - 1])) n--;
  line[n] = '\0';
  size_t at = n;
  while (at > 0 && !is_separator(line[at - 1])) at--;
  row->label = line + at;
  while (at > 0 && is_separator(line[at - 1])) at--;
  row->name = at ? line : NULL;
  line[at ? at : n] = '\0';
  return n > 0;
}

static lac_status split_lines(const char *path, const char **lines, int n, labelled *rows,
                              lac_error *err) {
  for (int k = 0; k < n; k++) {
    rows[k].line = k + 1;
    if (!split_line((char *)(uintptr_t)lines[k], &rows[k])) {
      return laci_fail(err, LAC_BAD_FILE, "%s: line %d has no label", path, k + 1);
    }
    if (!rows[k].name == !rows[0].name) continue;
    return laci_fail(
        err, LAC_BAD_FILE, "%s: line %d %s, line 1 %s: wanted LABEL or NAME LABEL in all", path,
        k + 1, rows[k].name ? "names an image" : "names none", rows[0].name ? "names one" : "none");
  }
  return LAC_OK;
}

static int compare_names_of_rows(const void *a, const void *b) {
  return strcmp(((const labelled *)a)->name, ((const labelled *)b)->name);
}

/** Sets labels[k] to the text of the label of image k, for each image. */
static lac_status match_labels_to_images(const laci_name_list *images, const char *path,
                                         labelled *rows, int n, const char **labels,
                                         lac_error *err) {
  qsort(rows, (size_t)n, sizeof *rows, compare_names_of_rows);
  for (int k = 1; k < n; k++) {
    if (strcmp(rows[k - 1].name, rows[k].name) != 0) continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: '%s' is there twice", path, rows[k].name);
  }
  for (size_t at = 0; at < images->n; at++) {
    labelled key = {.name = images->at[at]};
    const labelled *found = bsearch(&key, rows, (size_t)n, sizeof *rows, compare_names_of_rows);
    if (!found) return laci_fail(err, LAC_BAD_FILE, "%s: no line for '%s'", path, images->at[at]);
    labels[at] = found->label;
  }
  return LAC_OK;
}

static lac_status use_labels_in_order(const laci_dataset *set, const char *path,
                                      const labelled *rows, int n, const char **labels,
                                      lac_error *err) {
  if (n != set->count) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: %d lines, wanted one for each of the %lld images of %s", path, n,
                     (long long)set->count, set->folder);
  }
  for (int k = 0; k < n; k++) labels[k] = rows[k].label;
  return LAC_OK;
}

/* ---- Classes ---- */

/** Returns the class number that a label's text is; -1: it is no number. */
static int parse_number(const char *label) {
  size_t n = strspn(label, "0123456789");
  return n > 0 && n <= MOST_DIGITS && !label[n] ? atoi(label) : -1;
}

static lac_status set_labels_by_number(laci_dataset *set, const char *path,
                                       const char *const *labels, const char *classes_path,
                                       lac_error *err) {
  int most = 0;
  for (int64_t at = 0; at < set->count; at++) {
    set->labels[at] = parse_number(labels[at]);
    if (set->labels[at] < 0) {
      return laci_fail(err, LAC_BAD_FILE, "%s: '%s' is no number, as others are", path, labels[at]);
    }
    if (set->labels[at] > most) most = set->labels[at];
  }
  set->n_classes = most + 1;
  set->numbering = LACI_NUMBERED_BY_DATA;
  if (!classes_path) return LAC_OK;
  lac_status st = laci_classes_read_from_file(set, classes_path, err);
  if (st || most < set->n_classes) return st;
  return laci_fail(err, LAC_BAD_FILE, "%s: label %d, wanted 0 to %d, the lines of %s", path, most,
                   set->n_classes - 1, classes_path);
}

static int compare_labels(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/** Sets the images' labels: numbers the class names in `labels` as class folders are numbered
 * (laci_number_class_folders). */
static lac_status set_labels_by_class_name(laci_dataset *set, const char **labels,
                                           const laci_dataset_options *options, lac_error *err) {
  const size_t n = (size_t)set->count;
  size_t n_names = 0;
  const char **names = laci_arena_alloc(&set->arena, n, sizeof *names);
  int32_t *numbers = laci_alloc(n, sizeof *numbers);
  lac_status st = names && numbers ? LAC_OK : laci_fail_memory(err, set->folder);
  if (st) goto out;
  memcpy(names, labels, n * sizeof *names);
  qsort(names, n, sizeof *names, compare_labels);
  for (size_t at = 0; at < n; at++) {
    if (!n_names || strcmp(names[n_names - 1], names[at]) != 0) names[n_names++] = names[at];
  }
  st = laci_number_class_folders(set, names, (int)n_names, options, numbers, err);
  for (size_t at = 0; at < n && !st; at++) {
    const char **found = bsearch(&labels[at], names, n_names, sizeof *names, compare_labels);
    set->labels[at] = numbers[found - names];
  }
out:
  laci_free(numbers);
  return st;
}

static lac_status read_image_labels(laci_dataset *set, const char *path,
                                    const laci_dataset_options *options, lac_error *err) {
  const laci_image_files *f = set->own;
  const char **lines, **labels = laci_alloc(f->images.n, sizeof *labels);
  labelled *rows = NULL;
  int n = 0;
  set->labels = laci_alloc(f->images.n, sizeof *set->labels);
  lac_status st = LAC_OK;
  if (!labels || !set->labels) st = laci_fail_memory(err, path);
  else st = laci_read_lines(&set->arena, path, &lines, &n, err);
  if (st) goto out;
  rows = laci_alloc((size_t)n, sizeof *rows);
  st = rows ? split_lines(path, lines, n, rows, err) : laci_fail_memory(err, path);
  if (!st && n > 0 && rows[0].name)
    st = match_labels_to_images(&f->images, path, rows, n, labels, err);
  else if (!st) st = use_labels_in_order(set, path, rows, n, labels, err);
  if (!st && parse_number(labels[0]) >= 0) {
    st = set_labels_by_number(set, path, labels, options->classes_path, err);
  } else if (!st) {
    st = set_labels_by_class_name(set, labels, options, err);
  }
out:
  laci_free(rows);
  laci_free(labels);
  return st;
}

lac_status laci_flat_folder_open(laci_dataset *set, const laci_dataset_options *options,
                                 lac_error *err) {
  char path[PATH_MAX];
  laci_name_list folders = {0};
  lac_status st = laci_image_files_init(set, err);
  if (!st) st = laci_list_folders(&set->arena, set->folder, &folders, err);
  if (!st && folders.n > 0) {
    st = laci_fail(err, LAC_BAD_FILE,
                   "%s: images with a file of labels, but also the folder '%s': wanted one or the "
                   "other",
                   set->folder, folders.at[0]);
  }
  laci_image_files *f = set->own;
  if (!st) st = list_images_in(&set->arena, set->folder, &f->n_left_out, &f->images, err);
  if (!st && !find_label_file(set->folder, path)) {
    st = laci_fail(err, LAC_NOT_FOUND, "%s: the file of labels is gone", set->folder);
  }
  if (!st) set->count = (int64_t)f->images.n;
  if (!st) st = read_image_labels(set, path, options, err);
  laci_free(folders.at);
  return st;
}
