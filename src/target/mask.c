/* SPDX-License-Identifier: Apache-2.0
 * Finds out whether the zeros of a weight follow the pattern along the input channels, along
 * another axis, or not at all.
 *
 * Some pruners treat a convolution's weight as rows [O, I*kH*kW], in which four neighbours are
 * kernel positions of one channel. The share of zeros is then right, and tools that count in these
 * rows report 2:4. But no sparse hardware can use such zeros: it needs the pattern along the input
 * channels of one kernel position. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/acquire.h"
#include "base/memory.h"
#include "base/plural.h"
#include "sparse/mask.h"
#include "sparse/score.h"
#include "target/target_in.h"

/* ---- Reading ---- */

static bool has_nonzero_zero_point(const laci_weight_view *view) {
  for (int64_t k = 0; view->zero && k < view->n_scales; k++) {
    if (view->zero[k] != 0) return true;
  }
  return false;
}

lac_status laci_target_mask_read(const laci_target_layer *layer, laci_target_mask *mask,
                                 lac_error *err) {
  laci_weight_view view;
  laci_acquired_bytes held;
  lac_status st = laci_weight_acquire(&layer->view, &view, &held, err);
  if (st) return st;
  *mask = (laci_target_mask){.n = view.outer * view.columns * view.inner,
                             .by_zero_point = has_nonzero_zero_point(&view)};
  mask->kept = laci_alloc((size_t)mask->n, 1);
  if (mask->kept) laci_mask_from_zeros(&view, mask->kept);
  laci_bytes_release(&held);
  if (!mask->kept) return laci_fail_memory(err, view.name);
  mask->n_zeros = mask->n;
  for (int64_t e = 0; e < mask->n; e++) mask->n_zeros -= mask->kept[e];
  return LAC_OK;
}

void laci_target_mask_clear(laci_target_mask *mask) {
  laci_free(mask->kept);
  *mask = (laci_target_mask){0};
}

/* ---- Blocks ---- */

/* How blocks are placed in a tensor. Element (o, c, i) is at flat index (o * columns + c) * inner +
 * i. Blocks are along c, and are aligned to the beginning of each run of `run` columns. */
typedef struct axis_walk {
  int64_t outer, columns, inner, run;
} axis_walk;

typedef struct blocks {
  int64_t n, n_bad, first_bad; /* n: number of blocks. n_bad: number of blocks with too many
                                  nonzeros. first_bad: flat index of the first element of the first
                                  of these */
} blocks;

static int count_kept_in_block(const uint8_t *kept, int64_t size, int64_t stride) {
  int n = 0;
  for (int64_t c = 0; c < size; c++) n += kept[c * stride];
  return n;
}

static blocks count_blocks(const uint8_t *kept, const axis_walk *w, laci_pattern pattern) {
  blocks b = {.first_bad = -1};
  for (int64_t o = 0; o < w->outer; o++) {
    for (int64_t c = 0; c < w->columns;) {
      const int64_t left = w->run - c % w->run, size = left < pattern.m ? left : pattern.m;
      const int64_t at = (o * w->columns + c) * w->inner;
      for (int64_t i = 0; i < w->inner; i++) {
        const bool bad = count_kept_in_block(kept + at + i, size, w->inner) > pattern.n;
        b.n++;
        b.n_bad += bad;
        if (bad && b.first_bad < 0) b.first_bad = at + i;
      }
      c += size;
    }
  }
  return b;
}

static int64_t product_of_sizes(const laci_target_layer *layer, int from, int to) {
  int64_t n = 1;
  for (int axis = from; axis < to; axis++) n *= layer->dims[axis];
  return n;
}

static axis_walk make_axis_walk(const laci_target_layer *layer, int axis) {
  const int64_t columns = layer->dims[axis];
  return (axis_walk){.outer = product_of_sizes(layer, 0, axis),
                     .columns = columns,
                     .inner = product_of_sizes(layer, axis + 1, layer->rank),
                     .run = columns};
}

static bool holds_pattern_along(const laci_target_mask *mask, const axis_walk *w,
                                laci_pattern pattern) {
  return w->run > pattern.n && count_blocks(mask->kept, w, pattern).n_bad == 0;
}

/* ---- Patterns along other axes ---- */

/* Does the mask hold the pattern if the tensor is flattened: to rows that join all axes but the
 * first, or to one row? */
static bool holds_pattern_when_flattened(const laci_target_layer *layer,
                                         const laci_target_mask *mask, laci_pattern pattern) {
  const int64_t row = mask->n / layer->dims[0];
  if (layer->rank <= 2 || product_of_sizes(layer, 2, layer->rank) == 1) return false;
  const axis_walk rows = {.outer = layer->dims[0], .columns = row, .inner = 1, .run = row};
  const axis_walk whole = {.outer = 1, .columns = mask->n, .inner = 1, .run = mask->n};
  return holds_pattern_along(mask, &rows, pattern) || holds_pattern_along(mask, &whole, pattern);
}

static int64_t index_along_axis(const laci_target_layer *layer, int64_t at, int axis) {
  return at / product_of_sizes(layer, axis + 1, layer->rank) % layer->dims[axis];
}

/* Writes the kernel position of element `at`, as ", position 1,2"; an empty text if the kernel has
 * a single position. */
static void write_kernel_position(const laci_target_layer *layer, int64_t at, char *text,
                                  size_t size) {
  size_t n = 0;
  text[0] = 0;
  for (int axis = 0; axis < layer->rank && n < size; axis++) {
    if (axis == layer->k_axis || axis == layer->c_axis || layer->dims[axis] == 1) continue;
    n += (size_t)snprintf(text + n, size - n, "%s%" PRId64, n ? "," : ", position ",
                          index_along_axis(layer, at, axis));
  }
}

static void describe_bad_block(const laci_target_layer *layer, const blocks *b,
                               laci_pattern pattern, char reason[LACI_TARGET_TEXT]) {
  char position[96];
  const int64_t c = index_along_axis(layer, b->first_bad, layer->c_axis);
  const int64_t last = c + pattern.m - 1, end = layer->dims[layer->c_axis] - 1;
  write_kernel_position(layer, b->first_bad, position, sizeof position);
  (void)snprintf(
      reason, LACI_TARGET_TEXT,
      "%" PRId64 " of %" PRId64
      " block%s of %d input channels %s more than %d non-zero%s: "
      "the first is output channel %" PRId64 ", input channels %" PRId64 " to %" PRId64 "%s",
      b->n_bad, b->n, laci_plural(b->n), pattern.m, b->n_bad == 1 ? "has" : "have", pattern.n,
      laci_plural(pattern.n), index_along_axis(layer, b->first_bad, layer->k_axis), c,
      last < end ? last : end, position);
}

laci_target_fault laci_target_mask_fault(const laci_target_layer *layer,
                                         const laci_target_mask *mask, laci_pattern pattern,
                                         char reason[LACI_TARGET_TEXT]) {
  const laci_weight_view *view = &layer->view;
  const axis_walk inputs = {view->outer, view->columns, view->inner, view->run};
  const blocks b = count_blocks(mask->kept, &inputs, pattern);
  if (b.n_bad == 0) return LACI_FAULT_NONE;
  const axis_walk outputs = make_axis_walk(layer, layer->k_axis);
  const bool flattened = holds_pattern_when_flattened(layer, mask, pattern);
  if (flattened || holds_pattern_along(mask, &outputs, pattern)) {
    (void)snprintf(
        reason, LACI_TARGET_TEXT,
        "its %d:%d is along %s, not along the input channels: it looks like %d:%d, and no "
        "hardware takes it",
        pattern.n, pattern.m, flattened ? "the flattened axis [O, I*kH*kW]" : "the output channels",
        pattern.n, pattern.m);
    return LACI_FAULT_AXIS;
  }
  describe_bad_block(layer, &b, pattern, reason);
  return LACI_FAULT_PATTERN;
}

/* ---- Patterns ---- */

static int overlap_of_ranges(int a, int a_end, int b, int b_end) {
  const int from = a > b ? a : b, to = a_end < b_end ? a_end : b_end;
  return to > from ? to - from : 0;
}

bool laci_target_pattern_implies(laci_pattern has, laci_pattern wants) {
  for (int start = 0; start < has.m * wants.m; start += wants.m) {
    int most = 0;
    for (int block = 0; block < has.m * wants.m; block += has.m) {
      const int shared = overlap_of_ranges(start, start + wants.m, block, block + has.m);
      most += shared < has.n ? shared : has.n;
    }
    if (most > wants.n) return false;
  }
  return true;
}
