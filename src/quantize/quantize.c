/* SPDX-License-Identifier: Apache-2.0
 * Quantizes a network: chooses layers and values, measures ranges on samples, changes the file, and
 * compares its outputs with those of the float network. */
#include "quantize/quantize.h"

#include <float.h>
#include <stdlib.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/log.h"
#include "base/min.h"
#include "base/plural.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"

enum { BATCH = 32 };

/* ---- Checks ---- */

static lac_status check_graph_is_float(const laci_graph *graph, laci_quantize_form form,
                                       lac_error *err) {
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    bool is_quantized = laci_node_is(node, "QuantizeLinear") ||
                        laci_node_is(node, "DequantizeLinear") ||
                        laci_node_is(node, "DynamicQuantizeLinear");
    if (is_quantized)
      return laci_fail(err, LAC_UNSUPPORTED,
                       "the network is quantized already (%s '%s'); wanted one of floats",
                       node->type, node->name);
  }
  return laci_quantize_check_opset(graph, form, err);
}

static void quantizing_clear(laci_quantizing *q) {
  laci_free(q->layers);
  laci_free(q->wanted);
  laci_free(q->for_all);
  laci_free(q->like);
  laci_free(q->reads);
  laci_free(q->quantizers);
}

static lac_status quantizing_init(laci_quantizing *q, lac_error *err) {
  size_t n_values = (size_t)q->graph->n_values + 1, n_nodes = (size_t)q->graph->n_nodes + 1;
  q->layers = laci_alloc(n_nodes, sizeof *q->layers);
  q->wanted = laci_alloc(n_values, sizeof *q->wanted);
  q->for_all = laci_alloc(n_values, sizeof *q->for_all);
  q->like = laci_alloc(n_values, sizeof *q->like);
  q->reads = laci_alloc(n_nodes, sizeof *q->reads);
  q->quantizers = laci_alloc(n_values, sizeof *q->quantizers);
  bool ok = q->layers && q->wanted && q->for_all && q->like && q->reads && q->quantizers;
  if (!ok) return laci_fail_memory(err, "the quantized network");
  laci_quantize_find_layers(q);
  const char *why = laci_quantize_explain_no_layer(q);
  if (!why) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "no layer can be quantized: %s%s",
                   q->n_layers > 0 ? "of the first, " : "", why);
}

lac_status laci_quantize_check(const laci_graph *graph, laci_onnx *file, laci_quantize_form form,
                               lac_error *err) {
  laci_quantizing q = {.graph = graph, .form = form};
  lac_status st = check_graph_is_float(graph, form, err);
  if (!st) st = laci_onnx_edit_begin(file, &q.edit, err);
  if (!st) st = quantizing_init(&q, err);
  quantizing_clear(&q);
  laci_onnx_edit_undo(q.edit);
  return st;
}

/* ---- Ranges ---- */

static lac_status cut_samples(laci_quantizing *q, const laci_graph *graph,
                              laci_calibration_cut *cut, lac_error *err) {
  const laci_calibration_samples *samples = q->how->samples;
  const int64_t fixed = laci_calibration_required_batch(graph, samples);
  int64_t held = samples->held_back, most = held > 0 && held < BATCH ? held : BATCH;
  lac_status st =
      laci_calibration_cut_samples(samples->count, most, fixed > 0 ? fixed : 0, cut, err);
  if (!st && held > 0 && cut->n_batches > 1) {
    int64_t n_fitted = (samples->count - held + cut->batch - 1) / cut->batch;
    cut->n_fitted = n_fitted < cut->n_batches ? n_fitted : cut->n_batches - 1;
  }
  return st;
}

/* Takes the scales that an earlier quantization found. A value may have shared another one's scale
 * then, and have its own now. */
static lac_status take_known_scales(laci_quantizing *q, lac_error *err) {
  const int n_values = q->graph->n_values;
  q->out->values = laci_arena_alloc(&q->out->arena, (size_t)n_values + 1, sizeof *q->out->values);
  if (!q->out->values) return laci_fail_memory(err, "ranges of values");
  for (int v = 0; v < n_values; v++) {
    if (!q->wanted[v] || q->like[v] >= 0) continue;
    q->quantizers[v] = q->trial->quantizers[v];
    const char *name = laci_arena_text(&q->out->arena, q->graph->values[v].name);
    if (!name) return laci_fail_memory(err, "ranges of values");
    if (q->quantizers[v].scale > 0)
      q->out->values[q->out->n_values++] = (laci_quantized_value){name, q->quantizers[v]};
  }
  return LAC_OK;
}

static lac_status measure_ranges(laci_quantizing *q, const laci_weighted_graph *from,
                                 const laci_calibration_cut *cut, lac_error *err) {
  int n = 0, n_values = q->graph->n_values;
  int *values = laci_alloc((size_t)n_values + 1, sizeof *values);
  for (int v = 0; values && v < n_values; v++) {
    if (q->wanted[v] && q->like[v] < 0) values[n++] = v;
  }
  laci_range *ranges = laci_alloc((size_t)n + 1, sizeof *ranges);
  q->out->values = laci_arena_alloc(&q->out->arena, (size_t)n + 1, sizeof *q->out->values);
  const laci_ranges_options how = {.values = values,
                                   .n_values = n,
                                   .samples = q->how->samples,
                                   .batch = cut->batch,
                                   .n_batches = cut->n_fitted,
                                   .pool = q->how->pool,
                                   .budget = q->how->budget};
  bool ok = values && ranges && q->out->values;
  lac_status st = ok ? LAC_OK : laci_fail_memory(err, "ranges of values");
  if (!st) st = laci_ranges_measure(from, &how, ranges, err);
  for (int k = 0; k < n && !st; k++) {
    const char *name = laci_arena_text(&q->out->arena, q->graph->values[values[k]].name);
    laci_affine *to = &q->quantizers[values[k]];
    *to = laci_range_choose_affine(&ranges[k], q->how->rule, q->how->is_signed);
    if (!(to->scale >= FLT_MIN)) to->scale = 0;
    if (!name) st = laci_fail_memory(err, "ranges of values");
    if (st || !(to->scale > 0)) {
      if (!st)
        laci_log(LAC_LOG_WARNING, "value '%s' is 0 on all calibration samples: it stays in floats",
                 name);
      continue;
    }
    q->out->values[q->out->n_values++] = (laci_quantized_value){name, *to};
  }
  laci_free(values);
  laci_free(ranges);
  return st;
}

/* ---- The result ---- */

static lac_status describe_quantized_layers(laci_quantizing *q, lac_error *err) {
  laci_quantization *out = q->out;
  out->layers = laci_arena_alloc(&out->arena, (size_t)q->n_layers + 1, sizeof *out->layers);
  bool ok = out->layers != NULL;
  for (int l = 0; l < q->n_layers && ok; l++) {
    const laci_quantize_layer *from = &q->layers[l];
    const laci_node *node = &q->graph->nodes[from->node];
    laci_quantized_layer *to = &out->layers[out->n_layers++];
    *to = (laci_quantized_layer){.name = laci_arena_text(&out->arena, node->name),
                                 .op = laci_arena_text(&out->arena, node->type),
                                 .reason = from->reason};
    ok = to->name && to->op;
    if (from->reason || !ok) continue;
    to->weight = laci_arena_text(&out->arena, q->graph->values[node->inputs[from->port]].name);
    int data = laci_quantize_find_scale_owner(q, node->inputs[from->other]);
    to->input = laci_arena_text(&out->arena, q->graph->values[data].name);
    ok = to->weight && to->input;
    out->n_quantized++;
  }
  return ok ? LAC_OK : laci_fail_memory(err, "the quantized network");
}

const uint8_t **laci_quantize_match_weights(const laci_weighted_graph *from,
                                            const laci_graph *graph) {
  const uint8_t **weights = laci_alloc((size_t)graph->n_stored + 1, sizeof *weights);
  for (int s = 0; weights && s < graph->n_stored; s++) {
    int value = laci_graph_find_value(from->graph, graph->stored[s].name);
    int old = value < 0 ? -1 : from->graph->values[value].stored;
    if (old < 0) continue;
    weights[s] =
        from->weights && from->weights[old] ? from->weights[old] : from->graph->stored[old].owned;
  }
  return weights;
}

static lac_status compare_with_float_network(laci_quantizing *q, const laci_weighted_graph *from,
                                             const laci_calibration_cut *cut, lac_error *err) {
  const bool all = cut->n_fitted == cut->n_batches;
  const int64_t n_batches = all ? cut->n_batches : cut->n_batches - cut->n_fitted;
  const int64_t most = laci_ceil_div(q->trial->most_compared, cut->batch);
  const laci_compare_options how = {.first = all ? 0 : cut->n_fitted * cut->batch,
                                    .n = laci_min(n_batches, most) * cut->batch,
                                    .batch = cut->batch,
                                    .pool = q->how->pool,
                                    .budget = q->how->budget,
                                    .cache = q->trial->cache};
  const uint8_t **weights = laci_quantize_match_weights(from, q->out->graph);
  if (!weights) return laci_fail_memory(err, "the quantized network");
  const laci_weighted_graph to = {q->out->graph, weights};
  lac_error why = {0};
  lac_status st = laci_compare_outputs(from, &to, q->how->samples, &how, &q->out->outputs, &why);
  laci_free(weights);
  if (!st && q->out->outputs.doubt)
    st = laci_fail(&why, LAC_UNSUPPORTED,
                   "%s, which says nothing of how the network answers on others",
                   q->out->outputs.doubt);
  if (q->out->outputs.doubt) q->out->outputs = (laci_output_difference){0};
  if (st == LAC_UNSUPPORTED || st == LAC_BAD_SHAPE || st == LAC_MEMORY_LIMIT) {
    q->out->outputs_reason = laci_arena_text(&q->out->arena, why.text);
    laci_log(LAC_LOG_WARNING, "the outputs of the quantized network were not compared: %s",
             why.text);
    return q->out->outputs_reason ? LAC_OK : laci_fail_memory(err, "the quantized network");
  }
  if (st && err) *err = why;
  return st;
}

/* Chooses the values that are quantized, and their scales, which the dynamic form finds at run
 * time. */
static lac_status choose_values(laci_quantizing *q, const laci_weighted_graph *from,
                                const laci_calibration_cut *cut, lac_error *err) {
  if (q->form == LACI_QUANTIZE_DYNAMIC) {
    laci_quantize_set_dynamic_values(q);
    return LAC_OK;
  }
  lac_status st = laci_quantize_mark_values(q, err);
  if (!st)
    st = q->trial->quantizers ? take_known_scales(q, err) : measure_ranges(q, from, cut, err);
  if (!st) laci_quantize_exclude_layers_without_scale(q);
  return st;
}

static lac_status write_changes(laci_quantizing *q, lac_error *err) {
  if (q->form == LACI_QUANTIZE_DYNAMIC) return laci_quantize_write_dynamic(q, err);
  lac_status st = laci_quantize_write(q, err);
  return st ? st : laci_quantize_raise_opset(q, err);
}

static lac_status quantize_and_compare(laci_quantizing *q, const laci_weighted_graph *from,
                                       laci_onnx *file, lac_error *err) {
  laci_calibration_cut cut = {0};
  lac_status st = check_graph_is_float(q->graph, q->form, err);
  if (!st) st = laci_onnx_edit_begin(file, &q->out->edit, err);
  q->edit = q->out->edit;
  if (!st) st = quantizing_init(q, err);
  for (int l = 0; !st && q->trial->in_floats && l < q->n_layers; l++) {
    if (q->trial->in_floats[l] && !q->layers[l].reason)
      q->layers[l].reason = "it stays in floats to limit the loss";
  }
  if (!st && q->how->samples) st = cut_samples(q, q->graph, &cut, err);
  if (!st) st = choose_values(q, from, &cut, err);
  if (st) return st;
  q->out->n_fitted = cut.n_fitted * cut.batch;
  q->out->n_held_back = (cut.n_batches - cut.n_fitted) * cut.batch;
  st = describe_quantized_layers(q, err);
  if (!st) st = write_changes(q, err);
  if (!st) st = laci_onnx_edit_apply(q->edit, &q->out->graph, err);
  if (!st && q->trial->find) st = laci_quantize_find_corrections(q, from, &cut, err);
  if (!q->how->samples) q->out->outputs_reason = "there are no samples";
  if (st || q->trial->most_compared == 0 || !q->how->samples) return st;
  return compare_with_float_network(q, from, &cut, err);
}

/* Stores the scale of each quantized value, its own or the one that it shares. */
static void copy_scales(const laci_quantizing *q, laci_affine *scales) {
  for (int v = 0; scales && v < q->graph->n_values; v++) {
    scales[v] = (laci_affine){0};
    if (q->wanted[v]) scales[v] = q->quantizers[laci_quantize_find_scale_owner(q, v)];
  }
}

lac_status laci_quantize_once(const laci_weighted_graph *from, laci_onnx *file,
                              const laci_quantize_options *options,
                              const laci_quantize_trial *trial, laci_quantization **quantization,
                              lac_error *err) {
  *quantization = NULL;
  laci_quantization *out = laci_alloc(1, sizeof *out);
  if (!out) return laci_fail_memory(err, "the quantized network");
  laci_quantizing q = {.graph = from->graph,
                       .weights = from->weights,
                       .form = options->form,
                       .how = options,
                       .trial = trial,
                       .out = out};
  lac_status st = quantize_and_compare(&q, from, file, err);
  if (!st) copy_scales(&q, trial->found);
  quantizing_clear(&q);
  if (st) {
    laci_quantization_destroy(out);
    return st;
  }
  *quantization = out;
  return LAC_OK;
}

lac_status laci_quantize(const laci_weighted_graph *from, laci_onnx *file,
                         const laci_quantize_options *options, laci_quantization **quantization,
                         lac_error *err) {
  const laci_quantize_trial all = {.most_compared = LACI_QUANTIZE_COMPARE_ALL};
  lac_status st = options->limit
                      ? laci_quantize_within_limit(from, file, options, quantization, err)
                      : laci_quantize_corrected(from, file, options, &all, quantization, err);
  if (st) return st;
  const laci_quantization *out = *quantization;
  laci_log(LAC_LOG_DEBUG, "quantized: %d of %d layer%s, %d value%s", out->n_quantized,
           out->n_layers, laci_plural(out->n_layers), out->n_values, laci_plural(out->n_values));
  return LAC_OK;
}

void laci_quantization_destroy(laci_quantization *quantization) {
  if (!quantization) return;
  laci_graph_destroy(quantization->graph);
  laci_onnx_edit_undo(quantization->edit);
  laci_arena_clear(&quantization->arena);
  laci_free(quantization);
}
