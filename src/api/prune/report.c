/* SPDX-License-Identifier: Apache-2.0
 * Converts an analysis and the result of pruning to the plain data of a report. */

#include <stdio.h>
#include <string.h>

#include "analyze/analyze.h"
#include "api/model/model_in.h"
#include "api/prune/job_in.h"
#include "api/prune/report_in.h"
#include "api/prune/rule_in.h"
#include "base/error.h"
#include "base/spill.h"
#include "graph/graph.h"
#include "lacuna/prune.h"
#include "permute/file.h"
#include "permute/orders.h"
#include "permute/plan.h"
#include "permute/search.h"
#include "verify/verify.h"
#include "prune/prune.h"
#include "tensor/shape.h"

static const char *copy_text(laci_report *report, const char *text, bool *ok) {
  if (!text) return NULL;
  const char *copy = laci_arena_text(&report->arena, text);
  *ok &= copy != NULL;
  return copy;
}

static bool fill_layer(laci_report *report, const lac_model *model, const laci_analysis *a, int l) {
  const laci_layer *from = &a->layers[l];
  const laci_stored *stored = from->stored < 0 ? NULL : &a->graph->stored[from->stored];
  const laci_value *value = &a->graph->values[from->weight];
  const laci_shape *shape = stored ? &stored->shape : &value->type.shape;
  const bool known = laci_shape_is_known(shape) && !from->packed;
  lac_layer *to = &report->layers[l];
  bool ok = true;
  *to = (lac_layer){.name = copy_text(report, a->graph->nodes[from->node].name, &ok),
                    .op = copy_text(report, a->graph->nodes[from->node].type, &ok),
                    .weight = copy_text(report, stored ? stored->name : value->name, &ok),
                    .dtype = stored ? stored->dtype : value->type.dtype,
                    .rank = known ? shape->rank : 0,
                    .channels_in = from->channels_in,
                    .channels_out = from->channels_out,
                    .convolution_groups = from->groups,
                    .c_axis = from->c_axis,
                    .k_axis = from->k_axis,
                    .computed = !stored,
                    .storable = !stored && from->storable,
                    .folded = stored && laci_model_is_tensor_folded(model, stored->name),
                    .eligible = from->eligible,
                    .searchable = from->searchable,
                    .permutable_c = from->searchable,
                    .permutable_k = from->group_k >= 0 && !a->groups[from->group_k].frozen,
                    .group_c = from->group_c < 0 ? -1 : from->group_c + 1,
                    .group_k = from->group_k < 0 ? -1 : from->group_k + 1,
                    .n_elements = known ? laci_shape_count(shape) : 0,
                    .reason = copy_text(report, from->reason, &ok)};
  for (int d = 0; d < to->rank; d++) to->shape[d] = shape->dims[d];
  return ok;
}

static const char *const *copy_layer_names(laci_report *report, const int *layers, int n,
                                           bool *ok) {
  const char **names = laci_arena_alloc(&report->arena, (size_t)n, sizeof *names);
  *ok &= names != NULL;
  for (int i = 0; names && i < n; i++) names[i] = report->layers[layers[i]].name;
  return names;
}

static bool fill_group(laci_report *report, const laci_analysis *a, int g) {
  const laci_group *from = &a->groups[g];
  bool ok = true;
  lac_group *to = &report->groups[g];
  *to = (lac_group){.id = g + 1,
                    .channels = from->n_channels,
                    .n_consumers = from->n_layers,
                    .n_producers = from->n_producers,
                    .frozen = from->frozen,
                    .cause = copy_text(report, from->cause, &ok)};
  to->consumers = copy_layer_names(report, from->layers, from->n_layers, &ok);
  to->producers = copy_layer_names(report, from->producers, from->n_producers, &ok);
  return ok;
}

/* Copies the names of pattern, mask and score, since the caller's texts may be freed before the
 * report is. */
static bool copy_rule_names(laci_report *report, const lac_options *options, bool prunes) {
  char text[LACI_PATTERN_TEXT];
  bool ok = true;
  report->pub.pattern = copy_text(report, laci_pattern_text(options, text), &ok);
  if (!prunes) return ok;
  report->pub.mask = copy_text(report, options->mask ? options->mask : "1d", &ok);
  if (!options->calibration)
    report->pub.score = copy_text(report, options->score ? options->score : "magnitude", &ok);
  return ok;
}

lac_status laci_report_create(const lac_model *model, const char *verb, const lac_options *options,
                              const laci_analysis *a, laci_report **out, lac_error *err) {
  *out = NULL;
  laci_report *report = laci_alloc(1, sizeof *report);
  if (!report) return laci_fail_memory(err, "the report");
  report->layers = laci_alloc((size_t)a->n_rows, sizeof *report->layers);
  report->groups = laci_alloc((size_t)a->n_groups, sizeof *report->groups);
  report->masks = laci_alloc((size_t)a->n_layers, sizeof *report->masks);
  report->orders = laci_alloc((size_t)a->graph->n_stored * LACI_MAX_RANK, sizeof *report->orders);
  bool ok = report->layers && report->groups && report->masks && report->orders;
  report->pub = (lac_report){.verb = verb,
                             .pattern_n = options->n,
                             .pattern_m = options->m,
                             .pattern_v = options->v,
                             .seed = options->seed,
                             .n_layers = a->n_rows,
                             .n_groups = a->n_groups,
                             .layers = report->layers,
                             .groups = report->groups};
  report->pub.model = copy_text(report, model->path, &ok);
  ok = ok && copy_rule_names(report, options, strcmp(verb, "prune") == 0);
  report->pub.summary.groups = a->n_searchable;
  report->pub.summary.folded = model->n_folded;
  for (int l = 0; ok && l < a->n_rows; l++) ok = fill_layer(report, model, a, l);
  for (int g = 0; ok && g < a->n_groups; g++) ok = fill_group(report, a, g);
  if (ok) {
    *out = report;
    return LAC_OK;
  }
  lac_report_destroy(&report->pub);
  return laci_fail_memory(err, "the report");
}

lac_status laci_report_set_uncalibrated(laci_report *report, const char *reason, lac_error *err) {
  if (!reason[0]) return LAC_OK;
  report->pub.uncalibrated = laci_arena_text(&report->arena, reason);
  return report->pub.uncalibrated ? LAC_OK : laci_fail_memory(err, "the report");
}

/* ---- Adding the results of a pruning ---- */

static bool add_layer_figures(laci_report *report, const laci_pruning *p, int l) {
  const laci_pruned_layer *from = &p->layers[l];
  lac_layer *to = &report->layers[l];
  bool ok = true;
  to->kept_identity = from->kept_identity;
  to->kept = from->kept;
  to->total = from->total;
  to->n_zeros = from->n_zeros;
  to->n_elements = from->n_elements;
  to->zero_ratio = from->n_elements ? (double)from->n_zeros / (double)from->n_elements : 0;
  to->holds_pattern = from->holds_pattern;
  to->holds_pattern_both = from->holds_pattern && from->holds_rows;
  if (p->scores && p->analysis->layers[l].eligible) {
    to->score_kept = from->score_kept;
    to->score_total = from->score_total;
  }
  to->was_pruned = from->was_pruned;
  to->pruned = from->is_pruned;
  to->measured = from->measured;
  to->searchable = to->permutable_c = from->searchable;
  to->permutable_k = to->permutable_k && !p->plan->fixed[to->group_k - 1];
  if (from->reason != p->analysis->layers[l].reason)
    to->reason = copy_text(report, from->reason, &ok);
  return ok;
}

lac_status laci_report_add_layer_figures(laci_report *report, const laci_pruning *p,
                                         lac_error *err) {
  bool ok = true;
  for (int l = 0; ok && l < p->analysis->n_layers; l++) ok = add_layer_figures(report, p, l);
  for (int g = 0; ok && g < report->pub.n_groups; g++) {
    if (!p->plan->fixed[g]) continue;
    report->groups[g].frozen = true;
    report->groups[g].cause = copy_text(report, p->held_cause[g], &ok);
    report->pub.summary.groups--;
  }
  return ok ? LAC_OK : laci_fail_memory(err, "the report");
}

lac_status laci_report_measure_weights(laci_report *report, const laci_job *job,
                                       const lac_options *options, lac_error *err) {
  laci_pruning *found = NULL;
  const laci_mask_rule rule = laci_mask_rule_of(options);
  lac_status st = laci_pruning_create(job->analysis, rule.pattern, &found, err);
  if (!st) found->rule = rule;
  if (!st) st = laci_pruning_measure_layers(found, job->pool, err);
  if (!st) st = laci_report_add_layer_figures(report, found, err);
  laci_pruning_destroy(found);
  if (st) return st;
  for (int l = 0; l < report->pub.n_layers; l++) {
    report->layers[l].pruned = report->layers[l].was_pruned;
  }
  laci_report_compute_sums(report);
  return LAC_OK;
}

static void add_permuted_axes(lac_layer *to, const laci_layer *from,
                              const laci_value_orders *orders) {
  for (int i = 0; i < orders->n; i++) {
    const laci_axis_order *order = &orders->items[i];
    laci_value_orders one = {.n = 1, .items = &orders->items[i]};
    if (laci_orders_are_identity(&one)) continue;
    to->permuted_c |= order->axes[0] == from->c_axis;
    to->permuted_k |= order->axes[0] == from->k_axis;
  }
}

/* Adds the order of one axis of a stored tensor. */
static bool add_order(laci_report *report, const laci_stored *stored, const laci_axis_order *from) {
  laci_report_order *to = &report->orders[report->n_orders];
  *to = (laci_report_order){
      .tensor = laci_arena_text(&report->arena, stored->name),
      .axis = from->axes[0],
      .count = from->count,
      .order = laci_arena_alloc(&report->arena, (size_t)from->count, sizeof *to->order)};
  if (!to->tensor || !to->order) return false;
  memcpy(to->order, from->order, (size_t)from->count * sizeof *to->order);
  if (from->n_groups > 0) { /* indices within the convolution group */
    int64_t size = from->count / from->n_groups;
    for (int64_t p = 0; p < from->count; p++)
      to->order[p] = (int32_t)(to->order[p] - p / size * size);
  }
  report->n_orders++;
  return true;
}

lac_status laci_report_add_orders(laci_report *report, const laci_pruning *p, lac_error *err) {
  const laci_analysis *a = p->analysis;
  bool ok = true;
  for (int l = 0; l < report->pub.n_layers && l < a->n_layers; l++) {
    const laci_stored *stored = &a->graph->stored[a->layers[l].stored];
    add_permuted_axes(&report->layers[l], &a->layers[l], &p->plan->orders.values[stored->value]);
  }
  for (int s = 0; ok && s < a->graph->n_stored; s++) {
    const laci_stored *stored = &a->graph->stored[s];
    const laci_value_orders *orders = &p->plan->orders.values[stored->value];
    for (int i = 0; ok && i < orders->n; i++) ok = add_order(report, stored, &orders->items[i]);
  }
  if (!ok) return laci_fail_memory(err, "the report");
  return laci_permutation_text(p->plan, p->pattern, report->pub.seed, &report->permutation, err);
}

static const lac_verification_state states[] = {[LACI_VERIFY_NONE] = LAC_VERIFICATION_NONE,
                                                [LACI_VERIFY_ALL] = LAC_VERIFIED,
                                                [LACI_VERIFY_PART] = LAC_VERIFIED_IN_PART,
                                                [LACI_VERIFY_NOTHING] = LAC_NOT_VERIFIED};

lac_status laci_report_add_verification(laci_report *report, const laci_pruning *p,
                                        lac_error *err) {
  const laci_verification *found = &p->verification.found;
  lac_summary *summary = &report->pub.summary;
  bool ok = true;
  summary->verified = p->verification.verified;
  summary->proof_seconds = p->verification.seconds;
  summary->max_abs_error = found->max_abs_error;
  summary->max_abs_output = found->max_abs_output;
  summary->worst_ratio = found->worst_ratio;
  summary->values_compared = found->n_compared;
  summary->values_skipped = found->n_skipped;
  summary->proof_engine = found->engine;
  summary->outputs = found->n_outputs;
  summary->outputs_compared = found->n_outputs_compared;
  summary->verification = states[found->state];
  char said[LACI_VERIFICATION_TEXT_SIZE];
  laci_verification_text(&p->verification, said);
  if (said[0]) summary->verification_text = copy_text(report, said, &ok);
  if (found->reason[0]) summary->skipped_reason = copy_text(report, found->reason, &ok);
  if (found->first_skipped) summary->reached = copy_text(report, found->first_skipped, &ok);
  return ok ? LAC_OK : laci_fail_memory(err, "the report");
}

static bool add_group_result(laci_report *report, const laci_pruning *p, int g) {
  const laci_group *from = &p->analysis->groups[g];
  const laci_search_result *found = &p->plan->found[g];
  lac_group *to = &report->groups[g];
  bool ok = true;
  if (from->frozen || p->plan->fixed[g]) return true;
  int32_t *order = laci_arena_alloc(&report->arena, (size_t)from->n_channels, sizeof *order);
  if (!order) return false;
  memcpy(order, found->order, (size_t)from->n_channels * sizeof *order);
  to->permutation = order;
  to->kept_identity = found->kept_identity;
  to->kept = found->kept;
  to->upper_bound = found->upper;
  to->efficacy = laci_search_result_efficacy(found);
  to->strategy = copy_text(report, found->strategy, &ok);
  to->iterations = found->iterations;
  to->proven = found->proven;
  return ok;
}

/* Moves a mask's bits to the report; copies its tensor's name. */
static bool move_mask_to_report(laci_report *report, const laci_pruning *p,
                                laci_pruned_mask *mask) {
  const char *name = laci_arena_text(&report->arena, p->analysis->graph->stored[mask->stored].name);
  report->masks[report->n_masks++] = (laci_report_mask){
      .tensor = name, .count = mask->count, .bits = mask->bits, .spilled = mask->spilled};
  mask->bits = NULL;
  return name != NULL;
}

lac_status laci_report_add_pruning(laci_report *report, laci_pruning *p, lac_error *err) {
  lac_status st = laci_report_add_layer_figures(report, p, err);
  if (!st) st = laci_report_add_verification(report, p, err);
  if (!st) st = laci_report_add_orders(report, p, err);
  bool ok = true;
  for (int g = 0; !st && ok && g < report->pub.n_groups; g++) ok = add_group_result(report, p, g);
  report->masks_spill = p->masks_spill;
  p->masks_spill = NULL;
  for (int k = 0; !st && ok && k < p->n_masks; k++)
    ok = move_mask_to_report(report, p, &p->masks[k]);
  if (!ok) st = laci_fail_memory(err, "the report");
  if (st) return st;
  report->pub.summary.interrupted = p->interrupted;
  report->pub.summary.search_seconds = p->search_seconds;
  report->pub.corrected = p->n_corrected;
  laci_report_compute_sums(report);
  return LAC_OK;
}

void laci_report_compute_sums(laci_report *report) {
  lac_summary *sum = &report->pub.summary;
  sum->layers = report->pub.n_layers;
  sum->eligible = sum->permuted = sum->reordered = sum->pruned = 0;
  sum->kept_before = sum->kept_after = 0;
  for (int l = 0; l < report->pub.n_layers; l++) {
    const lac_layer *layer = &report->layers[l];
    sum->eligible += layer->eligible;
    sum->permuted += layer->eligible && layer->searchable;
    sum->reordered += layer->eligible && layer->permuted_c;
    sum->pruned += layer->pruned;
    if (!layer->eligible) continue;
    sum->kept_before += layer->kept_identity;
    sum->kept_after += layer->kept;
  }
}

void lac_report_destroy(lac_report *pub) {
  if (!pub) return;
  laci_report *report = (laci_report *)pub;
  laci_free(report->layers);
  laci_free(report->groups);
  for (size_t k = 0; k < report->n_masks; k++) {
    if (!report->masks[k].spilled) laci_free(report->masks[k].bits);
  }
  laci_spill_destroy(report->masks_spill);
  laci_free(report->masks);
  laci_free(report->orders);
  laci_free(report->permutation);
  laci_report_clear_plan(report);
  laci_arena_clear(&report->arena);
  laci_free(report);
}

void lac_text_free(char *text) { laci_free(text); }

lac_status lac_report_order(const lac_report *pub, const char *tensor, int axis, int32_t *order,
                            size_t count, lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"report", pub}, {"tensor", tensor}, {"order", order});
  if (st) return st;
  const laci_report *report = (const laci_report *)pub;
  for (size_t i = 0; i < report->n_orders; i++) {
    const laci_report_order *one = &report->orders[i];
    if (strcmp(one->tensor, tensor) != 0 || one->axis != axis) continue;
    if ((size_t)one->count != count) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s axis %d: room for %zu indices, wanted %lld",
                       tensor, axis, count, (long long)one->count);
    }
    memcpy(order, one->order, count * sizeof *order);
    return LAC_OK;
  }
  for (int l = 0; l < pub->n_layers; l++) {
    if (strcmp(pub->layers[l].weight, tensor) != 0 || axis < 0 || axis >= pub->layers[l].rank)
      continue;
    int64_t size = pub->layers[l].shape[axis];
    for (size_t k = 0; k < count && size > 0; k++) order[k] = (int32_t)((int64_t)k % size);
    return LAC_OK;
  }
  return laci_fail(err, LAC_NOT_FOUND, "%s axis %d: not a layer's weight, and not reordered",
                   tensor, axis);
}

lac_status lac_report_mask(const lac_report *pub, const char *tensor, uint8_t *mask, size_t count,
                           lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"report", pub}, {"tensor", tensor}, {"mask", mask});
  if (st) return st;
  const laci_report *report = (const laci_report *)pub;
  for (size_t i = 0; i < report->n_masks; i++) {
    const laci_report_mask *one = &report->masks[i];
    if (strcmp(one->tensor, tensor) != 0) continue;
    if ((size_t)one->count != count) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: room for %zu elements, wanted %lld", tensor,
                       count, (long long)one->count);
    }
    for (size_t e = 0; e < count; e++) mask[e] = one->bits[e / 8] >> (e % 8) & 1;
    return LAC_OK;
  }
  return laci_fail(err, LAC_NOT_FOUND, "%s: this tensor was not pruned", tensor);
}
