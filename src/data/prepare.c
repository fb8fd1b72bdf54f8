/* SPDX-License-Identifier: Apache-2.0
 * Preprocessing: finds the crop in the resized image, computes only its pixels, and scales the
 * values. The rules are in prepare.h, the resizing in resize.c. */
#include "data/prepare.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/image.h"
#include "data/resize_in.h"

struct laci_preparer {
  laci_preprocessing preprocessing;
  laci_taps across, down;
  uint8_t *line;         /* [width * 3] scratch for a row of the result */
  uint8_t *narrow;       /* [rows, width * 3] the rows that the crop needs, resized only
                            horizontally */
  size_t capacity_bytes; /* capacity of `narrow` */
};

laci_preprocessing laci_preprocessing_default(void) {
  return (laci_preprocessing){.resize = 256,
                              .height = 224,
                              .width = 224,
                              .mean = {123.675F, 116.28F, 103.53F},
                              .std = {58.395F, 57.12F, 57.375F}};
}

int laci_preprocessing_channels(const laci_preprocessing *preprocessing) {
  return preprocessing->is_grey ? 1 : 3;
}

laci_shape laci_preprocessing_sample_shape(const laci_preprocessing *p) {
  if (p->is_ready) return p->ready;
  return (laci_shape){3, {laci_preprocessing_channels(p), p->height, p->width}};
}

size_t laci_preprocessing_sample_size(const laci_preprocessing *preprocessing) {
  const laci_shape shape = laci_preprocessing_sample_shape(preprocessing);
  return (size_t)laci_shape_count(&shape);
}

lac_status laci_scale_check_mean_and_std(const float mean[3], const float std[3], lac_error *err) {
  for (int c = 0; c < 3; c++) {
    if (isfinite(mean[c]) && isfinite(std[c]) && std[c] > 0) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "mean %g and std %g of channel %d: wanted finite numbers, std above 0",
                     (double)mean[c], (double)std[c], c);
  }
  return LAC_OK;
}

lac_status laci_preprocessing_check(const laci_preprocessing *preprocessing, lac_error *err) {
  if (preprocessing->is_ready) return LAC_OK;
  int most = preprocessing->resize ? preprocessing->resize : LACI_PREPROCESSING_MAX;
  if (preprocessing->resize < 0 || preprocessing->resize > LACI_PREPROCESSING_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "resize to %d pixels, wanted 1 to %d, or 0 for none",
                     preprocessing->resize, LACI_PREPROCESSING_MAX);
  }
  if (preprocessing->height < 1 || preprocessing->width < 1 || preprocessing->height > most ||
      preprocessing->width > most) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "crop of %d x %d pixels, wanted 1 to %d%s",
                     preprocessing->height, preprocessing->width, most,
                     preprocessing->resize ? ", the resized shorter side" : "");
  }
  for (int c = 0; c < 3; c++) {
    double mean = (double)preprocessing->mean[c], std = (double)preprocessing->std[c];
    if (isfinite(mean) && isfinite(std) && std > 0) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "mean %g and std %g of channel %d, wanted numbers and std above 0", mean, std,
                     c);
  }
  return LAC_OK;
}

lac_status laci_preparer_create(const laci_preprocessing *preprocessing, laci_preparer **preparer,
                                lac_error *err) {
  *preparer = NULL;
  lac_status st = laci_preprocessing_check(preprocessing, err);
  if (st) return st;
  laci_preparer *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "preparing images");
  p->preprocessing = *preprocessing;
  p->line = laci_alloc((size_t)preprocessing->width * 3, 1);
  if (!p->line) {
    laci_preparer_destroy(p);
    return laci_fail_memory(err, "preparing images");
  }
  *preparer = p;
  return LAC_OK;
}

void laci_preparer_destroy(laci_preparer *preparer) {
  if (!preparer) return;
  laci_resize_taps_clear(&preparer->across);
  laci_resize_taps_clear(&preparer->down);
  laci_free(preparer->line);
  laci_free(preparer->narrow);
  laci_free(preparer);
}

void laci_preparer_output_size(const laci_preparer *preparer, int *width, int *height) {
  *width = preparer->preprocessing.width;
  *height = preparer->preprocessing.height;
}

/** Returns the offset of a centered crop: half of the pixels that are cut off. A half is rounded to
 * the even neighbour. */
static int64_t centered_crop_offset(int64_t whole, int kept) {
  int64_t twice = whole - kept, low = twice / 2;
  return twice % 2 && low % 2 ? low + 1 : low;
}

/** Scales a row of grey levels, [width, 3] bytes, by mean and std, and writes it as row y of all
 * channels of `out`. */
static void scale_row(const laci_preparer *p, const uint8_t *row, bool mirrored, int y,
                      float *out) {
  const laci_preprocessing *r = &p->preprocessing;
  const size_t width = (size_t)r->width, channel_pixels = width * (size_t)r->height;
  const laci_image_scale scale = {.mean = {r->mean[0], r->mean[1], r->mean[2]},
                                  .std = {r->std[0], r->std[1], r->std[2]},
                                  .n_channels = laci_preprocessing_channels(r),
                                  .mirrored = mirrored};
  laci_image_resize_variant()->scale(&scale, row, width, out + (size_t)y * width, channel_pixels);
}

lac_status laci_prepare_crop(const laci_preparer *p, const char *name, const laci_image *image,
                             float *out, lac_error *err) {
  const laci_preprocessing *r = &p->preprocessing;
  if (image->width < r->width || image->height < r->height) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %d x %d pixels, wanted at least %d x %d", name,
                     image->width, image->height, r->width, r->height);
  }
  size_t left = (size_t)centered_crop_offset(image->width, r->width);
  size_t top = (size_t)centered_crop_offset(image->height, r->height);
  for (int y = 0; y < r->height; y++) {
    size_t at = (top + (size_t)y) * (size_t)image->width + left;
    scale_row(p, image->rgb + at * 3, false, y, out);
  }
  return LAC_OK;
}

static bool reserve_narrow_rows(laci_preparer *p, size_t wanted) {
  if (wanted <= p->capacity_bytes) return true;
  laci_free(p->narrow);
  p->narrow = laci_alloc(wanted, 1);
  p->capacity_bytes = p->narrow ? wanted : 0;
  return p->narrow != NULL;
}

/** Computes the resize weights for the crop's columns and rows in the resized image. */
static lac_status compute_resize_weights(laci_preparer *p, const laci_image *image,
                                         lac_error *err) {
  const laci_preprocessing *r = &p->preprocessing;
  int64_t width = image->width, height = image->height, side = r->resize;
  int64_t new_width = width <= height ? side : side * width / height;
  int64_t new_height = width <= height ? side * height / width : side;
  lac_status st =
      laci_resize_taps_compute(&p->across, image->width, new_width,
                               centered_crop_offset(new_width, r->width), r->width, err);
  if (st) return st;
  return laci_resize_taps_compute(&p->down, image->height, new_height,
                                  centered_crop_offset(new_height, r->height), r->height, err);
}

/** Where the rows of a resized image are written: scaled to `pixels`, or unchanged to `bytes`. */
typedef struct resized_rows {
  float *pixels;
  bool mirrored;  /* the rows written to `pixels` are mirrored */
  uint8_t *bytes; /* NULL: rows are written to `pixels` */
} resized_rows;

/** Resizes the image by the weights of both axes, row by row, and crops it. */
static lac_status resize_and_crop(laci_preparer *p, const char *name, const laci_image *image,
                                  const resized_rows *to, lac_error *err) {
  size_t stride = (size_t)p->preprocessing.width * 3, in_stride = (size_t)image->width * 3;
  const laci_image_resize *kernel = laci_image_resize_variant();
  laci_tap_span last = p->down.spans[p->down.n - 1];
  int first = p->down.spans[0].first, end = last.first + last.count;
  if (!reserve_narrow_rows(p, (size_t)(end - first) * stride)) return laci_fail_memory(err, name);
  const laci_resize_rows rows = {.from = image->rgb + (size_t)first * in_stride,
                                 .to = p->narrow,
                                 .from_stride = in_stride,
                                 .to_stride = stride,
                                 .n = end - first};
  kernel->across(p->across.spans, p->across.n, &rows);
  for (int y = 0; y < p->preprocessing.height; y++) {
    laci_tap_span span = p->down.spans[y];
    span.first -= first;
    uint8_t *line = to->bytes ? to->bytes + (size_t)y * stride : p->line;
    kernel->down(span, p->narrow, stride, line);
    if (!to->bytes) scale_row(p, line, to->mirrored, y, to->pixels);
  }
  return LAC_OK;
}

lac_status laci_prepare_image(laci_preparer *preparer, const char *name, const laci_image *image,
                              float *out, lac_error *err) {
  laci_preparer *p = preparer;
  const resized_rows to = {.pixels = out};
  if (!p->preprocessing.resize) return laci_prepare_crop(p, name, image, out, err);
  lac_status st = compute_resize_weights(p, image, err);
  return st ? st : resize_and_crop(p, name, image, &to, err);
}

static lac_status resize_part(laci_preparer *p, const char *name, const laci_image *part,
                              const resized_rows *to, lac_error *err) {
  const laci_preprocessing *r = &p->preprocessing;
  lac_status st = laci_resize_taps_compute(&p->across, part->width, r->width, 0, r->width, err);
  if (!st) st = laci_resize_taps_compute(&p->down, part->height, r->height, 0, r->height, err);
  return st ? st : resize_and_crop(p, name, part, to, err);
}

lac_status laci_prepare_image_part(laci_preparer *preparer, const char *name,
                                   const laci_image *part, bool mirrored, float *out,
                                   lac_error *err) {
  const resized_rows to = {.pixels = out, .mirrored = mirrored};
  return resize_part(preparer, name, part, &to, err);
}

lac_status laci_prepare_resize_part(laci_preparer *preparer, const char *name,
                                    const laci_image *part, laci_image *resized, lac_error *err) {
  const laci_preprocessing *r = &preparer->preprocessing;
  lac_status st = laci_image_set_size(resized, name, r->width, r->height, err);
  const resized_rows to = {.bytes = resized->rgb};
  return st ? st : resize_part(preparer, name, part, &to, err);
}
