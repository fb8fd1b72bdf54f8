/* SPDX-License-Identifier: Apache-2.0
 * A network may compute a layer's weight from stored tensors. This computes the content that such a
 * weight would have if it were stored itself. */
#include "analyze/analyze.h"
#include "base/budget.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/constants.h"
#include "graph/graph.h"
#include "prune/prune_in.h"
#include "sparse/measure.h"
#include "tensor/buf.h"

lac_status laci_evaluate_computed_weight(const laci_analysis *a, int l, const laci_budget *budget,
                                         laci_weight_view *view, uint8_t **bytes, lac_error *err) {
  const uint64_t most = !budget                          ? UINT64_MAX
                        : budget->needed < budget->limit ? budget->limit - budget->needed
                                                         : 0;
  const laci_layer *layer = &a->layers[l];
  lac_error why = {0};
  laci_buf *buf = NULL;
  *bytes = NULL;
  if (!layer->constant || laci_shape_count(&a->graph->values[layer->weight].type.shape) <= 0)
    return LAC_OK;
  lac_status st = laci_graph_evaluate_constant(a->graph, layer->weight, most, &buf, &why);
  if (!st && buf->f) {
    *bytes = laci_alloc((size_t)buf->count * lac_dtype_size(buf->dtype), 1);
    if (!*bytes) st = laci_fail_memory(&why, a->graph->values[layer->weight].name);
    else laci_write_f64(buf->dtype, buf->f, buf->count, *bytes);
  }
  if (*bytes && !laci_layer_fill_computed_view(a, layer, buf->dtype, *bytes, view)) {
    laci_free(*bytes);
    *bytes = NULL;
  }
  laci_buf_destroy(buf);
  if (!st) return LAC_OK;
  if (st == LAC_NO_MEMORY || st == LAC_IO || st == LAC_INTERRUPTED) {
    if (err) *err = why;
    return st;
  }
  laci_log(LAC_LOG_INFO, "%s: its content is not known: %s", a->graph->values[layer->weight].name,
           why.text);
  return LAC_OK;
}

lac_status laci_computed_is_pruned(const laci_analysis *a, int l, const laci_computed_options *how,
                                   bool *pruned, lac_error *err) {
  laci_weight_view view;
  laci_weight_measurement look;
  uint8_t *bytes;
  *pruned = false;
  lac_status st = laci_evaluate_computed_weight(a, l, how->budget, &view, &bytes, err);
  if (!st && bytes) {
    lac_error why = {0};
    st = laci_weight_measure(&view, how->rule, how->pool, &look, &why);
    *pruned = !st && look.is_pruned;
    if (st && !laci_status_is_not_about_data(st))
      st = LAC_OK; /* a NaN or an infinity is no failure here; see measure.c */
    if (st && err) *err = why;
  }
  laci_free(bytes);
  return st;
}
