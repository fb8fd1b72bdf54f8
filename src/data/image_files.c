/* SPDX-License-Identifier: Apache-2.0
 * The common part of data sets of image files: their names are listed, and files are read on
 * request. Next: folder.c, one folder for each class; flat.c, labels in a text file. */
#include "data/image_files_in.h"

#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "base/reader.h"

static void write_image_name(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  const laci_image_files *f = set->own;
  (void)snprintf(text, size_bytes, "%s/%s", set->folder, f->images.at[at]);
}

static lac_status read_image_file(const laci_dataset *set, int64_t at, laci_encoded *encoded,
                                  lac_error *err) {
  const laci_image_files *f = set->own;
  laci_arena arena = {0};
  laci_reader *reader = NULL;
  const char *path = laci_path_join(&arena, set->folder, f->images.at[at]);
  lac_status st = path ? laci_reader_open(path, &reader, err) : laci_fail_memory(err, set->folder);
  if (st) goto out;
  encoded->size_bytes = laci_reader_size(reader);
  encoded->memory = laci_alloc(encoded->size_bytes, 1);
  encoded->bytes = encoded->memory;
  st = encoded->memory
           ? laci_reader_copy_range(reader, 0, encoded->size_bytes, encoded->memory, err)
           : laci_fail_memory(err, path);
out:
  laci_reader_close(reader);
  laci_arena_clear(&arena);
  return st;
}

static void close_files(laci_dataset *set) {
  laci_image_files *f = set->own;
  if (!f) return;
  laci_free(f->images.at);
  laci_free(f);
  set->own = NULL;
}

static const laci_dataset_kind kind = {
    .encoded = read_image_file, .name = write_image_name, .close = close_files};

lac_status laci_image_files_init(laci_dataset *set, lac_error *err) {
  laci_image_files *f = laci_alloc(1, sizeof *f);
  if (!f) return laci_fail_memory(err, set->folder);
  set->kind = &kind;
  set->own = f;
  set->format = "folder";
  set->augment = (laci_augment){.flip = true, .resized = true};
  set->preprocessing = laci_preprocessing_default();
  return LAC_OK;
}

void laci_image_files_warn_of_left_out(const laci_dataset *set) {
  size_t n = ((const laci_image_files *)set->own)->n_left_out;
  if (n == 1) {
    laci_log(LAC_LOG_WARNING, "%s: a file left out, its name is not that of an image", set->folder);
  } else if (n > 1) {
    laci_log(LAC_LOG_WARNING, "%s: %zu files left out, their names are not those of images",
             set->folder, n);
  }
}
