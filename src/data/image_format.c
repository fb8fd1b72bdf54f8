/* SPDX-License-Identifier: Apache-2.0
 * Finds the format of an image from its bytes. Names do not count, since reference data have PNG
 * files called .JPEG. */
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "base/reader.h"
#include "data/image.h"

static bool has_bytes_at(const uint8_t *bytes, size_t size_bytes, size_t at, const char *with,
                         size_t n) {
  return size_bytes >= at + n && memcmp(bytes + at, with, n) == 0;
}

static bool is_jpeg(const uint8_t *bytes, size_t size_bytes) {
  return has_bytes_at(bytes, size_bytes, 0, "\xFF\xD8", 2);
}

lac_status laci_image_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                             laci_image *image, lac_error *err) {
  if (is_jpeg(bytes, size_bytes)) { return laci_jpeg_decode(name, bytes, size_bytes, image, err); }
  if (has_bytes_at(bytes, size_bytes, 0, "\x89PNG", 4)) {
    return laci_png_decode(name, bytes, size_bytes, image, err);
  }
  if (has_bytes_at(bytes, size_bytes, 0, "RIFF", 4) &&
      has_bytes_at(bytes, size_bytes, 8, "WEBP", 4)) {
    return laci_webp_decode(name, bytes, size_bytes, image, err);
  }
  if (size_bytes == 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: an empty file, wanted an image", name);
  }
  return laci_fail(err, LAC_BAD_FILE, "%s: no image that is known, wanted JPEG, PNG or WebP", name);
}

lac_status laci_image_decode_part(const char *name, const uint8_t *bytes, size_t size_bytes,
                                  const laci_image_part *part, laci_image *image, lac_error *err) {
  if (is_jpeg(bytes, size_bytes)) {
    return laci_jpeg_decode_part(name, bytes, size_bytes, part, image, err);
  }
  lac_status st = laci_image_decode(name, bytes, size_bytes, image, err);
  if (!st && part) {
    laci_image_crop(image, part->choose(part->context, image->width, image->height));
  }
  return st;
}

bool laci_image_is_common_jpeg(const uint8_t *bytes, size_t size_bytes) {
  enum { COMPONENTS = 9, INKS = 4 };
  if (!is_jpeg(bytes, size_bytes)) return false;
  for (size_t at = 2; at + 4 <= size_bytes && bytes[at] == 0xFF;) {
    const int marker = bytes[at + 1];
    if (marker == 0xFF) {
      at++; /* a byte of padding */
      continue;
    }
    /* the marker of a frame's header: C0 to CF, except for tables (C4, CC) and the reserved C8 */
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC) {
      return at + COMPONENTS < size_bytes && bytes[at + COMPONENTS] != INKS;
    }
    at += 2 + (size_t)(bytes[at + 2] << 8 | bytes[at + 3]);
  }
  return false;
}

lac_status laci_image_read(const char *path, laci_image *image, lac_error *err) {
  laci_file_bytes file;
  lac_status st = laci_file_bytes_read(path, &file, err);
  if (!st) st = laci_image_decode(path, file.bytes, file.size_bytes, image, err);
  laci_file_bytes_clear(&file);
  return st;
}
