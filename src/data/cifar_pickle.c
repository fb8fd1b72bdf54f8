/* SPDX-License-Identifier: Apache-2.0
 * Reads a file of CIFAR's Python version: a dictionary with the images as an array [n, 3072] of
 * bytes and their labels as a list. The pixels stay in the file; only their position is found
 * here. */
#include "data/cifar_in.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/reader.h"
#include "data/pickle.h"

bool laci_is_pickle(const char *path) {
  struct stat info;
  uint8_t first = 0;
  if (stat(path, &info) || !S_ISREG(info.st_mode))
    return false; /* no regular file: reading a pipe could block */
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool is = read(fd, &first, 1) == 1 && first == 0x80;
  (void)close(fd);
  return is;
}

/** Reads and parses the whole file. *value points into the reader's memory until
 * laci_reader_release_loaded. */
static lac_status parse_pickle(laci_arena *arena, const char *path, laci_reader *reader,
                               const laci_pickle_value **value, lac_error *err) {
  const size_t n = laci_reader_size(reader);
  lac_status st = n ? laci_reader_load_range(reader, 0, n, err)
                    : laci_fail(err, LAC_BAD_FILE, "%s: an empty file", path);
  return st ? st : laci_pickle_parse(arena, path, laci_reader_bytes(reader), n, value, err);
}

static lac_status find_image_array(const char *path, const laci_pickle_value *file,
                                   size_t image_bytes, const laci_pickle_value **data,
                                   lac_error *err) {
  *data = laci_pickle_find_in_dict(file, "data");
  if (!*data || (*data)->kind != LACI_PICKLE_ARRAY || (*data)->n != 2) {
    return laci_fail(err, LAC_BAD_FILE, "%s: no array 'data' of two axes, the images", path);
  }
  const int64_t n = (*data)->items[0]->number, wide = (*data)->items[1]->number;
  if (wide == (int64_t)image_bytes && n > 0) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE,
                   "%s: 'data' is [%" PRId64 ", %" PRId64 "], wanted images of %zu bytes", path, n,
                   wide, image_bytes);
}

/** Reads the list of labels that is stored under `key`; there must be one for each image. */
static lac_status read_label_list(const char *path, const laci_pickle_value *file, const char *key,
                                  int n_classes, laci_cifar_images *images, lac_error *err) {
  const laci_pickle_value *list = laci_pickle_find_in_dict(file, key);
  if (!list || list->kind != LACI_PICKLE_LIST || (int64_t)list->n != images->n) {
    return laci_fail(err, LAC_BAD_FILE, "%s: no list '%s' of %" PRId64 " labels", path, key,
                     images->n);
  }
  images->labels = laci_alloc(list->n, sizeof *images->labels);
  if (!images->labels) return laci_fail_memory(err, path);
  for (size_t k = 0; k < list->n; k++) {
    const laci_pickle_value *label = list->items[k];
    bool is_class =
        label->kind == LACI_PICKLE_NUMBER && label->number >= 0 && label->number < n_classes;
    if (!is_class) {
      return laci_fail(err, LAC_BAD_FILE, "%s: label %zu is %" PRId64 ", wanted 0 to %d", path, k,
                       label->number, n_classes - 1);
    }
    images->labels[k] = (int32_t)label->number;
  }
  return LAC_OK;
}

lac_status laci_cifar_pickle_find_images(const char *path, laci_reader *reader, const char *key,
                                         int n_classes, laci_cifar_images *images, lac_error *err) {
  laci_arena arena = {0};
  const laci_pickle_value *file, *data = NULL;
  lac_status st = parse_pickle(&arena, path, reader, &file, err);
  if (!st) st = find_image_array(path, file, images->stride, &data, err);
  if (!st) {
    images->n = data->items[0]->number;
    images->offset = (size_t)(data->bytes - laci_reader_bytes(reader));
    st = read_label_list(path, file, key, n_classes, images, err);
  }
  laci_reader_release_loaded(reader);
  laci_arena_clear(&arena);
  return st;
}

lac_status laci_cifar_pickle_names(laci_arena *arena, const char *path, const char *key, int n,
                                   const char **names, lac_error *err) {
  laci_arena scratch = {0};
  laci_reader *reader = NULL;
  const laci_pickle_value *file = NULL;
  lac_status st = laci_reader_open(path, &reader, err);
  if (!st) st = parse_pickle(&scratch, path, reader, &file, err);
  const laci_pickle_value *list = st ? NULL : laci_pickle_find_in_dict(file, key);
  if (!st && (!list || list->kind != LACI_PICKLE_LIST || list->n != (size_t)n)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: no list '%s' of %d class names", path, key, n);
  }
  for (int k = 0; k < n && !st; k++) {
    const laci_pickle_value *name = list->items[k];
    if (name->kind != LACI_PICKLE_TEXT || memchr(name->bytes, '\0', name->n_bytes)) {
      st = laci_fail(err, LAC_BAD_FILE, "%s: class name %d is no text", path, k);
      break;
    }
    names[k] = laci_arena_text_n(arena, (const char *)name->bytes, name->n_bytes);
    if (!names[k]) st = laci_fail_memory(err, path);
  }
  laci_reader_close(reader);
  laci_arena_clear(&scratch);
  return st;
}
