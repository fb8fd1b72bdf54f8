/* SPDX-License-Identifier: Apache-2.0
 * The dynamic form: layers whose data are quantized at run time.
 *
 *   q, s, z = DynamicQuantizeLinear(x)      once for all layers that read x
 *   y = Cast(MatMulInteger(q, w, z, zero)) * (s * scales) + bias
 *
 * These are the nodes that ONNX Runtime's quantize_dynamic writes, by which runtimes recognize the
 * product of integers. A weight that several layers read is stored once. Convolutions stay in
 * floats: no runtime fuses ConvInteger with its scales, and ResNet-50 is slower with it. */
#include <string.h>

#include "base/error.h"
#include "graph/op.h"
#include "onnx/edit.h"
#include "quantize/quantize_in.h"

enum { MOST_TERMS = INT32_MAX / (UINT8_MAX * INT8_MAX) }; /* products that an int32 can sum */

/** Names of the integers of a value or a weight, of their scale and of their zero point. Of a
 * weight, NULL until it is stored. */
typedef struct names {
  const char *integers, *scale, *zero;
} names;

/** What has been added to the file. */
typedef struct writing {
  laci_quantizing *q;
  names *values;  /* [n_values] integers of each value that layers read */
  names *weights; /* [2 * n_stored] integers of each stored weight: as it is stored, then
                     transposed */
} writing;

static lac_status fail_no_memory(lac_error *err) {
  return laci_fail_memory(err, "the quantized network");
}

/* ---- Layers ---- */

static bool is_transposed(const laci_node *node) {
  return laci_node_is(node, "Gemm") && laci_node_int(node, "transB", 0) != 0;
}

const char *laci_quantize_explain_no_dynamic(const laci_quantizing *q,
                                             const laci_quantize_layer *layer) {
  const laci_node *node = &q->graph->nodes[layer->node];
  const laci_shape *shape = &q->graph->values[node->inputs[layer->port]].type.shape;
  if (!laci_node_is(node, "Gemm") && !laci_node_is(node, "MatMul"))
    return "a convolution of integers that are made at run time is slower than one of floats";
  if (layer->port != 1) return "its weight is the first factor of the product";
  if (laci_node_int(node, "transA", 0) != 0) return "its data are transposed";
  if (laci_node_float(node, "alpha", 1) != 1 || laci_node_float(node, "beta", 1) != 1)
    return "its alpha or beta is not 1";
  if (shape->dims[1 - layer->k_axis] > MOST_TERMS)
    return "the sums of its integers could be too large for int32";
  return NULL;
}

void laci_quantize_set_dynamic_values(laci_quantizing *q) {
  for (int v = 0; v < q->graph->n_values; v++) {
    q->like[v] = -1;
    q->quantizers[v].scale = 1; /* weights are quantized as if it were this */
  }
}

/* ---- Names ---- */

static const char *make_name(const writing *w, const char *base, const char *suffix) {
  return base ? laci_edit_make_unique_name(w->q->edit, base, suffix) : NULL;
}

static bool make_names(const writing *w, const char *base, names *n) {
  n->integers = make_name(w, base, "_quantized");
  n->scale = make_name(w, base, "_scale");
  n->zero = make_name(w, base, "_zero_point");
  return n->integers && n->scale && n->zero;
}

/* ---- Integers of values and weights ---- */

static lac_status quantize_value(writing *w, int value, lac_error *err) {
  names *n = &w->values[value];
  const char *name = w->q->graph->values[value].name;
  if (n->integers) return LAC_OK;
  if (!make_names(w, name, n)) return fail_no_memory(err);
  const laci_edit_node made = {.type = "DynamicQuantizeLinear",
                               .inputs = {name},
                               .n_inputs = 1,
                               .output = n->integers,
                               .others = {n->scale, n->zero},
                               .after = name};
  return laci_edit_add_node(w->q->edit, &made, err);
}

/* Adds the integers of a weight as [terms, channels] to the file. */
static lac_status store_integers(const writing *w, const laci_quantized_weight *from,
                                 int64_t n_terms, bool transpose, const char *name,
                                 lac_error *err) {
  const int64_t n_channels = from->n_channels;
  const laci_shape shape = {2, {n_terms, n_channels}};
  if (!transpose)
    return laci_edit_add_tensor(w->q->edit, name, LAC_DTYPE_I8, &shape, from->weight, err);
  int8_t *columns = laci_alloc((size_t)(n_terms * n_channels), 1);
  if (!columns) return fail_no_memory(err);
  for (int64_t c = 0; c < n_channels; c++) {
    for (int64_t t = 0; t < n_terms; t++)
      columns[t * n_channels + c] = from->weight[c * n_terms + t];
  }
  lac_status st = laci_edit_add_tensor(w->q->edit, name, LAC_DTYPE_I8, &shape, columns, err);
  laci_free(columns);
  return st;
}

/* Quantizes the weight of layer l, and adds it to the file unless another layer did. */
static lac_status store_weight(writing *w, int l, names *found, lac_error *err) {
  laci_quantizing *q = w->q;
  const laci_quantize_layer *layer = &q->layers[l];
  const laci_node *node = &q->graph->nodes[layer->node];
  const laci_value *value = &q->graph->values[node->inputs[layer->port]];
  names *n = &w->weights[2 * value->stored + is_transposed(node)];
  laci_quantized_weight made = {0};
  lac_status st = laci_quantize_weight(q, layer, &q->out->layers[l], &made, err);
  if (!st && !n->integers) {
    const laci_shape channels = {1, {made.n_channels}};
    int8_t *zeros = laci_alloc((size_t)made.n_channels, sizeof *zeros);
    if (!make_names(w, value->name, n) || !zeros) st = fail_no_memory(err);
    if (!st)
      st = store_integers(w, &made, value->type.shape.dims[1 - layer->k_axis], is_transposed(node),
                          n->integers, err);
    if (!st)
      st = laci_edit_add_tensor(q->edit, n->scale, LAC_DTYPE_F32, &channels, made.scales, err);
    if (!st) st = laci_edit_add_tensor(q->edit, n->zero, LAC_DTYPE_I8, &channels, zeros, err);
    laci_free(zeros);
  }
  laci_quantized_weight_clear(&made);
  *found = *n;
  return st;
}

/* ---- Nodes ---- */

/* Adds the nodes of one layer's product before the node that they replace. */
static lac_status add_product(const writing *w, const laci_node *node, const names *x,
                              const names *weight, lac_error *err) {
  const char *y = w->q->graph->values[node->outputs[0]].name;
  const bool adds = node->n_inputs > 2 && node->inputs[2] >= 0;
  const char *bias = adds ? w->q->graph->values[node->inputs[2]].name : NULL;
  const char *sums = make_name(w, y, "_output_quantized"), *floats = make_name(w, sums, "_cast"),
             *scales = make_name(w, y, "_scales"), *product = adds ? make_name(w, y, "_MatMul") : y;
  const laci_edit_node nodes[] = {{.type = "MatMulInteger",
                                   .inputs = {x->integers, weight->integers, x->zero, weight->zero},
                                   .n_inputs = 4,
                                   .name = make_name(w, node->name, "_quant"),
                                   .output = sums},
                                  {.type = "Cast",
                                   .inputs = {sums},
                                   .n_inputs = 1,
                                   .name = make_name(w, node->name, "_cast"),
                                   .output = floats,
                                   .attribute = "to",
                                   .number = LAC_DTYPE_F32},
                                  {.type = "Mul",
                                   .inputs = {x->scale, weight->scale},
                                   .n_inputs = 2,
                                   .name = make_name(w, node->name, "_scales"),
                                   .output = scales},
                                  {.type = "Mul",
                                   .inputs = {floats, scales},
                                   .n_inputs = 2,
                                   .name = make_name(w, node->name, "_scaled"),
                                   .output = product},
                                  {.type = "Add",
                                   .inputs = {product, bias},
                                   .n_inputs = 2,
                                   .name = make_name(w, node->name, "_bias"),
                                   .output = y}};
  const size_t n = sizeof nodes / sizeof *nodes - !adds;
  lac_status st = LAC_OK;
  for (size_t k = 0; k < n && !st; k++) {
    laci_edit_node made = nodes[k];
    made.before = y;
    st = made.name ? laci_edit_add_node(w->q->edit, &made, err) : fail_no_memory(err);
  }
  return st ? st : laci_edit_replace_value(w->q->edit, y, err);
}

static lac_status write_layer(writing *w, int l, lac_error *err) {
  const laci_quantizing *q = w->q;
  const laci_node *node = &q->graph->nodes[q->layers[l].node];
  const int data = node->inputs[q->layers[l].other];
  names weight = {0};
  lac_status st = quantize_value(w, data, err);
  if (!st) st = store_weight(w, l, &weight, err);
  return st ? st : add_product(w, node, &w->values[data], &weight, err);
}

lac_status laci_quantize_write_dynamic(laci_quantizing *q, lac_error *err) {
  writing w = {.q = q,
               .values = laci_alloc((size_t)q->graph->n_values + 1, sizeof *w.values),
               .weights = laci_alloc(2 * (size_t)q->graph->n_stored + 1, sizeof *w.weights)};
  lac_status st = w.values && w.weights ? LAC_OK : fail_no_memory(err);
  for (int l = 0; l < q->n_layers && !st; l++) {
    if (!q->layers[l].reason) st = write_layer(&w, l, err);
  }
  laci_free(w.values);
  laci_free(w.weights);
  return st;
}
