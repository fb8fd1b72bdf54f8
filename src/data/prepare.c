/* SPDX-License-Identifier: Apache-2.0
 * The recipe: plan the crop in the resized image, resize no more than lies inside it, and scale by
 * a table of 256 floats a channel (the same bits as the division, once instead of per pixel). The
 * rules stand in prepare.h, the resizing in resize.c. */
#include "data/prepare.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/resize_in.h"

struct laci_preparer {
  laci_recipe recipe;
  float scaled[3][256];
  laci_taps across, down;
  uint32_t *sums;        /* [width * 3] */
  uint8_t *line;         /* [width * 3]: a row of the result */
  uint8_t *narrow;       /* [rows, width * 3]: resized across, the rows that the crop needs */
  size_t capacity_bytes; /* behind narrow */
};

laci_recipe laci_recipe_default(void) {
  return (laci_recipe){.resize = 256,
                       .height = 224,
                       .width = 224,
                       .mean = {123.675F, 116.28F, 103.53F},
                       .std = {58.395F, 57.12F, 57.375F}};
}

int laci_recipe_channels(const laci_recipe *recipe) { return recipe->is_grey ? 1 : 3; }

size_t laci_recipe_sample(const laci_recipe *recipe) {
  return (size_t)laci_recipe_channels(recipe) * (size_t)recipe->height * (size_t)recipe->width;
}

lac_status laci_recipe_check(const laci_recipe *recipe, lac_error *err) {
  int most = recipe->resize ? recipe->resize : LACI_RECIPE_MAX;
  if (recipe->resize < 0 || recipe->resize > LACI_RECIPE_MAX) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "resize to %d pixels, wanted 1 to %d, or 0 for none",
                     recipe->resize, LACI_RECIPE_MAX);
  }
  if (recipe->height < 1 || recipe->width < 1 || recipe->height > most || recipe->width > most) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "crop of %d x %d pixels, wanted 1 to %d%s",
                     recipe->height, recipe->width, most,
                     recipe->resize ? ", the resized shorter side" : "");
  }
  for (int c = 0; c < 3; c++) {
    double mean = (double)recipe->mean[c], std = (double)recipe->std[c];
    if (isfinite(mean) && isfinite(std) && std > 0) continue;
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "mean %g and std %g of channel %d, wanted numbers and std above 0", mean, std,
                     c);
  }
  return LAC_OK;
}

lac_status laci_preparer_create(const laci_recipe *recipe, laci_preparer **preparer,
                                lac_error *err) {
  *preparer = NULL;
  lac_status st = laci_recipe_check(recipe, err);
  if (st) return st;
  laci_preparer *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "preparing images");
  p->recipe = *recipe;
  p->sums = laci_alloc((size_t)recipe->width * 3, sizeof *p->sums);
  p->line = laci_alloc((size_t)recipe->width * 3, 1);
  if (!p->sums || !p->line) {
    laci_preparer_destroy(p);
    return laci_fail_memory(err, "preparing images");
  }
  for (int c = 0; c < 3; c++) {
    for (int grey = 0; grey < 256; grey++) {
      p->scaled[c][grey] = ((float)grey - recipe->mean[c]) / recipe->std[c];
    }
  }
  *preparer = p;
  return LAC_OK;
}

void laci_preparer_destroy(laci_preparer *preparer) {
  if (!preparer) return;
  laci_taps_clear(&preparer->across);
  laci_taps_clear(&preparer->down);
  laci_free(preparer->sums);
  laci_free(preparer->line);
  laci_free(preparer->narrow);
  laci_free(preparer);
}

/** Half of what is cut off, rounded to even. */
static int64_t margin(int64_t whole, int kept) {
  int64_t twice = whole - kept, low = twice / 2;
  return twice % 2 && low % 2 ? low + 1 : low;
}

/** Row y of the result, [width, 3] bytes, goes to its planes. */
static void scale_row(const laci_preparer *p, const uint8_t *row, int y, float *out) {
  size_t width = (size_t)p->recipe.width, plane = width * (size_t)p->recipe.height;
  for (int c = 0; c < laci_recipe_channels(&p->recipe); c++) {
    float *to = out + (size_t)c * plane + (size_t)y * width;
    for (size_t x = 0; x < width; x++) to[x] = p->scaled[c][row[x * 3 + (size_t)c]];
  }
}

static lac_status crop_only(laci_preparer *p, const char *name, const laci_image *image, float *out,
                            lac_error *err) {
  const laci_recipe *r = &p->recipe;
  if (image->width < r->width || image->height < r->height) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %d x %d pixels, wanted at least %d x %d", name,
                     image->width, image->height, r->width, r->height);
  }
  size_t left = (size_t)margin(image->width, r->width);
  size_t top = (size_t)margin(image->height, r->height);
  for (int y = 0; y < r->height; y++) {
    size_t at = (top + (size_t)y) * (size_t)image->width + left;
    scale_row(p, image->rgb + at * 3, y, out);
  }
  return LAC_OK;
}

static bool make_narrow(laci_preparer *p, size_t wanted) {
  if (wanted <= p->capacity_bytes) return true;
  laci_free(p->narrow);
  p->narrow = laci_alloc(wanted, 1);
  p->capacity_bytes = p->narrow ? wanted : 0;
  return p->narrow != NULL;
}

/** Taps for the crop's columns and rows in the resized image. */
static lac_status plan(laci_preparer *p, const laci_image *image, lac_error *err) {
  const laci_recipe *r = &p->recipe;
  int64_t width = image->width, height = image->height, side = r->resize;
  int64_t new_width = width <= height ? side : side * width / height;
  int64_t new_height = width <= height ? side * height / width : side;
  lac_status st = laci_taps_set(&p->across, image->width, new_width, margin(new_width, r->width),
                                r->width, err);
  if (st) return st;
  return laci_taps_set(&p->down, image->height, new_height, margin(new_height, r->height),
                       r->height, err);
}

lac_status laci_prepare(laci_preparer *preparer, const char *name, const laci_image *image,
                        float *out, lac_error *err) {
  laci_preparer *p = preparer;
  if (!p->recipe.resize) return crop_only(p, name, image, out, err);
  lac_status st = plan(p, image, err);
  if (st) return st;
  size_t stride = (size_t)p->recipe.width * 3, in_stride = (size_t)image->width * 3;
  laci_tap_span last = p->down.spans[p->down.n - 1];
  int first = p->down.spans[0].first, end = last.first + last.count;
  if (!make_narrow(p, (size_t)(end - first) * stride)) return laci_fail_memory(err, name);
  for (int y = first; y < end; y++) {
    laci_taps_across(&p->across, image->rgb + (size_t)y * in_stride,
                     p->narrow + (size_t)(y - first) * stride);
  }
  for (int y = 0; y < p->recipe.height; y++) {
    laci_tap_span span = p->down.spans[y];
    span.first -= first;
    laci_taps_down(span, p->narrow, stride, p->sums, p->line);
    scale_row(p, p->line, y, out);
  }
  return LAC_OK;
}
