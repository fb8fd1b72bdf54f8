/* SPDX-License-Identifier: Apache-2.0
 * Reads handwritten digits from gzipped text, digits.csv.gz: each line has the 8 x 8 pixels 0..16
 * of an image and its label. The set is small enough to be kept in memory. The first four fifths
 * are for training, the rest for testing. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/error.h"
#include "base/reader.h"
#include "data/dataset_in.h"
#include "data/image.h"

enum {
  SIDE = 8,
  PIXELS = SIDE * SIDE,
  BRIGHTEST = 16,
  CLASSES = 10,
  MOST_IMAGES = 1 << 16,
  LEAST_LINE = 2 * (PIXELS + 1), /* minimum number of bytes of a line */
  MOST_TEXT = 1 << 24,
  GZIP = 16,
};

static const char file_name[] = "digits.csv.gz";

/* Reads an image of 8 x 8 pixels. laci_dataset.own holds the pixels of all images, [count, 64]
 * bytes. */

static lac_status read_image(const laci_dataset *set, int64_t at, laci_image *image,
                             lac_error *err) {
  const uint8_t *pixels = (const uint8_t *)set->own + (size_t)at * PIXELS;
  lac_status st = laci_image_set_size(image, set->folder, SIDE, SIDE, err);
  if (st) return st;
  for (int k = 0; k < PIXELS; k++) memset(image->rgb + (size_t)k * 3, pixels[k], 3);
  return LAC_OK;
}

static void write_image_name(const laci_dataset *set, int64_t at, char *text, size_t size_bytes) {
  (void)snprintf(text, size_bytes, "%s: digit %lld", set->folder, (long long)at);
}

static void close_images(laci_dataset *set) {
  laci_free(set->own);
  set->own = NULL;
}

static const laci_dataset_kind kind = {
    .image = read_image, .name = write_image_name, .close = close_images};

bool laci_digits_exist_in(const char *folder) {
  laci_arena arena = {0};
  const char *path = laci_path_join(&arena, folder, file_name);
  bool is_there = path && access(path, F_OK) == 0;
  laci_arena_clear(&arena);
  return is_there;
}

/** Decompresses the text and adds a final zero. Memory grows in steps, so that little more than
 * needed is allocated. */
static lac_status decompress_text(const char *name, const uint8_t *bytes, size_t size_bytes,
                                  char **text, lac_error *err) {
  z_stream stream = {0};
  size_t capacity = 1 << 18;
  int end = Z_OK;
  lac_status st = LAC_OK;
  char *made = laci_alloc(capacity, 1);
  if (!made || inflateInit2(&stream, GZIP + MAX_WBITS) != Z_OK) {
    laci_free(made);
    return laci_fail_memory(err, name);
  }
  stream.next_in = (Bytef *)(uintptr_t)bytes;
  stream.avail_in = (uInt)size_bytes;
  while (!st && end == Z_OK) {
    if (stream.total_out + 1 == capacity) {
      char *grown = capacity < MOST_TEXT ? laci_resize(made, capacity, 2 * capacity, 1) : NULL;
      if (!grown) {
        st = capacity < MOST_TEXT
                 ? laci_fail_memory(err, name)
                 : laci_fail(err, LAC_BAD_FILE, "%s: more than 16 MiB of text", name);
        break;
      }
      made = grown;
      capacity *= 2;
    }
    stream.next_out = (Bytef *)made + stream.total_out;
    stream.avail_out = (uInt)(capacity - 1 - stream.total_out);
    end = inflate(&stream, Z_NO_FLUSH);
  }
  made[stream.total_out] = '\0';
  inflateEnd(&stream);
  if (!st && end != Z_STREAM_END) st = laci_fail(err, LAC_BAD_FILE, "%s: damaged or cut off", name);
  if (st) laci_free(made);
  else *text = made;
  return st;
}

/** Reads a line of 64 pixels and a label at *at, and moves *at past it; false: the line is
 * malformed. */
static bool parse_digit_line(const char **at, uint8_t *pixels, int32_t *label) {
  for (int k = 0; k <= PIXELS; k++) {
    bool is_label = k == PIXELS;
    int value = 0, n = 0;
    for (; **at >= '0' && **at <= '9' && n < 2; n++, ++*at) value = value * 10 + (**at - '0');
    if (n == 0 || value > (is_label ? CLASSES - 1 : BRIGHTEST)) return false;
    if (is_label) *label = value;
    else pixels[k] = (uint8_t)value;
    if (**at != (is_label ? '\n' : ',')) return false;
    ++*at;
  }
  return true;
}

static lac_status parse_images(laci_dataset *set, const char *name, const char *text,
                               lac_error *err) {
  size_t most = strlen(text) / LEAST_LINE;
  if (most > MOST_IMAGES) most = MOST_IMAGES;
  set->own = laci_alloc(most, PIXELS);
  set->labels = laci_alloc(most, sizeof *set->labels);
  if (!set->own || !set->labels) return laci_fail_memory(err, name);
  for (const char *at = text; *at; set->count++) {
    size_t n = (size_t)set->count;
    if (n < most && parse_digit_line(&at, (uint8_t *)set->own + n * PIXELS, &set->labels[n]))
      continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: line %zu: wanted 64 pixels 0..16 and a label 0..9",
                     name, n + 1);
  }
  return LAC_OK;
}

/** Removes the images that are not of this part. */
static void keep_images_of_part(laci_dataset *set, laci_dataset_part part) {
  int64_t training = set->count / 5 * 4 + set->count % 5 * 4 / 5;
  int64_t first = part == LACI_PART_TRAIN ? 0 : training;
  int64_t end = part == LACI_PART_TRAIN ? training : set->count;
  uint8_t *pixels = set->own;
  memmove(pixels, pixels + (size_t)first * PIXELS, (size_t)(end - first) * PIXELS);
  memmove(set->labels, set->labels + first, (size_t)(end - first) * sizeof *set->labels);
  set->count = end - first;
}

lac_status laci_digits_open_memory(laci_dataset *set, const char *name, const uint8_t *bytes,
                                   size_t size_bytes, laci_dataset_part part, lac_error *err) {
  char *text = NULL;
  set->kind = &kind;
  set->format = "digits";
  set->n_classes = CLASSES;
  set->augment = (laci_augment){.pad = 1};
  set->preprocessing = (laci_preprocessing){.height = SIDE, .width = SIDE, .is_grey = true};
  for (int c = 0; c < 3; c++) set->preprocessing.std[c] = BRIGHTEST;
  lac_status st = decompress_text(name, bytes, size_bytes, &text, err);
  if (st) return st;
  st = parse_images(set, name, text, err);
  laci_free(text);
  if (st) return st;
  keep_images_of_part(set, part);
  if (set->count == 0) return laci_fail(err, LAC_BAD_FILE, "%s: no images", name);
  return LAC_OK;
}

lac_status laci_digits_open(laci_dataset *set, const laci_dataset_options *options,
                            lac_error *err) {
  laci_reader *file;
  if (options->classes_path) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: digits need no names of classes",
                     options->classes_path);
  }
  const char *path = laci_path_join(&set->arena, set->folder, file_name);
  if (!path) return laci_fail_memory(err, set->folder);
  lac_status st = laci_reader_open(path, &file, err);
  if (st) return st;
  size_t n = laci_reader_size(file);
  if (n > MOST_TEXT) st = laci_fail(err, LAC_BAD_FILE, "%s: too large", path);
  if (!st) st = laci_reader_materialise_range(file, 0, n, err);
  if (!st) st = laci_digits_open_memory(set, path, laci_reader_bytes(file), n, options->part, err);
  laci_reader_close(file);
  return st;
}
