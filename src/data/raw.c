/* SPDX-License-Identifier: Apache-2.0
 * Lists the images that raw.h describes. A training image's label is the class of its folder or
 * archive. A validation image's label is in the line of the list with the same number as the image
 * in sorted order. Labels are never guessed. */
#include "data/raw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/reader.h"
#include "data/archive.h"
#include "data/dataset_in.h"
#include "data/listing_in.h"

/* ---- Lists ---- */

static lac_status add_image(laci_raw_part *part, laci_raw_image image, lac_error *err) {
  if (!image.name ||
      !laci_grow((void **)&part->images, part->n, &part->capacity, sizeof *part->images)) {
    return laci_fail_memory(err, part->path);
  }
  part->images[part->n++] = image;
  return LAC_OK;
}

static const char *file_name_of_path(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

static int compare_images(const void *a, const void *b) {
  const laci_raw_image *x = a, *y = b;
  if (x->label != y->label) return x->label < y->label ? -1 : 1;
  int order = strcmp(file_name_of_path(x->name), file_name_of_path(y->name));
  if (order) return order;
  return strcmp(x->name, y->name);
}

/** Sorts the images. Fails if two have the same name, since their labels could not be told
 * apart. */
static lac_status sort_and_check_images(laci_raw_part *part, lac_error *err) {
  if (part->n > 1) qsort(part->images, part->n, sizeof *part->images, compare_images);
  for (size_t k = 1; k < part->n; k++) {
    if (compare_images(&part->images[k - 1], &part->images[k]) != 0) continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: '%s' is there twice", part->path,
                     part->images[k].name);
  }
  return LAC_OK;
}

/* ---- Archives ---- */

typedef struct lister {
  laci_raw_part *part;
  int label; /* class of the images in the current archive */
} lister;

static lac_status add_image_of_archive(void *context, const laci_archive_member *member,
                                       lac_error *err) {
  lister *l = context;
  const char *name = file_name_of_path(member->name);
  if (!laci_is_image_name(name)) {
    l->part->n_left_out++;
    return LAC_OK;
  }
  laci_raw_image image = {laci_arena_text(&l->part->arena, name), l->label, member->offset,
                          member->n};
  return add_image(l->part, image, err);
}

/** Lists the images of one class's archive, such as n01440764.tar, inside the archive of the
 * part. */
static lac_status list_images_of_class_archive(void *context, const laci_archive_member *member,
                                               lac_error *err) {
  lister *l = context;
  const char *name = file_name_of_path(member->name), *dot = strrchr(name, '.');
  char synset[32] = "";
  if (dot && strcmp(dot, ".tar") == 0 && (size_t)(dot - name) < sizeof synset) {
    memcpy(synset, name, (size_t)(dot - name));
  }
  l->label = laci_imagenet_class_of_synset(synset);
  if (l->label < 0) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: '%s' is none of ImageNet's 1000 classes, wanted n01440764.tar and the "
                     "like",
                     l->part->path, member->name);
  }
  laci_archive inner = {name, l->part->reader, member->offset, member->n};
  lac_status st = laci_archive_visit_files(&inner, add_image_of_archive, l, err);
  return st ? laci_fail_with_prefix(err, st, "%s", l->part->path) : LAC_OK;
}

static lac_status list_archive(laci_raw_part *part, bool is_training, lac_error *err) {
  lister l = {.part = part};
  lac_status st = laci_reader_open(part->path, &part->reader, err);
  if (st) return st;
  laci_archive whole = {part->path, part->reader, 0, laci_reader_size(part->reader)};
  return laci_archive_visit_files(
      &whole, is_training ? list_images_of_class_archive : add_image_of_archive, &l, err);
}

/* ---- Folders ---- */

static lac_status list_images_of_folder(laci_raw_part *part, const char *inside, int label,
                                        lac_error *err) {
  laci_name_list names = {0};
  laci_listing where = {
      .root = part->path, .deep = *inside != '\0', .n_left_out = &part->n_left_out};
  lac_status st = laci_list_images(&part->arena, &where, inside, &names, err);
  for (size_t k = 0; k < names.n && !st; k++) {
    st = add_image(part, (laci_raw_image){.name = names.at[k], .label = label}, err);
  }
  laci_free(names.at);
  return st;
}

static lac_status list_class_folders(laci_raw_part *part, lac_error *err) {
  laci_name_list classes = {0};
  lac_status st = laci_list_folders(&part->arena, part->path, &classes, err);
  for (size_t k = 0; k < classes.n && !st; k++) {
    int label = laci_imagenet_class_of_synset(classes.at[k]);
    st = label >= 0 ? list_images_of_folder(part, classes.at[k], label, err)
                    : laci_fail(err, LAC_BAD_FILE, "%s: '%s' is none of ImageNet's 1000 classes",
                                part->path, classes.at[k]);
  }
  laci_free(classes.at);
  return st;
}

/* ---- Labels of validation images ---- */

static lac_status set_validation_labels(const char *raw, laci_raw_part *part, lac_error *err) {
  const char **lines = NULL;
  int n = 0;
  const char *path = laci_path_join(&part->arena, raw, "synset_labels.txt");
  lac_status st =
      path ? laci_read_lines(&part->arena, path, &lines, &n, err) : laci_fail_memory(err, raw);
  if (!st && (size_t)n != part->n) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: %d lines, wanted one for each of the %zu images of %s",
                   path, n, part->n, part->path);
  }
  for (int k = 0; k < n && !st; k++) {
    part->images[k].label = laci_imagenet_class_of_synset(lines[k]);
    if (part->images[k].label >= 0) continue;
    st = laci_fail(err, LAC_BAD_FILE, "%s: line %d: '%s' is none of ImageNet's 1000 classes", path,
                   k + 1, lines[k]);
  }
  return st;
}

/* ---- Parts ---- */

/** Returns the archive or folder of a part of RAW, whichever is found first; NULL: neither
 * exists. */
static const char *find_archive_or_folder(laci_raw_part *part, const char *raw, const char *archive,
                                          const char *folder, bool *is_archive) {
  struct stat info;
  const char *path = laci_path_join(&part->arena, raw, archive);
  *is_archive = path && stat(path, &info) == 0;
  if (*is_archive) return path;
  path = laci_path_join(&part->arena, raw, folder);
  return path && laci_is_folder(path) ? path : NULL;
}

lac_status laci_raw_part_open(const char *raw, bool is_training, laci_raw_part *part,
                              lac_error *err) {
  bool is_archive = false;
  lac_status st;
  *part = (laci_raw_part){0};
  part->path =
      is_training
          ? find_archive_or_folder(part, raw, "ILSVRC2012_img_train.tar", "img_train", &is_archive)
          : find_archive_or_folder(part, raw, "ILSVRC2012_img_val.tar", "img_val", &is_archive);
  if (!part->path) return LAC_OK;
  if (is_archive) st = list_archive(part, is_training, err);
  else if (is_training) st = list_class_folders(part, err);
  else st = list_images_of_folder(part, "", 0, err);
  if (!st) st = sort_and_check_images(part, err);
  if (!st && !is_training) st = set_validation_labels(raw, part, err);
  return st;
}

void laci_raw_part_close(laci_raw_part *part) {
  laci_reader_close(part->reader);
  laci_free(part->images);
  laci_arena_clear(&part->arena);
  *part = (laci_raw_part){0};
}

lac_status laci_raw_read_image(const laci_raw_part *part, const laci_raw_image *image,
                               uint8_t **bytes, size_t *n, lac_error *err) {
  laci_arena scratch = {0};
  laci_reader *own = NULL;
  lac_status st = LAC_OK;
  *bytes = NULL;
  *n = image->n;
  if (!part->reader) {
    const char *path = laci_path_join(&scratch, part->path, image->name);
    st = path ? laci_reader_open(path, &own, err) : laci_fail_memory(err, part->path);
    if (!st) *n = laci_reader_size(own);
  }
  if (!st) *bytes = laci_alloc(*n, 1);
  if (!st && !*bytes) st = laci_fail_memory(err, image->name);
  if (!st && *n)
    st = laci_reader_copy_range(own ? own : part->reader, image->offset, *n, *bytes, err);
  laci_reader_close(own);
  laci_arena_clear(&scratch);
  if (!st) return LAC_OK;
  laci_free(*bytes);
  *bytes = NULL;
  return st;
}

lac_status laci_raw_read_class_names(const char *raw, laci_arena *arena,
                                     const char *texts[LACI_IMAGENET_CLASSES], lac_error *err) {
  const char **lines = NULL;
  struct stat info;
  int n = 0;
  for (int k = 0; k < LACI_IMAGENET_CLASSES; k++) texts[k] = "";
  const char *path = laci_path_join(arena, raw, "imagenet_metadata.txt");
  if (!path) return laci_fail_memory(err, raw);
  if (stat(path, &info) != 0) return LAC_OK;
  lac_status st = laci_read_lines(arena, path, &lines, &n, err);
  for (int k = 0; k < n && !st; k++) {
    size_t length = strcspn(lines[k], "\t");
    const char *synset = laci_arena_text_n(arena, lines[k], length);
    int class_number = synset ? laci_imagenet_class_of_synset(synset) : -1;
    if (!synset) st = laci_fail_memory(err, path);
    else if (class_number >= 0 && lines[k][length]) texts[class_number] = lines[k] + length + 1;
  }
  return st;
}
