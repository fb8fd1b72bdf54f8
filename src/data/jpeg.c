/* SPDX-License-Identifier: Apache-2.0
 * Decodes JPEGs in memory with libjpeg-turbo.
 *
 * The library reports a fatal error by a callback that must not return: ours jumps back to where
 * decoding began. All state lives in the caller of the function that calls setjmp, so that nothing
 * is undefined after the jump. What the library calls a warning (a cut-off file, a wrong Huffman
 * code) is an error here if pixels are lost by it. */
#include "data/image.h"

#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <string.h>

#include <jpeglib.h>

#include <jerror.h> /* must come after jpeglib.h */

#include "base/error.h"

/* Limit of the scans of a progressive file. Real files have about ten. Each scan takes a pass over
 * the whole image, so files with many scans are refused. */
enum { MAX_SCANS = 100 };
/* Limit of the pixels for each byte of a file. The first scan spends at least one bit on a block of
 * 8 x 8 pixels of the finest component. Two components may each be the finest in one direction,
 * hence 1024 and not 512. */
enum { MAX_PIXELS_PER_BYTE = 1024 };

typedef struct decoder {
  struct jpeg_decompress_struct jpeg;
  struct jpeg_error_mgr messages;
  struct jpeg_progress_mgr progress;
  jmp_buf failed;
  const char *name;
  lac_error *err;
  lac_status status;
} decoder;

/* ---- Callbacks for libjpeg ---- */

static void fail_with_library_message(j_common_ptr jpeg) {
  decoder *d = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  bool memory = d->messages.msg_code == JERR_OUT_OF_MEMORY;
  (*d->messages.format_message)(jpeg, text);
  if (memory) d->status = laci_fail_memory(d->err, d->name);
  else d->status = laci_fail(d->err, LAC_BAD_FILE, "%s: no whole JPEG: %s", d->name, text);
  longjmp(d->failed, 1);
}

static void fail_if_pixels_are_lost(j_common_ptr jpeg, int level) {
  if (level >= 0) return; /* a trace message */
  switch (jpeg->err->msg_code) {
    case JWRN_ADOBE_XFORM: /* unusual, but no pixels are lost: unknown markers, padding between
                              segments */
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL: break;
    default: fail_with_library_message(jpeg);
  }
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

static void fail_if_too_many_scans(j_common_ptr jpeg) {
  decoder *d = jpeg->client_data;
  if (d->jpeg.input_scan_number <= MAX_SCANS) return;
  d->status =
      laci_fail(d->err, LAC_UNSUPPORTED, "%s: a JPEG of more than %d scans", d->name, MAX_SCANS);
  longjmp(d->failed, 1);
}

/* ---- Decoding ---- */

/** Checks that the size in the header is plausible. */
static lac_status check_size(decoder *d, size_t size_bytes) {
  int64_t width = d->jpeg.image_width, height = d->jpeg.image_height;
  if (!d->jpeg.arith_code && width * height / MAX_PIXELS_PER_BYTE > (int64_t)size_bytes) {
    return laci_fail(d->err, LAC_BAD_FILE, "%s: claims %d x %d pixels in %zu bytes", d->name,
                     (int)width, (int)height, size_bytes);
  }
  return LAC_OK;
}

/** Converts inverted CMYK, in which 255 - c is the ink, to RGB: red is the light that passes both
 * cyan and black. */
static void convert_cmyk_row_to_rgb(const uint8_t *cmyk, int width, uint8_t *rgb) {
  for (int x = 0; x < width; x++, cmyk += 4, rgb += 3) {
    for (int c = 0; c < 3; c++) rgb[c] = (uint8_t)((cmyk[c] * cmyk[3] + 127) / 255);
  }
}

static void read_all_rows(decoder *d, laci_image *image) {
  j_decompress_ptr jpeg = &d->jpeg;
  size_t stride = (size_t)image->width * 3;
  JSAMPARRAY line = NULL;
  if (jpeg->out_color_space == JCS_CMYK) {
    line = (*jpeg->mem->alloc_sarray)((j_common_ptr)jpeg, JPOOL_IMAGE, (JDIMENSION)image->width * 4,
                                      1);
  }
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t *to = image->rgb + jpeg->output_scanline * stride;
    if (line) {
      (void)jpeg_read_scanlines(jpeg, line, 1);
      convert_cmyk_row_to_rgb(line[0], image->width, to);
    } else {
      (void)jpeg_read_scanlines(jpeg, &to, 1);
    }
  }
}

/** Returns the factor by which a part may be reduced when it is decoded: 1, 2, 4 or 8. The decoded
 * part is at least four times as wide as its final size, so that the result hardly differs from
 * that of the full image. */
static int find_shrink_factor(const laci_image_part *part, laci_region region) {
  int shrink = 1;
  if (part->least_width < 1 || part->least_height < 1) return 1;
  while (shrink < 8 && region.width / (8 * shrink) >= part->least_width &&
         region.height / (8 * shrink) >= part->least_height) {
    shrink *= 2;
  }
  return shrink;
}

/** Returns the region in pixels of the reduced image, without pixels that it covers only partly. */
static laci_region find_shrunk_region(laci_region r, int shrink) {
  int left = (r.left + shrink - 1) / shrink, top = (r.top + shrink - 1) / shrink;
  return (laci_region){left, top, (r.left + r.width) / shrink - left,
                       (r.top + r.height) / shrink - top};
}

/** Reads only the rows and columns of the region. A pixel's colours also depend on its neighbours,
 * so one more pixel is decoded at both ends of a row. */
static void read_region(decoder *d, laci_region r, laci_image *image) {
  j_decompress_ptr jpeg = &d->jpeg;
  JDIMENSION whole = jpeg->output_width, left = (JDIMENSION)r.left;
  JDIMENSION end = (JDIMENSION)(r.left + r.width);
  left -= left > 0;
  end += end < whole;
  JDIMENSION width = end - left;
  if (width < whole) jpeg_crop_scanline(jpeg, &left, &width);
  JSAMPARRAY line =
      (*jpeg->mem->alloc_sarray)((j_common_ptr)jpeg, JPOOL_IMAGE, jpeg->output_width * 3, 1);
  if (r.top > 0) (void)jpeg_skip_scanlines(jpeg, (JDIMENSION)r.top);
  size_t stride = (size_t)r.width * 3;
  for (int y = 0; y < r.height; y++) {
    (void)jpeg_read_scanlines(jpeg, line, 1);
    memcpy(image->rgb + (size_t)y * stride, line[0] + ((size_t)r.left - left) * 3, stride);
  }
}

static void decode_image_region(decoder *d, const laci_image_part *part, laci_image *image) {
  j_decompress_ptr jpeg = &d->jpeg;
  laci_region r = part->choose(part->context, (int)jpeg->image_width, (int)jpeg->image_height);
  int shrink = find_shrink_factor(part, r);
  jpeg->scale_num = 1;
  jpeg->scale_denom = (unsigned)shrink;
  (void)jpeg_start_decompress(jpeg);
  r = find_shrunk_region(r, shrink);
  d->status = laci_image_set_size(image, d->name, r.width, r.height, d->err);
  if (!d->status) read_region(d, r, image);
}

static void decode_whole_image(decoder *d, laci_image *image) {
  j_decompress_ptr jpeg = &d->jpeg;
  d->status = laci_image_set_size(image, d->name, jpeg->image_width, jpeg->image_height, d->err);
  if (d->status) return;
  (void)jpeg_start_decompress(jpeg);
  read_all_rows(d, image);
  /* jpeg_finish_decompress is not called: all rows are read, and what follows them in the file is
   * not needed. */
}

/** Decodes the image, or a part of it. After a failure, longjmp returns to this function. Only *d
 * and *image change, which belong to the caller. */
static void decode_jpeg(decoder *d, const uint8_t *bytes, size_t size_bytes,
                        const laci_image_part *part, laci_image *image) {
  if (setjmp(d->failed)) return;
  jpeg_create_decompress(&d->jpeg);
  d->jpeg.client_data = d;
  d->jpeg.progress = &d->progress;
  jpeg_mem_src(&d->jpeg, bytes, size_bytes);
  (void)jpeg_read_header(&d->jpeg, TRUE);
  d->status = check_size(d, size_bytes);
  if (d->status) return;
  bool inks = d->jpeg.jpeg_color_space == JCS_CMYK || d->jpeg.jpeg_color_space == JCS_YCCK;
  d->jpeg.out_color_space = inks ? JCS_CMYK : JCS_RGB;
  d->jpeg.dct_method = JDCT_ISLOW;
  if (part && !inks) {
    decode_image_region(d, part, image);
    return;
  }
  decode_whole_image(d, image);
  if (d->status || !part) return;
  laci_image_crop(image, part->choose(part->context, image->width, image->height));
}

lac_status laci_jpeg_decode(const char *name, const uint8_t *bytes, size_t size_bytes,
                            laci_image *image, lac_error *err) {
  return laci_jpeg_decode_part(name, bytes, size_bytes, NULL, image, err);
}

lac_status laci_jpeg_decode_part(const char *name, const uint8_t *bytes, size_t size_bytes,
                                 const laci_image_part *part, laci_image *image, lac_error *err) {
  decoder d = {.name = name, .err = err};
  d.jpeg.err = jpeg_std_error(&d.messages);
  d.jpeg.client_data = &d;
  d.messages.error_exit = fail_with_library_message;
  d.messages.emit_message = fail_if_pixels_are_lost;
  d.messages.output_message = print_nothing;
  d.progress.progress_monitor = fail_if_too_many_scans;
  decode_jpeg(&d, bytes, size_bytes, part, image);
  jpeg_destroy_decompress(&d.jpeg);
  return d.status;
}
