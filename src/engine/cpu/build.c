/* SPDX-License-Identifier: Apache-2.0
 * From layers to steps: a table says who builds which operator; what nobody can build, or a builder
 * declines, is done by the plain operator. */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "base/error.h"

typedef struct builder {
  const char *type;
  laci_net_builder *build;
} builder;

static const builder builders[] = {
    {"Conv", laci_build_conv},
    {"Gemm", laci_build_gemm},
    {"MatMul", laci_build_matmul},
    {"MaxPool", laci_build_pool},
    {"AveragePool", laci_build_pool},
    {"GlobalAveragePool", laci_build_global_pool},
    {"GlobalMaxPool", laci_build_global_pool},
    {"BatchNormalization", laci_build_batch_norm},
    {"LayerNormalization", laci_build_layer_norm},
    {"Softmax", laci_build_softmax},
    {"LogSoftmax", laci_build_softmax},
    {"ReduceMean", laci_build_reduce},
    {"ReduceSum", laci_build_reduce},
    {"ReduceMax", laci_build_reduce},
    {"ReduceMin", laci_build_reduce},
    {"Add", laci_build_binary},
    {"Sub", laci_build_binary},
    {"Mul", laci_build_binary},
    {"Div", laci_build_binary},
    {"Max", laci_build_binary},
    {"Min", laci_build_binary},
    {"Sum", laci_build_binary},
    {"Concat", laci_build_concat},
    {"Reshape", laci_build_reshape},
    {"Flatten", laci_build_reshape},
    {"Squeeze", laci_build_reshape},
    {"Unsqueeze", laci_build_reshape},
    {"Transpose", laci_build_transpose},
    {"Slice", laci_build_slice},
    {"Split", laci_build_split},
    {"Pad", laci_build_pad},
    {"Gather", laci_build_gather},
    {"Resize", laci_build_resize},
    {"Upsample", laci_build_resize},
    {"Identity", laci_build_same},
    {"Dropout", laci_build_same},
    {"Cast", laci_build_cast},
    {"Where", laci_build_where},
    {"Expand", laci_build_expand},
    {"GatherND", laci_build_gather_nd},
    {"And", laci_build_logic},
    {"Or", laci_build_logic},
    {"Xor", laci_build_logic},
    {"Not", laci_build_logic},
    {"Equal", laci_build_logic},
    {"Less", laci_build_logic},
    {"LessOrEqual", laci_build_logic},
    {"Greater", laci_build_logic},
    {"GreaterOrEqual", laci_build_logic},
};

/* Of domain "lacuna": graph/gradient.h. */
static const builder builders_of_training[] = {
    {"BatchNormTrain", laci_build_batch_norm_train},
    {"BatchNormTrainGrad", laci_build_batch_norm_train_grad},
    {"SoftmaxCrossEntropy", laci_build_cross_entropy},
    {"SoftmaxCrossEntropyGrad", laci_build_cross_entropy_grad},
    {"ConvGradInput", laci_build_conv_grad_input},
    {"ConvGradWeight", laci_build_conv_grad_weight},
    {"MaxPoolGrad", laci_build_max_pool_grad},
    {"AveragePoolGrad", laci_build_average_pool_grad},
    {"ReluGrad", laci_build_relu_grad},
    {"UnaryGrad", laci_build_unary_grad},
    {"ClipGrad", laci_build_clip_grad},
    {"SliceGrad", laci_build_slice_grad},
};

static laci_net_builder *find_builder(const builder *table, size_t n, const char *type) {
  for (size_t at = 0; at < n; at++) {
    if (strcmp(type, table[at].type) == 0) return table[at].build;
  }
  return NULL;
}

static laci_net_builder *builder_of(laci_net *net, const laci_node *node) {
  int input;
  laci_eltwise e[2];
  if (node->op->domain) {
    return find_builder(builders_of_training,
                        sizeof builders_of_training / sizeof *builders_of_training, node->type);
  }
  if (laci_eltwise_of(net, node, &input, e)) return laci_build_eltwise;
  return find_builder(builders, sizeof builders / sizeof *builders, node->type);
}

bool laci_net_takes_posts(const laci_net *net, const laci_node *node) {
  if (!node->op || node->op->domain || node->n_outputs < 1 || node->outputs[0] < 0) return false;
  if (strcmp(node->type, "Conv") == 0) return laci_net_fits_conv(net, node);
  bool product = strcmp(node->type, "Gemm") == 0 || strcmp(node->type, "MatMul") == 0;
  return product && laci_net_fits_matmul(net, node);
}

bool laci_net_has_elements(const laci_net *net, const laci_node *node) {
  for (int at = 0; at < node->n_inputs + node->n_outputs; at++) {
    int value = at < node->n_inputs ? node->inputs[at] : node->outputs[at - node->n_inputs];
    if (value >= 0 && laci_shape_count(laci_net_shape(net, value)) == 0) return false;
  }
  return true;
}

void laci_net_read_done(laci_net *net, int value) {
  int tensor = net->values[value].tensor;
  if (tensor >= 0) net->buffers[net->tensors[tensor].buffer].pending--;
}

/** The layer has read its inputs: once for each place where they stand. */
static void reads_done(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  for (int at = 0; at < layer->n_reads; at++) laci_net_read_done(net, layer->reads[at]);
  for (int at = 0; at < node->n_inputs && !layer->build; at++) {
    if (node->inputs[at] >= 0) laci_net_read_done(net, node->inputs[at]);
  }
  for (int at = 0; at < layer->n_posts; at++) {
    if (layer->posts[at].value >= 0) laci_net_read_done(net, layer->posts[at].value);
  }
}

static void build_layer(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  laci_net_builder *build = layer->build;
  if (!build && laci_net_has_elements(net, node)) build = builder_of(net, node);
  laci_net_mark mark = laci_net_mark_now(net);
  if (!laci_net_has_room(net)) return;
  if (build) {
    lac_error why = {0}, *err = net->err;
    net->err = &why;
    build(net, layer);
    net->err = err;
    bool declined = net->status == LAC_UNSUPPORTED;
    if (declined && layer->tail == layer->node && !layer->build) {
      net->status = LAC_OK;
      laci_net_take_back(net, mark);
      build = NULL;
    } else if (net->status) {
      (void)laci_fail(err, net->status, "%s (%s): %s", node->name, node->type, why.text);
    }
  }
  if (!build) laci_build_plain(net, layer);
  reads_done(net, layer);
}

static void build_input(laci_net *net, int port) {
  int value = net->graph->inputs[port];
  const laci_engine_port *p = &net->inputs[port];
  bool is_float = p->type.dtype == LAC_DTYPE_F32;
  laci_md md = is_float ? laci_net_dense(net, &p->type.shape, dnnl_f32) : NULL;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_INPUT, p->size_bytes);
  if (buffer >= 0) net->buffers[buffer].port = port;
  laci_net_bind(net, value,
                laci_net_tensor_new(net, &p->type.shape, is_float ? dnnl_f32 : dnnl_data_type_undef,
                                    md, buffer));
}

static lac_status copy_integers(laci_net *net, laci_net_step *step, lac_error *err) {
  (void)err;
  memcpy(laci_net_data(net, step->tensors[1]), laci_net_data(net, step->tensors[0]),
         net->buffers[net->tensors[step->tensors[1]].buffer].bytes);
  return LAC_OK;
}

static void build_output(laci_net *net, int port) {
  static const laci_node result = {.name = "", .type = "output"};
  const laci_engine_port *p = &net->outputs[port];
  bool is_float = p->type.dtype == LAC_DTYPE_F32;
  int from = laci_net_read(net, net->graph->outputs[port]);
  laci_md md = is_float ? laci_net_dense(net, &p->type.shape, dnnl_f32) : NULL;
  int buffer = laci_net_buffer_new(net, LACI_PLACE_OUTPUT, p->size_bytes);
  if (buffer >= 0) net->buffers[buffer].port = port;
  int to = laci_net_tensor_new(net, &p->type.shape, is_float ? dnnl_f32 : dnnl_data_type_undef, md,
                               buffer);
  if (to < 0 || from < 0 || p->size_bytes == 0) return;
  if (!is_float) {
    (void)laci_net_step_code(net, &result, copy_integers, 2, (int[]){from, to});
    return;
  }
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t st = dnnl_reorder_primitive_desc_create(
      &pd, net->tensors[from].md, net->engine, net->tensors[to].md, net->engine, net->attr);
  if (!laci_net_did(net, st, "reorder of an output")) return;
  laci_net_step_add(net, NULL, pd, 2, (const int[][2]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

/** Those outputs that are not built yet and are there, or all. */
static void build_outputs(laci_net *net, bool *built, bool all) {
  for (int at = 0; at < net->n_outputs && !net->status; at++) {
    int value = net->graph->outputs[at];
    if (built[at] || !(all || net->values[value].tensor >= 0)) continue;
    build_output(net, at);
    laci_net_read_done(net, value);
    built[at] = true;
  }
}

void laci_net_build(laci_net *net) {
  bool *built = laci_net_new(net, (size_t)net->n_outputs, sizeof *built);
  laci_net_choose_blocks(net);
  for (int at = 0; at < net->n_inputs; at++) build_input(net, at);
  laci_net_build_observed(net);
  for (int n = 0; n < net->graph->n_nodes && !net->status; n++) {
    if (net->layer_at[n] < 0) continue;
    build_layer(net, &net->layers[net->layer_at[n]]);
    laci_net_build_observed(net);
    if (net->early_outputs) build_outputs(net, built, false);
  }
  build_outputs(net, built, true);
  laci_net_check_observed(net);
}
