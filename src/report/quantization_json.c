/* SPDX-License-Identifier: Apache-2.0
 * Writes the part of a JSON report that is about quantization. */
#include "lacuna/quantization.h"
#include "report/json_in.h"

static json_t *quantized_layer_json(laci_json_writer *w, const lac_quantized_layer *layer,
                                    const lac_quantized_correction *correction) {
  json_t *object = json_object();
  const bool is_quantized = !layer->reason, measured = correction->error_before > 0;
  laci_json_add(w, object, "name", laci_json_text(w, layer->name));
  laci_json_add(w, object, "op", laci_json_text(w, layer->op));
  laci_json_add(w, object, "weight", laci_json_text(w, layer->weight));
  laci_json_add(w, object, "input", laci_json_text(w, layer->input));
  laci_json_add(w, object, "quantised", json_boolean(is_quantized));
  laci_json_add(w, object, "norm_folded", json_boolean(layer->norm_folded));
  laci_json_add(w, object, "bias", json_boolean(layer->bias));
  laci_json_add(w, object, "scale_low",
                is_quantized ? laci_json_number(layer->scale_low) : json_null());
  laci_json_add(w, object, "scale_high",
                is_quantized ? laci_json_number(layer->scale_high) : json_null());
  laci_json_add(w, object, "weight_error",
                is_quantized ? laci_json_number(layer->weight_error) : json_null());
  laci_json_add(w, object, "weight_fitted", json_boolean(correction->weight));
  laci_json_add(w, object, "bias_corrected", json_boolean(correction->bias));
  laci_json_add(w, object, "output_error_before",
                measured ? laci_json_number(correction->error_before) : json_null());
  laci_json_add(w, object, "output_error",
                measured ? laci_json_number(correction->error_after) : json_null());
  laci_json_add(w, object, "reason", laci_json_text(w, layer->reason));
  return object;
}

static json_t *quantized_value_json(laci_json_writer *w, const lac_quantized_value *value) {
  json_t *object = json_object();
  laci_json_add(w, object, "name", laci_json_text(w, value->name));
  laci_json_add(w, object, "low", laci_json_number(value->low));
  laci_json_add(w, object, "high", laci_json_number(value->high));
  laci_json_add(w, object, "scale", laci_json_number(value->scale));
  laci_json_add(w, object, "zero_point", json_integer(value->zero_point));
  laci_json_add(w, object, "error", laci_json_number(value->error));
  return object;
}

json_t *laci_quantization_json(laci_json_writer *w, const lac_quantization_result *q) {
  json_t *object = json_object(), *layers = json_array(), *values = json_array();
  for (int l = 0; l < q->n_layers; l++)
    laci_json_append(w, layers, quantized_layer_json(w, &q->layers[l], &q->corrections[l]));
  for (int v = 0; v < q->n_values; v++)
    laci_json_append(w, values, quantized_value_json(w, &q->values[v]));
  const bool labelled = q->labelled > 0, compared = !q->outputs_reason;
  laci_json_add(w, object, "format", laci_json_text(w, q->format));
  laci_json_add(w, object, "range", laci_json_text(w, q->range));
  laci_json_add(w, object, "activations", laci_json_text(w, q->activations));
  laci_json_add(w, object, "samples", json_integer(q->samples));
  laci_json_add(w, object, "held_back", json_integer(q->held_back));
  laci_json_add(w, object, "corrected", json_integer(q->n_corrected));
  laci_json_add(w, object, "outputs_error",
                compared ? laci_json_number(q->outputs_error) : json_null());
  laci_json_add(w, object, "answers", json_integer(q->answers));
  laci_json_add(w, object, "agreement",
                q->answers > 0 ? laci_json_number(q->agreement) : json_null());
  laci_json_add(w, object, "agreement_least",
                q->agreement_least > 0 ? laci_json_number(q->agreement_least) : json_null());
  laci_json_add(w, object, "labelled", json_integer(q->labelled));
  laci_json_add(w, object, "top1_floats",
                labelled ? laci_json_number(q->top1_floats) : json_null());
  laci_json_add(w, object, "top1_integers",
                labelled ? laci_json_number(q->top1_integers) : json_null());
  laci_json_add(w, object, "reason", laci_json_text(w, q->outputs_reason));
  laci_json_add(w, object, "layers", layers);
  laci_json_add(w, object, "values", values);
  return object;
}
