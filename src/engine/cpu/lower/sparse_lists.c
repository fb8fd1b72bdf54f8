/* SPDX-License-Identifier: Apache-2.0
 * Layers without generated code: lists of what is kept (kernel/sparse/csr.h). */
#include "base/divide.h"
#include "engine/cpu/lower/sparse.h"
#include "kernel/sparse/csr.h"

/** Rows are cut so that all threads have lists, where a few tiles are all there is. */
lac_status laci_sparse_make_lists(laci_net *net, laci_sparse_kernel *kernel, lac_error *err) {
  enum { LEAST = 16, EACH = 2 }; /* rows of a chunk, and items of a thread */
  laci_sparse_form *form = &kernel->form;
  const int64_t strips = laci_csr_strips(form->n_tiles);
  const int64_t cuts = laci_ceil_div((int64_t)net->n_threads * EACH, strips);
  const int64_t rows = laci_ceil_div(form->product.n_rows, cuts);
  const laci_csr_cut cut = {form->tiles, form->n_tiles, rows < LEAST ? LEAST : rows};
  laci_csr *csr = laci_plan_new(&net->plan, 1, sizeof *csr);
  if (!csr) return LAC_NO_MEMORY;
  lac_status st = laci_csr_init(&form->product, form->kept.weight, &cut, csr, err);
  if (st) return st;
  kernel->csr = csr;
  laci_sparse_form_keep_tiles(form);
  net->plan.weight_bytes += csr->bytes;
  return LAC_OK;
}

void laci_sparse_drop_lists(laci_sparse_kernel *kernel) {
  if (kernel->csr) laci_csr_clear(kernel->csr);
}
