/* SPDX-License-Identifier: Apache-2.0 */
#include "data/array_list.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/ending.h"
#include "base/error.h"
#include "data/dataset_in.h"
#include "data/listing_in.h"
#include "data/npz.h"
#include "tensor/buf.h"

const char laci_labels_name[] = "labels";

static bool is_visible_with_suffix(const char *name, const char *ending) {
  return name[0] != '.' && laci_ends_with(name, ending);
}

static bool is_npy_name(const char *name) { return is_visible_with_suffix(name, ".npy"); }

static bool folder_has_files_with_suffix(const char *path, const char *ending) {
  bool found = false;
  DIR *files = opendir(path);
  for (struct dirent *file; files && !found && (file = readdir(files));)
    found = is_visible_with_suffix(file->d_name, ending);
  if (files) (void)closedir(files);
  return found;
}

bool laci_path_has_arrays(const char *path) {
  if (!laci_is_folder(path)) return laci_ends_with(path, ".npy") || laci_ends_with(path, ".npz");
  return folder_has_files_with_suffix(path, ".npy") || folder_has_files_with_suffix(path, ".npz");
}

bool laci_folder_has_archives(const char *path) {
  return laci_is_folder(path) && !folder_has_files_with_suffix(path, ".npy") &&
         folder_has_files_with_suffix(path, ".npz");
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

lac_status laci_list_archives(const char *folder, laci_arena *arena, const char ***names, size_t *n,
                              lac_error *err) {
  laci_name_list list = {0};
  DIR *files = opendir(folder);
  lac_status st = LAC_OK;
  if (!files) return laci_fail_errno(err, folder, "listing");
  for (struct dirent *file; !st && (file = readdir(files));) {
    if (!is_visible_with_suffix(file->d_name, ".npz")) continue;
    if (!laci_name_list_add(&list, laci_arena_text(arena, file->d_name)))
      st = laci_fail_memory(err, folder);
  }
  (void)closedir(files);
  *n = list.n;
  *names = laci_arena_alloc(arena, list.n + 1, sizeof **names);
  if (!st && !*names) st = laci_fail_memory(err, folder);
  if (!st && list.n > 0) {
    memcpy(*names, list.at, list.n * sizeof **names);
    qsort(*names, list.n, sizeof **names, compare_names);
  }
  laci_free(list.at);
  return st;
}

static lac_status alloc_array_list(laci_array_list *list, size_t n, const char *path,
                                   lac_error *err) {
  list->names = laci_arena_alloc(&list->arena, n + 1, sizeof *list->names);
  list->rows = laci_arena_alloc(&list->arena, n + 1, sizeof *list->rows);
  return list->names && list->rows ? LAC_OK : laci_fail_memory(err, path);
}

static lac_status open_npz(const char *path, laci_budget *budget, laci_array_list *list,
                           lac_error *err) {
  lac_status st = laci_npz_open(path, &list->npz, err);
  if (!st) st = alloc_array_list(list, (size_t)laci_npz_count(list->npz), path, err);
  for (int k = 0; !st && k < laci_npz_count(list->npz); k++) {
    list->names[k] = laci_npz_name(list->npz, k);
    st = laci_npz_open_rows(list->npz, k, budget, &list->rows[k], err);
    list->n = k + !st;
  }
  return st;
}

/* Lists the names of the .npy files in a folder, without the ending, in no particular order. */
static lac_status list_npy_names(const char *folder, laci_arena *arena, laci_name_list *list,
                                 lac_error *err) {
  DIR *files = opendir(folder);
  lac_status st = LAC_OK;
  if (!files) return laci_fail_errno(err, folder, "listing");
  for (struct dirent *file; !st && (file = readdir(files));) {
    if (!is_npy_name(file->d_name)) continue;
    const char *name = laci_arena_text_n(arena, file->d_name, strlen(file->d_name) - 4);
    if (!laci_name_list_add(list, name)) st = laci_fail_memory(err, folder);
  }
  (void)closedir(files);
  return st;
}

static lac_status open_arrays_of_folder(const char *folder, laci_budget *budget,
                                        laci_array_list *list, lac_error *err) {
  laci_name_list names = {0};
  char file[4200];
  lac_status st = list_npy_names(folder, &list->arena, &names, err);
  if (!st) st = alloc_array_list(list, names.n, folder, err);
  for (size_t k = 0; k < names.n && !st; k++) {
    (void)snprintf(file, sizeof file, "%.300s.npy", names.at[k]);
    const char *path = laci_path_join(&list->arena, folder, file);
    list->names[k] = names.at[k];
    st = path ? laci_rows_open(path, budget, &list->rows[k], err) : laci_fail_memory(err, folder);
    list->n = (int)k + !st;
  }
  laci_free(names.at);
  return st;
}

static lac_status open_single_npy(const char *path, laci_budget *budget, laci_array_list *list,
                                  lac_error *err) {
  lac_status st = alloc_array_list(list, 1, path, err);
  if (!st) st = laci_rows_open(path, budget, &list->rows[0], err);
  list->n = !st;
  if (!st) list->names[0] = "";
  return st;
}

static lac_status close_list_if_failed(laci_array_list *list, lac_status st) {
  if (st) laci_array_list_close(list);
  return st;
}

lac_status laci_array_list_open(const char *path, laci_budget *budget, laci_array_list *list,
                                lac_error *err) {
  *list = (laci_array_list){.n = 0};
  return close_list_if_failed(list, laci_ends_with(path, ".npz") ? open_npz(path, budget, list, err)
                                    : laci_is_folder(path)
                                        ? open_arrays_of_folder(path, budget, list, err)
                                        : open_single_npy(path, budget, list, err));
}

lac_status laci_array_list_open_memory(const char *name, const laci_rows_memory *arrays, int n,
                                       laci_array_list *list, lac_error *err) {
  *list = (laci_array_list){.n = 0};
  lac_status st = alloc_array_list(list, (size_t)n, name, err);
  for (int k = 0; k < n && !st; k++) {
    for (int before = 0; before < k && !st; before++) {
      if (strcmp(arrays[before].name, arrays[k].name) != 0) continue;
      st = laci_fail(err, LAC_BAD_ARGUMENT, "%s: array %s is given twice", name, arrays[k].name);
    }
    list->names[k] = arrays[k].name;
    if (!st) st = laci_rows_open_memory(&arrays[k], &list->rows[k], err);
    list->n = k + !st;
  }
  return close_list_if_failed(list, st);
}

laci_npz *laci_array_list_close_but_npz(laci_array_list *list) {
  laci_npz *npz = list->npz;
  for (int k = 0; k < list->n; k++) laci_rows_close(list->rows[k]);
  laci_arena_clear(&list->arena);
  *list = (laci_array_list){.n = 0};
  return npz;
}

void laci_array_list_close(laci_array_list *list) {
  laci_npz_close(laci_array_list_close_but_npz(list));
}

lac_status laci_check_labels(const laci_rows *labels, int64_t n, lac_error *err) {
  const laci_type *type = laci_rows_type(labels);
  char text[256];
  if (!laci_dtype_is_integer(type->dtype) || type->shape.rank < 1 ||
      laci_rows_elements_per_row(labels) != 1) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: found %s %s, wanted one integer for each sample",
                     laci_rows_name(labels), lac_dtype_name(type->dtype),
                     laci_shape_text(&type->shape, text, sizeof text));
  }
  if (type->shape.dims[0] == n) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: %lld samples, but the first input has %lld",
                   laci_rows_name(labels), (long long)type->shape.dims[0], (long long)n);
}
