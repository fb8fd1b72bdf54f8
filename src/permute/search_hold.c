/* SPDX-License-Identifier: Apache-2.0
 * Visits the parts of a cut (a table of columns, search_cut.h): those of one weight together, while
 * it is in memory. A grouped convolution has one part for each group. */
#include "permute/search_hold.h"

#include <string.h>

#include "base/error.h"
#include "base/acquire.h"
#include "sparse/score.h"

static bool is_weight_to_be_fetched(const laci_weight_view *w) {
  const size_t n = (size_t)(w->outer * w->columns * w->inner) * lac_dtype_size(w->dtype);
  return laci_bytes_need_copy(w->bytes_from, w->bytes, n);
}

static bool has_weight_to_be_fetched(const laci_cut *cut) {
  for (int i = 0; i < cut->n_parts; i++) {
    if (is_weight_to_be_fetched(cut->parts[i].weight)) return true;
  }
  return false;
}

lac_status laci_cut_load_and_visit_weights(const laci_cut *cut, laci_cut_visit *visit,
                                           void *context, lac_error *err) {
  if (cut->n_parts == 0) return LAC_OK;
  if (!has_weight_to_be_fetched(cut)) {
    visit(cut, 0, cut->n_parts, context);
    return LAC_OK;
  }
  laci_cut held = *cut;
  held.parts = laci_alloc((size_t)cut->n_parts, sizeof *held.parts);
  if (!held.parts) return laci_fail_memory(err, "the search");
  memcpy(held.parts, cut->parts, (size_t)cut->n_parts * sizeof *held.parts);
  lac_status st = LAC_OK;
  for (int first = 0, end; first < cut->n_parts && !st; first = end) {
    const laci_weight_view *weight = cut->parts[first].weight;
    laci_weight_view in_memory;
    laci_acquired_bytes bytes;
    st = laci_weight_acquire(weight, &in_memory, &bytes, err);
    for (end = first; end < cut->n_parts && cut->parts[end].weight->bytes == weight->bytes; end++) {
      held.parts[end].weight = &in_memory;
    }
    if (!st) visit(&held, first, end, context);
    for (int i = first; i < end; i++) held.parts[i].weight = cut->parts[i].weight;
    laci_bytes_release(&bytes);
  }
  laci_free(held.parts);
  return st;
}
