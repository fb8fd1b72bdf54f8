/* SPDX-License-Identifier: Apache-2.0
 * Decodes PNGs in memory with libpng.
 *
 * As in jpeg.c, a fatal error jumps back to where decoding began, and all state lives in the caller
 * of the function that calls setjmp. A wrong checksum of pixel data is fatal. What the library only
 * warns of (a wrong profile, a damaged comment) does not lose pixels. */
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/error.h"
#include "data/image.h"

/* Deflate expands two bits to at most 258 bytes, and so a byte to at most 1032. */
enum { MAX_BYTES_PER_BYTE = 1032, MAX_CHUNK_BYTES = 8 << 20 };

typedef struct decoder {
  png_structp png;
  png_infop info;
  const char *name;
  const uint8_t *bytes;
  size_t size_bytes, at;
  laci_image *image;
  lac_error *err;
  lac_status status;
} decoder;

/* ---- Callbacks for libpng ---- */

static void fail_with_library_message(png_structp png, const char *text) {
  decoder *d = png_get_error_ptr(png);
  if (!d->status)
    d->status = laci_fail(d->err, LAC_BAD_FILE, "%s: no whole PNG: %s", d->name, text);
  png_longjmp(png, 1);
}

static void ignore_warning(png_structp png, const char *text) { (void)png, (void)text; }

static void read_bytes(png_structp png, png_bytep to, size_t n) {
  decoder *d = png_get_io_ptr(png);
  if (n > d->size_bytes - d->at) png_error(png, "it is cut off");
  memcpy(to, d->bytes + d->at, n);
  d->at += n;
}

/* ---- Decoding ---- */

/** Reads the image's size from the header and sets it. Fails if the file has too few bytes for so
 * many pixels. */
static lac_status check_size(decoder *d) {
  int64_t width = png_get_image_width(d->png, d->info);
  int64_t height = png_get_image_height(d->png, d->info);
  int bits = png_get_bit_depth(d->png, d->info) * png_get_channels(d->png, d->info);
  if (width * bits / 8 * height / MAX_BYTES_PER_BYTE > (int64_t)d->size_bytes) {
    return laci_fail(d->err, LAC_BAD_FILE, "%s: claims %d x %d pixels in %zu bytes", d->name,
                     (int)width, (int)height, d->size_bytes);
  }
  return laci_image_set_size(d->image, d->name, width, height, d->err);
}

/** Tells libpng to convert any kind of image to three bytes a pixel. Returns the number of passes
 * over the rows. */
static int set_conversion_to_rgb(decoder *d) {
  png_set_expand(d->png); /* expands palettes to colours, and fewer bits to 8 */
  png_set_strip_16(d->png);
  png_set_strip_alpha(d->png);
  png_set_gray_to_rgb(d->png);
  int passes = png_set_interlace_handling(d->png);
  png_read_update_info(d->png, d->info);
  return passes;
}

/** Decodes the image into *d->image. After a fatal error, longjmp returns to this function. */
static void decode_png(decoder *d) {
  if (setjmp(png_jmpbuf(d->png))) return;
  png_set_read_fn(d->png, d, read_bytes);
  png_set_user_limits(d->png, LACI_IMAGE_MAX_SIDE + 1, LACI_IMAGE_MAX_SIDE + 1);
  png_set_chunk_malloc_max(d->png, MAX_CHUNK_BYTES);
  png_read_info(d->png, d->info);
  d->status = check_size(d);
  if (d->status) return;
  int passes = set_conversion_to_rgb(d);
  const size_t stride = (size_t)d->image->width * 3;
  if (png_get_rowbytes(d->png, d->info) != stride) png_error(d->png, "rows of an unknown kind");
  for (int pass = 0; pass < passes; pass++) {
    for (int y = 0; y < d->image->height; y++) {
      png_read_row(d->png, d->image->rgb + (size_t)y * stride, NULL);
    }
  }
  /* libpng has read all pixels and compared their checksums; the rest of the file is not read. */
}

lac_status laci_png_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                           laci_image *image, lac_error *err) {
  decoder d = {.name = name, .bytes = bytes, .size_bytes = size_bytes, .image = image, .err = err};
  d.png =
      png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, fail_with_library_message, ignore_warning);
  if (d.png) d.info = png_create_info_struct(d.png);
  if (d.info) decode_png(&d);
  else d.status = laci_fail_memory(err, name);
  png_destroy_read_struct(&d.png, &d.info, NULL);
  return d.status;
}
