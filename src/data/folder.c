/* SPDX-License-Identifier: Apache-2.0
 * Folders of JPEG files, one folder a class: listed and sorted when opened, read when asked for.
 * Only names are kept, so that a million images cost some fifty megabytes. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "data/dataset_in.h"
#include "data/image.h"

/** Names in the set's arena. */
typedef struct names {
  const char **at;
  size_t n, capacity;
} names;

typedef struct folder {
  names classes; /* folders, sorted */
  names images;  /* "CLASS/NAME", in the set's order */
  size_t n_left_out;
} folder;

/* ---- Images ---- */

static void name_image(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  const folder *f = set->own;
  (void)snprintf(text, size_bytes, "%s/%s", set->folder, f->images.at[at]);
}

static lac_status read_image(const laci_dataset *set, int64_t at, laci_image *image,
                             lac_error *err) {
  const folder *f = set->own;
  laci_arena arena = {0};
  const char *path = laci_path_in(&arena, set->folder, f->images.at[at]);
  lac_status st = path ? laci_jpeg_read(path, image, err) : laci_fail_memory(err, f->images.at[at]);
  laci_arena_clear(&arena);
  return st;
}

static void close_folder(laci_dataset *set) {
  folder *f = set->own;
  if (!f) return;
  laci_free(f->classes.at);
  laci_free(f->images.at);
  laci_free(f);
  set->own = NULL;
}

static const laci_dataset_kind kind = {
    .image = read_image, .name = name_image, .close = close_folder};

/* ---- Listing ---- */

static bool names_add(names *list, const char *name) {
  if (!name || !laci_grow((void **)&list->at, list->n, &list->capacity, sizeof *list->at))
    return false;
  list->at[list->n++] = name;
  return true;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void names_sort(names *list, size_t from) {
  if (list->n > from) { qsort(list->at + from, list->n - from, sizeof *list->at, compare_names); }
}

static bool is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_jpeg_name(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".jpe"));
}

/** Calls visit for each name in a folder that does not begin with a dot. */
typedef lac_status visit_name(laci_dataset *set, const char *parent, const char *name,
                              lac_error *err);
static lac_status visit_all(laci_dataset *set, const char *path, const char *parent,
                            visit_name *visit, lac_error *err) {
  DIR *dir = opendir(path);
  if (!dir) {
    int cause = errno;
    lac_status st = cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO;
    return laci_fail(err, st, "%s: cannot list the folder: %s", path, strerror(cause));
  }
  lac_status st = LAC_OK;
  while (!st) {
    errno = 0;
    const struct dirent *entry = readdir(dir);
    if (!entry && errno) st = laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
    if (!entry) break;
    if (entry->d_name[0] != '.') st = visit(set, parent, entry->d_name, err);
  }
  (void)closedir(dir);
  return st;
}

static lac_status visit_class(laci_dataset *set, const char *parent, const char *name,
                              lac_error *err) {
  folder *f = set->own;
  laci_arena scratch = {0};
  const char *path = laci_path_in(&scratch, parent, name);
  bool memory = path != NULL;
  if (memory && is_folder(path))
    memory = names_add(&f->classes, laci_arena_text(&set->arena, name));
  laci_arena_clear(&scratch);
  return memory ? LAC_OK : laci_fail_memory(err, name);
}

static lac_status visit_image(laci_dataset *set, const char *parent, const char *name,
                              lac_error *err) {
  folder *f = set->own;
  if (!is_jpeg_name(name)) {
    f->n_left_out++;
    return LAC_OK;
  }
  bool memory = names_add(&f->images, laci_path_in(&set->arena, parent, name));
  return memory ? LAC_OK : laci_fail_memory(err, name);
}

/** The images of each class in turn; ends[k] is where class k ends. */
static lac_status list_images(laci_dataset *set, int64_t *ends, lac_error *err) {
  folder *f = set->own;
  for (size_t k = 0; k < f->classes.n; k++) {
    laci_arena scratch = {0};
    size_t from = f->images.n;
    const char *path = laci_path_in(&scratch, set->folder, f->classes.at[k]);
    lac_status st = path ? visit_all(set, path, f->classes.at[k], visit_image, err)
                         : laci_fail_memory(err, set->folder);
    laci_arena_clear(&scratch);
    if (st) return st;
    names_sort(&f->images, from);
    ends[k] = (int64_t)f->images.n;
  }
  return LAC_OK;
}

static void log_left_out(const laci_dataset *set, size_t n) {
  if (n == 1) {
    laci_log(LAC_LOG_WARNING, "%s: a file left out, its name is not that of a JPEG file",
             set->folder);
  } else if (n > 1) {
    laci_log(LAC_LOG_WARNING, "%s: %zu files left out, their names are not those of JPEG files",
             set->folder, n);
  }
}

/** A label for each image, by the class that it lies in. */
static lac_status label_images(laci_dataset *set, const int64_t *ends, const char *classes_path,
                               lac_error *err) {
  const folder *f = set->own;
  int n = (int)f->classes.n;
  int32_t *numbers = laci_alloc(f->classes.n, sizeof *numbers);
  set->labels = laci_alloc(f->images.n, sizeof *set->labels);
  lac_status st = LAC_OK;
  if (!numbers || !set->labels) st = laci_fail_memory(err, set->folder);
  else st = laci_number_classes(set, f->classes.at, n, classes_path, numbers, err);
  for (int64_t k = 0, at = 0; k < n && !st; k++) {
    for (; at < ends[k]; at++) set->labels[at] = numbers[k];
  }
  laci_free(numbers);
  return st;
}

lac_status laci_folder_open(laci_dataset *set, const laci_dataset_options *options,
                            lac_error *err) {
  folder *f = laci_alloc(1, sizeof *f);
  if (!f) return laci_fail_memory(err, set->folder);
  set->kind = &kind;
  set->own = f;
  set->augment = (laci_augment){.flip = true};
  set->preprocessing = laci_preprocessing_default();
  int64_t *ends = NULL;
  lac_status st = visit_all(set, set->folder, set->folder, visit_class, err);
  if (st) goto out;
  names_sort(&f->classes, 0);
  ends = laci_alloc(f->classes.n, sizeof *ends);
  st = ends ? list_images(set, ends, err) : laci_fail_memory(err, set->folder);
  if (st) goto out;
  if (!options->quiet) log_left_out(set, f->n_left_out);
  set->count = (int64_t)f->images.n;
  if (set->count == 0) {
    st = laci_fail(err, LAC_BAD_FILE,
                   "%s: no data, wanted CIFAR's .bin files or folders CLASS/NAME.jpg", set->folder);
    goto out;
  }
  st = label_images(set, ends, options->classes_path, err);
out:
  laci_free(ends);
  return st;
}
