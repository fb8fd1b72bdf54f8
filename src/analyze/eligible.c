/* SPDX-License-Identifier: Apache-2.0
 * Decides which layers may be pruned, and gives the reason for each other layer in one sentence.
 *
 * Sparse Tensor Cores require input channels in multiples of 16 and output channels in multiples of
 * 8. Named targets restrict this further, each by its own rules. After that, names.c leaves out
 * layers by name. A tensor is masked only if every reader is a layer that may be pruned and has the
 * same input axis. */
#include <inttypes.h>
#include <string.h>

#include "analyze/analyze.h"
#include "analyze/layers_in.h"
#include "analyze/tracks_in.h"
#include "base/error.h"
#include "base/plural.h"
#include "graph/copies.h"
#include "graph/content.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "target/target.h"

enum { TENSOR_CORE_IN = 16, TENSOR_CORE_OUT = 8 };

static bool is_gemm_or_matmul(const laci_node *node) {
  return strcmp(node->type, "Gemm") == 0 || strcmp(node->type, "MatMul") == 0;
}

static bool can_mask_dtype(lac_dtype dtype) {
  switch (dtype) {
    case LAC_DTYPE_F16:
    case LAC_DTYPE_BF16:
    case LAC_DTYPE_F32:
    case LAC_DTYPE_F64:
    case LAC_DTYPE_F8E4M3FN:
    case LAC_DTYPE_F8E4M3FNUZ:
    case LAC_DTYPE_F8E5M2:
    case LAC_DTYPE_F8E5M2FNUZ:
    case LAC_DTYPE_F4E2M1:
    case LAC_DTYPE_I2:
    case LAC_DTYPE_U2:
    case LAC_DTYPE_I4:
    case LAC_DTYPE_U4:
    case LAC_DTYPE_I8:
    case LAC_DTYPE_U8: return true;
    default: return false;
  }
}

/* Is it a layer of LSTM, GRU or RNN? No runtime runs these sparse: they are pruned on request. */
static bool is_recurrent_layer(const laci_analysis *analysis, const laci_layer *layer) {
  const laci_op *op = analysis->graph->nodes[layer->node].op;
  return op == &laci_op_lstm || op == &laci_op_gru || op == &laci_op_rnn ||
         op == &laci_op_ms_dynamic_quantize_lstm;
}

static const char *find_size_objection(laci_analysis *analysis, laci_layer *layer,
                                       const laci_rules *rules) {
  int m = rules->pattern.m;
  int64_t in = layer->channels_in, out = layer->channels_out;
  int step_in = m <= TENSOR_CORE_IN && TENSOR_CORE_IN % m == 0 ? TENSOR_CORE_IN : m;
  if (in == 1 && layer->groups > 1)
    return laci_analysis_format_text(analysis, "depthwise: 1 input channel in each group");
  if (in < m) {
    return laci_analysis_format_text(analysis, "%" PRId64 " input channel%s%s, fewer than %d", in,
                                     in == 1 ? "" : "s", layer->groups > 1 ? " in each group" : "",
                                     m);
  }
  if (rules->all_sizes) return NULL;
  bool padded = rules->padding && is_gemm_or_matmul(&analysis->graph->nodes[layer->node]);
  layer->odd_size = (in % step_in && !padded) || out % TENSOR_CORE_OUT;
  if (in % step_in && !padded) {
    return laci_analysis_format_text(analysis, "%" PRId64 " input channels%s, not a multiple of %d",
                                     in, layer->groups > 1 ? " in each group" : "", step_in);
  }
  if (out % TENSOR_CORE_OUT) {
    return laci_analysis_format_text(
        analysis, "%" PRId64 " output channel%s%s, not a multiple of %d", out, laci_plural(out),
        layer->groups > 1 ? " in each group" : "", TENSOR_CORE_OUT);
  }
  return NULL;
}

/* Returns the reason of the first target that does not accept the layer, or NULL. */
static const char *find_target_objection(laci_analysis *analysis, const laci_layer *layer,
                                         const laci_rules *rules) {
  laci_target_layer seen;
  laci_target_answer answer;
  laci_analysis_describe_target_layer(analysis, (int)(layer - analysis->layers), &seen);
  for (int t = 0; t < rules->n_targets; t++) {
    laci_target_predict_answer(&rules->targets[t], &seen, rules->pattern, &answer);
    if (answer.answer == LAC_TARGET_TAKEN) continue;
    return laci_analysis_format_text(analysis, "%s: %s", rules->targets[t].name, answer.reason);
  }
  return NULL;
}

/* Returns the layer of the node whose weight is that stored tensor, or else the node's last layer;
 * -1: the node has no layer. Layers of one node are adjacent in the list. */
static int find_layer_of_node(const laci_analysis *analysis, int node, int stored) {
  int last = analysis->layer_of_node[node];
  for (int l = last; l >= 0 && analysis->layers[l].node == node; l--) {
    if (analysis->layers[l].stored == stored) return l;
  }
  return last;
}

static double read_zero_point(const laci_weight_view *view, int64_t k) {
  return view->zero && view->n_scales ? view->zero[k] : 0;
}

static bool has_single_zero_point(const laci_weight_view *view) {
  for (int64_t k = 1; view->zero && k < view->n_scales; k++) {
    if (!(view->zero[k] == view->zero[0])) return false;
  }
  return true;
}

/* Do both weights have equal zero points? A masked element, which is one integer, is then 0 in
 * both. */
static bool has_equal_zero_points(const laci_weight_view *a, const laci_weight_view *b) {
  if (has_single_zero_point(a) && has_single_zero_point(b))
    return read_zero_point(a, 0) == read_zero_point(b, 0);
  if (a->n_scales != b->n_scales || a->scale_stride != b->scale_stride ||
      a->scale_block != b->scale_block || a->scale_size != b->scale_size)
    return false;
  for (int64_t k = 0; k < a->n_scales; k++) {
    if (!(read_zero_point(a, k) == read_zero_point(b, k))) return false;
  }
  return true;
}

static int count_reads_of_value(const laci_node *node, int value) {
  int n = 0;
  for (int i = 0; i < node->n_inputs; i++) n += node->inputs[i] == value;
  /* a read by a node's body (a capture) counts twice, so that it never counts as the only read */
  for (int i = 0; i < node->n_captures; i++) n += 2 * (node->captures[i] == value);
  return n;
}

/* Does the node quantize the value, or pass its integers on to a DequantizeLinear? */
static bool is_step_of_quantization(const laci_graph *graph, const laci_node *node, int value) {
  if (node->n_inputs < 1 || node->inputs[0] != value) return false;
  if (laci_node_is(node, "QuantizeLinear") || laci_is_clip_of_integers(graph, node)) return true;
  return laci_is_quantized_integer(graph, value) && laci_is_copy(graph, node);
}

/* Checks all readers of the values between the stored tensor and this layer: each must be a layer
 * with the same tensor, or a node on the path to one. Returns the reason if not. */
static const char *find_reader_objection(laci_analysis *analysis, const laci_layer *layer,
                                         int value, int depth) {
  const laci_value *v = &analysis->graph->values[value];
  const char *name = analysis->graph->stored[layer->stored].name;
  if (v->is_output && strcmp(v->name, name) == 0)
    return laci_analysis_format_text(analysis, "its weight %s is an output of the network", name);
  if (v->is_output)
    return laci_analysis_format_text(
        analysis, "its weight %s makes %s, which is an output of the network", name, v->name);
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *reader = &analysis->graph->nodes[v->readers[i]];
    if (!laci_node_reads_content(analysis->graph, analysis->tracks->matters, v->readers[i], value))
      continue;
    int other = find_layer_of_node(analysis, v->readers[i], layer->stored);
    bool as_weight = other >= 0 && analysis->layers[other].stored == layer->stored &&
                     count_reads_of_value(reader, value) == 1;
    if (as_weight) {
      const laci_layer *o = &analysis->layers[other];
      if (!has_equal_zero_points(&o->view, &layer->view)) {
        return laci_analysis_format_text(
            analysis, "its weight %s is shared with %s, which has another zero point", name,
            reader->name);
      }
      if (o->reason && o != layer) {
        return laci_analysis_format_text(analysis,
                                         "its weight %s is shared with %s, which is not pruned: %s",
                                         name, reader->name, o->reason);
      }
      if (o->c_axis != layer->c_axis || o->view.run != layer->view.run) {
        return laci_analysis_format_text(
            analysis, "its weight %s is shared with %s, which reduces over another axis", name,
            reader->name);
      }
      continue;
    }
    laci_weight_source source;
    bool quantizes = is_step_of_quantization(analysis->graph, reader, value);
    bool step = other < 0 && depth < 16 && reader->n_outputs == 1 && reader->outputs[0] >= 0 &&
                count_reads_of_value(reader, value) == 1 &&
                (quantizes || (laci_trace_weight(analysis->graph, reader->outputs[0], &source) &&
                               source.stored == layer->stored));
    if (!step) {
      return laci_analysis_format_text(
          analysis, "its weight %s is also read by %s (%s), which needs it whole", name,
          reader->name, reader->type);
    }
    const char *reason = find_reader_objection(analysis, layer, reader->outputs[0], depth + 1);
    if (reason) return reason;
  }
  return NULL;
}

/* Extends reasons to all layers that share a tensor: if one reader prevents pruning, none of them
 * is pruned. */
static void spread_reasons_to_sharing_layers(laci_analysis *analysis) {
  for (bool changed = true; changed;) {
    changed = false;
    for (int l = 0; l < analysis->n_layers; l++) {
      laci_layer *layer = &analysis->layers[l];
      if (layer->reason) continue;
      int value = layer->gain >= 0 ? layer->product : analysis->graph->stored[layer->stored].value;
      layer->reason = find_reader_objection(analysis, layer, value, 0);
      changed |= layer->reason != NULL;
    }
  }
}

lac_status laci_decide_layer_eligibility(laci_analysis *analysis, const laci_rules *rules,
                                         lac_error *err) {
  for (int l = 0; l < analysis->n_layers; l++) {
    laci_layer *layer = &analysis->layers[l];
    if (!layer->reason && !can_mask_dtype(layer->view.dtype)) {
      layer->reason = laci_analysis_format_text(analysis, "weights of type %s cannot be pruned",
                                                lac_dtype_name(layer->view.dtype));
    }
    if (!layer->reason && !rules->recurrent && is_recurrent_layer(analysis, layer))
      layer->reason =
          laci_analysis_format_text(analysis, "recurrent: only with the option recurrent");
    if (!layer->reason) layer->reason = find_size_objection(analysis, layer, rules);
    if (layer->reason) continue;
    layer->reason = find_target_objection(analysis, layer, rules);
    layer->declined = layer->reason != NULL;
  }
  lac_status st = laci_exclude_layers_by_names(analysis, rules, err);
  if (st) return st;
  spread_reasons_to_sharing_layers(analysis);
  for (int l = 0; l < analysis->n_layers; l++)
    analysis->layers[l].eligible = !analysis->layers[l].reason;
  return LAC_OK;
}

lac_status laci_analysis_check_targets(const laci_analysis *analysis, lac_error *err) {
  int n_declined = 0;
  const char *refusal = NULL;
  for (int l = 0; l < analysis->n_layers; l++) {
    const laci_layer *layer = &analysis->layers[l];
    if (layer->eligible) return LAC_OK;
    n_declined += layer->declined;
    if (!refusal && layer->declined) refusal = layer->reason;
  }
  if (!refusal) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT,
                   "the target takes none of %d layer%s; the first is left out by %s", n_declined,
                   laci_plural(n_declined), refusal);
}
