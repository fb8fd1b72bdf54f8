/* SPDX-License-Identifier: Apache-2.0
 * Writes a quantization into the file: a QuantizeLinear and a DequantizeLinear node after each
 * quantized value, and a DequantizeLinear node for each integer weight, which converts it to
 * floats. */
#include "base/error.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"

/** Names of the tensors and values that are added for a quantized value: its scale, its zero point,
 * and its integers before and floats after dequantization. */
typedef struct names {
  const char *scale, *zero, *integers, *floats;
} names;

static lac_status fail_no_memory(lac_error *err) {
  return laci_fail_memory(err, "the quantized network");
}

/* ---- Values ---- */

static lac_status add_scale_and_zero_point(laci_quantizing *q, int value, names *n,
                                           lac_error *err) {
  const laci_affine *quantizer = &q->quantizers[value];
  const char *name = q->graph->values[value].name;
  const laci_shape one = {.rank = 0};
  lac_dtype dtype = q->how->is_signed ? LAC_DTYPE_I8 : LAC_DTYPE_U8;
  uint8_t zero = (uint8_t)quantizer->zero;
  n->scale = laci_edit_make_unique_name(q->edit, name, "_scale");
  n->zero = laci_edit_make_unique_name(q->edit, name, "_zero_point");
  if (!n->scale || !n->zero) return fail_no_memory(err);
  lac_status st =
      laci_edit_add_tensor(q->edit, n->scale, LAC_DTYPE_F32, &one, &quantizer->scale, err);
  return st ? st : laci_edit_add_tensor(q->edit, n->zero, dtype, &one, &zero, err);
}

static lac_status add_quantize_and_dequantize(laci_quantizing *q, int value, const names *scale,
                                              names *n, lac_error *err) {
  const char *name = q->graph->values[value].name;
  n->integers = laci_edit_make_unique_name(q->edit, name, "_QuantizeLinear_Output");
  n->floats = laci_edit_make_unique_name(q->edit, name, "_DequantizeLinear_Output");
  if (!n->integers || !n->floats) return fail_no_memory(err);
  const laci_edit_node down = {.type = "QuantizeLinear",
                               .inputs = {name, scale->scale, scale->zero},
                               .n_inputs = 3,
                               .output = n->integers,
                               .after = name},
                       up = {.type = "DequantizeLinear",
                             .inputs = {n->integers, scale->scale, scale->zero},
                             .n_inputs = 3,
                             .output = n->floats,
                             .after = name};
  lac_status st = laci_edit_add_node(q->edit, &down, err);
  return st ? st : laci_edit_add_node(q->edit, &up, err);
}

/* Makes nodes read the dequantized value instead of the original one: all its readers if q->for_all
 * is set, else those for which q->reads is set. */
static lac_status redirect_readers_of_value(laci_quantizing *q, int value, const names *n,
                                            lac_error *err) {
  const laci_value *v = &q->graph->values[value];
  if (q->for_all[value]) return laci_edit_redirect_value(q->edit, v->name, n->floats, err);
  lac_status st = LAC_OK;
  for (int r = 0; r < v->n_readers && !st; r++) {
    const laci_node *node = &q->graph->nodes[v->readers[r]];
    if (!q->reads[v->readers[r]]) continue;
    for (int i = 0; i < node->n_inputs && !st; i++) {
      if (node->inputs[i] != value) continue;
      st = laci_edit_set_input(q->edit, laci_quantize_edit_name_of_node(q, v->readers[r]), i,
                               n->floats, err);
    }
  }
  return st;
}

static lac_status write_quantized_values(laci_quantizing *q, lac_error *err) {
  int n_values = q->graph->n_values;
  names *all = laci_alloc((size_t)n_values + 1, sizeof *all);
  lac_status st = all ? LAC_OK : fail_no_memory(err);
  for (int v = 0; v < n_values && !st; v++) {
    if (q->wanted[v] && q->like[v] < 0) st = add_scale_and_zero_point(q, v, &all[v], err);
  }
  for (int v = 0; v < n_values && !st; v++) {
    if (!q->wanted[v]) continue;
    st =
        add_quantize_and_dequantize(q, v, &all[laci_quantize_find_scale_owner(q, v)], &all[v], err);
    if (!st) st = redirect_readers_of_value(q, v, &all[v], err);
  }
  laci_free(all);
  return st;
}

/* ---- Layers ---- */

/** Integers of a layer's weight or bias, with a scale for each index along an axis. A node for this
 * layer dequantizes them. */
typedef struct integers {
  const char *base; /* prefix of the names of the new tensors */
  lac_dtype dtype;
  laci_shape shape;
  const void *bytes;
  const float *scales;
  int64_t n_scales;
  int axis;
} integers;

static lac_status write_dequantized_integers(laci_quantizing *q, int node, int port,
                                             const integers *x, lac_error *err) {
  const laci_shape along = {.rank = 1, .dims = {x->n_scales}};
  const char *whole = laci_edit_make_unique_name(q->edit, x->base, "_quantized");
  const char *scale = laci_edit_make_unique_name(q->edit, x->base, "_scale");
  const char *zero = laci_edit_make_unique_name(q->edit, x->base, "_zero_point");
  const char *floats = laci_edit_make_unique_name(q->edit, x->base, "_DequantizeLinear_Output");
  void *zeros = laci_alloc((size_t)x->n_scales, lac_dtype_size(x->dtype));
  if (!whole || !scale || !zero || !floats || !zeros) {
    laci_free(zeros);
    return fail_no_memory(err);
  }
  const char *reader = laci_quantize_edit_name_of_node(q, node);
  const laci_edit_node up = {.type = "DequantizeLinear",
                             .inputs = {whole, scale, zero},
                             .n_inputs = 3,
                             .output = floats,
                             .before = reader,
                             .attribute = "axis",
                             .number = x->axis};
  lac_status st = laci_edit_add_tensor(q->edit, whole, x->dtype, &x->shape, x->bytes, err);
  if (!st) st = laci_edit_add_tensor(q->edit, scale, LAC_DTYPE_F32, &along, x->scales, err);
  if (!st) st = laci_edit_add_tensor(q->edit, zero, x->dtype, &along, zeros, err);
  if (!st) st = laci_edit_add_node(q->edit, &up, err);
  if (!st) st = laci_edit_set_input(q->edit, reader, port, floats, err);
  laci_free(zeros);
  return st;
}

static lac_status write_bias(laci_quantizing *q, const laci_quantize_layer *layer,
                             const laci_quantized_weight *w, lac_error *err) {
  const laci_node *node = &q->graph->nodes[layer->node];
  int value = node->inputs[layer->port];
  const char *base = layer->bias >= 0 ? q->graph->values[layer->bias].name : NULL;
  if (!base) base = laci_edit_make_unique_name(q->edit, q->graph->values[value].name, "_bias");
  if (!base) return fail_no_memory(err);
  const integers bias = {.base = base,
                         .dtype = LAC_DTYPE_I32,
                         .shape = {.rank = 1, .dims = {w->n_bias}},
                         .bytes = w->bias,
                         .scales = w->bias_scales,
                         .n_scales = w->n_bias};
  return write_dequantized_integers(q, layer->node, 2, &bias, err);
}

/* Makes the Add node after a MatMul add the corrected vector. */
static lac_status write_added_vector(laci_quantizing *q, const laci_quantize_layer *layer,
                                     const float *vector, lac_error *err) {
  const laci_node *add = &q->graph->nodes[layer->add];
  const laci_value *value = &q->graph->values[add->inputs[layer->add_port]];
  const char *name = laci_edit_make_unique_name(q->edit, value->name, "_corrected");
  if (!name) return fail_no_memory(err);
  lac_status st = laci_edit_add_tensor(q->edit, name, LAC_DTYPE_F32,
                                       &q->graph->stored[value->stored].shape, vector, err);
  return st ? st
            : laci_edit_set_input(q->edit, q->graph->values[add->outputs[0]].name, layer->add_port,
                                  name, err);
}

static lac_status write_layer(laci_quantizing *q, int l, lac_error *err) {
  const laci_quantize_layer *layer = &q->layers[l];
  const laci_node *node = &q->graph->nodes[layer->node];
  const laci_value *value = &q->graph->values[node->inputs[layer->port]];
  laci_quantized_weight w = {0};
  lac_status st = laci_quantize_weight(q, layer, &q->out->layers[l], &w, err);
  const integers weight = {.base = value->name,
                           .dtype = LAC_DTYPE_I8,
                           .shape = q->graph->stored[value->stored].shape,
                           .bytes = w.weight,
                           .scales = w.scales,
                           .n_scales = w.n_channels,
                           .axis = layer->k_axis};
  if (!st) st = write_dequantized_integers(q, layer->node, layer->port, &weight, err);
  if (!st && w.bias) st = write_bias(q, layer, &w, err);
  laci_quantized_weight_clear(&w);
  const float *added = q->trial->use ? q->trial->use->layers[l].added : NULL;
  if (!st && added) st = write_added_vector(q, layer, added, err);
  if (!st && layer->norm >= 0) {
    const laci_node *norm = &q->graph->nodes[layer->norm];
    st = laci_edit_remove_node(q->edit, q->graph->values[norm->outputs[0]].name,
                               q->graph->values[norm->inputs[0]].name, err);
  }
  return st;
}

lac_status laci_quantize_write(laci_quantizing *q, lac_error *err) {
  lac_status st = write_quantized_values(q, err);
  for (int l = 0; l < q->n_layers && !st; l++) {
    if (!q->layers[l].reason) st = write_layer(q, l, err);
  }
  return st;
}
