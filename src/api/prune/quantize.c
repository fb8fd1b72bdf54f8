/* SPDX-License-Identifier: Apache-2.0
 * Passes lac_quantization to src/quantize, and its results to model and report. */
#include "api/prune/quantize_in.h"

#include <string.h>

#include "api/model/model_in.h"
#include "api/prune/calibration_in.h"
#include "api/prune/job_in.h"
#include "api/prune/report_in.h"
#include "base/error.h"
#include "base/min.h"
#include "lacuna/prune.h"
#include "lacuna/quantization.h"
#include "onnx/edit.h"
#include "prune/prune.h"
#include "quantize/quantize.h"

static const char *const rules[] = {[LACI_RANGE_PERCENTILE] = "percentile",
                                    [LACI_RANGE_MSE] = "mse",
                                    [LACI_RANGE_MINMAX] = "minmax"};
static const char *const forms[] = {
    [LACI_QUANTIZE_QDQ] = "qdq-int8", [LACI_QUANTIZE_DYNAMIC] = "dynamic-int8"};
enum { N_RULES = sizeof rules / sizeof *rules, N_FORMS = sizeof forms / sizeof *forms };

static int find_form(const lac_quantization *q) {
  const char *name = q->format ? q->format : forms[LACI_QUANTIZE_QDQ];
  int form = 0;
  while (form < N_FORMS && strcmp(forms[form], name) != 0) form++;
  return form;
}

static bool is_dynamic(const lac_quantization *q) { return find_form(q) == LACI_QUANTIZE_DYNAMIC; }

static int find_range_rule(const lac_quantization *q) {
  const char *name = q->range ? q->range : rules[LACI_RANGE_MSE];
  int rule = 0;
  while (rule < N_RULES && strcmp(rules[rule], name) != 0) rule++;
  return rule;
}

lac_status laci_check_quantization(const lac_model *model, const lac_options *options,
                                   lac_error *err) {
  const lac_quantization *q = options->quantization;
  if (!q) return LAC_OK;
  if (find_form(q) == N_FORMS)
    return laci_fail(err, LAC_BAD_ARGUMENT, "quantization to %s: wanted qdq-int8 or dynamic-int8",
                     q->format);
  if (is_dynamic(q) && q->is_signed)
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "activations of int8 with dynamic-int8: wanted uint8, which "
                     "DynamicQuantizeLinear makes of them");
  if (find_range_rule(q) == N_RULES)
    return laci_fail(err, LAC_BAD_ARGUMENT,
                     "range of activations %s: wanted percentile, mse or minmax", q->range);
  if (!options->calibration && !is_dynamic(q))
    return laci_hint(err, LAC_HINT_CALIBRATION,
                     laci_fail(err, LAC_BAD_ARGUMENT,
                               "quantization looks at inputs of the network, and there are none"));
  if (!model->file || model->packed)
    return laci_fail(err, LAC_UNSUPPORTED, "%s: what is quantized comes from an ONNX file",
                     model->path);
  return laci_quantize_check(model->graph, model->file, (laci_quantize_form)find_form(q), err);
}

static bool add_quantized_layers(laci_report *report, const laci_quantization *from,
                                 lac_quantization_result *to) {
  lac_quantized_layer *layers =
      laci_arena_alloc(&report->arena, (size_t)from->n_layers + 1, sizeof *layers);
  lac_quantized_correction *corrections =
      laci_arena_alloc(&report->arena, (size_t)from->n_layers + 1, sizeof *corrections);
  bool ok = layers && corrections;
  for (int l = 0; l < from->n_layers && ok; l++) {
    const laci_quantized_layer *layer = &from->layers[l];
    layers[l] = (lac_quantized_layer){
        .name = laci_arena_text(&report->arena, layer->name),
        .op = laci_arena_text(&report->arena, layer->op),
        .weight = layer->weight ? laci_arena_text(&report->arena, layer->weight) : NULL,
        .input = layer->input ? laci_arena_text(&report->arena, layer->input) : NULL,
        .reason = layer->reason,
        .norm_folded = layer->norm_folded,
        .bias = layer->bias,
        .scale_low = layer->scale_low,
        .scale_high = layer->scale_high,
        .weight_error = layer->weight_error};
    corrections[l] = (lac_quantized_correction){.weight = layer->weight_fitted,
                                                .bias = layer->bias_corrected,
                                                .error_before = layer->output_error_before,
                                                .error_after = layer->output_error};
    ok = layers[l].name && layers[l].op && (layers[l].weight || !layer->weight) &&
         (layers[l].input || !layer->input);
  }
  to->layers = layers;
  to->corrections = corrections;
  return ok;
}

static bool add_quantized_values(laci_report *report, const laci_quantization *from,
                                 lac_quantization_result *to) {
  lac_quantized_value *values =
      laci_arena_alloc(&report->arena, (size_t)from->n_values + 1, sizeof *values);
  bool ok = values != NULL;
  for (int v = 0; v < from->n_values && ok; v++) {
    const laci_quantized_value *value = &from->values[v];
    values[v] = (lac_quantized_value){.name = laci_arena_text(&report->arena, value->name),
                                      .low = value->quantizer.low,
                                      .high = value->quantizer.high,
                                      .scale = (double)value->quantizer.scale,
                                      .zero_point = value->quantizer.zero,
                                      .error = value->quantizer.error};
    ok = values[v].name != NULL;
  }
  to->values = values;
  return ok;
}

static lac_status add_to_report(laci_report *report, const lac_quantization *options,
                                const laci_quantization *from, lac_error *err) {
  const laci_output_difference *outputs = &from->outputs;
  lac_quantization_result *to = laci_arena_alloc(&report->arena, 1, sizeof *to);
  if (!to) return laci_fail_memory(err, "the report");
  *to = (lac_quantization_result){
      .format = forms[find_form(options)],
      .range = is_dynamic(options) ? NULL : rules[find_range_rule(options)],
      .activations = options->is_signed ? "int8" : "uint8",
      .samples = from->n_fitted,
      .held_back = from->n_held_back,
      .n_layers = from->n_layers,
      .n_quantized = from->n_quantized,
      .n_values = from->n_values,
      .n_corrected = from->n_corrected,
      .outputs_error = outputs->relative,
      .answers = outputs->n_answers,
      .agreement = laci_percent_of(outputs->n_agree, outputs->n_answers),
      .agreement_least = laci_agreement_lower_bound(outputs, from->n_held_back),
      .labelled = outputs->n_labelled,
      .top1_floats = laci_percent_of(outputs->n_right_a, outputs->n_labelled),
      .top1_integers = laci_percent_of(outputs->n_right_b, outputs->n_labelled)};
  if (from->outputs_reason) {
    to->outputs_reason = laci_arena_text(&report->arena, from->outputs_reason);
    if (!to->outputs_reason) return laci_fail_memory(err, "the report");
  }
  if (!add_quantized_layers(report, from, to) || !add_quantized_values(report, from, to))
    return laci_fail_memory(err, "the report");
  report->pub.quantization = to;
  return LAC_OK;
}

/* ---- The limit of the loss ---- */

/* Measures the loss of the quantized network from the network that was given, pruning included, on
 * samples that neither fits nor ranges have read. */
static lac_status measure_quantized_loss(const void *context, const laci_weighted_graph *quantized,
                                         double *loss, lac_error *err) {
  enum { BATCH = 32 };
  const laci_quantize_source *source = context;
  const laci_calibration_samples *samples = &source->samples->list;
  const laci_weighted_graph dense = {source->model->graph, NULL};
  const int64_t fixed = laci_calibration_required_batch(dense.graph, samples);
  const int64_t batch = fixed > 0 ? fixed : laci_min(BATCH, samples->judging);
  const laci_compare_options how = {.first = samples->count,
                                    .n = samples->judging / batch * batch,
                                    .batch = batch,
                                    .pool = source->job->pool,
                                    .budget = &source->job->budget};
  laci_output_difference difference;
  laci_judged_drop drop;
  lac_status st = laci_compare_outputs(&dense, quantized, samples, &how, &difference, err);
  if (st) return st;
  if (difference.doubt)
    return laci_fail(err, LAC_BAD_VALUE, "a loss cannot be judged: %s", difference.doubt);
  laci_drop_compute_bound(&difference, &drop);
  *loss = drop.most;
  return LAC_OK;
}

lac_status laci_quantize_model(const laci_quantize_source *source, laci_report *report,
                               laci_quantization **made, lac_error *err) {
  const lac_model *model = source->model;
  const lac_quantization *options = source->options->quantization;
  *made = NULL;
  if (!options) return LAC_OK;
  const laci_weighted_graph from = {model->graph, (const uint8_t *const *)source->pruning->weights};
  const bool has_samples = source->samples->samples != NULL;
  const laci_quantize_limit limit = {source->samples->calibration.max_drop, measure_quantized_loss,
                                     source};
  const laci_quantize_options how = {.form = (laci_quantize_form)find_form(options),
                                     .rule = (laci_range_rule)find_range_rule(options),
                                     .is_signed = options->is_signed,
                                     .samples = has_samples ? &source->samples->list : NULL,
                                     .limit = has_samples && limit.most >= 0 ? &limit : NULL,
                                     .pool = source->job->pool,
                                     .budget = &source->job->budget};
  lac_status st = laci_quantize(&from, model->file, &how, made, err);
  if (!st) st = laci_job_infer_graph((*made)->graph, source->options, err);
  if (!st) st = add_to_report(report, options, *made, err);
  if (!st) return LAC_OK;
  laci_quantization_destroy(*made);
  *made = NULL;
  return st;
}

void laci_quantized_commit(lac_model *model, laci_quantization *made) {
  if (!made) return;
  laci_model_replace_graph(model, made->graph, true);
  laci_onnx_edit_keep(made->edit);
  made->graph = NULL;
  made->edit = NULL;
  laci_quantization_destroy(made);
}
