/* SPDX-License-Identifier: Apache-2.0
 * Compares a layer with the rules of a target (target.h). If the layer satisfies a rule, that rule
 * decides. If it satisfies none, the rule that it comes nearest to gives the reason. If the sources
 * do not state something, this is recorded, and the other checks still run, since the layer may be
 * refused for another reason. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plural.h"
#include "base/words.h"
#include "target/target_in.h"
#include "tensor/buf.h"

enum {
  LOOKS_SPARSE = 25
}; /* a weight counts as sparse if at least this percentage of it is zero; weights that were trained
      but not pruned have fewer zeros */

static int64_t count_kernel_positions(const laci_target_layer *layer) {
  int64_t n = 1;
  for (int axis = 0; axis < layer->rank; axis++) {
    if (axis != layer->k_axis && axis != layer->c_axis) n *= layer->dims[axis];
  }
  return n;
}

static LAC_PRINTF(3, 4) void refuse_layer(laci_target_answer *a, laci_target_fault fault,
                                          const char *format, ...) {
  va_list list;
  va_start(list, format);
  (void)vsnprintf(a->reason, LACI_TARGET_TEXT, format, list);
  va_end(list);
  a->answer = LAC_TARGET_REFUSED;
  a->fault = fault;
}

/* Sets the answer to "not stated by any source", with a reason unless it has one already. A later
 * check may still refuse the layer. */
static LAC_PRINTF(3, 4) void answer_not_stated(laci_target_answer *a, laci_target_fault fault,
                                               const char *format, ...) {
  va_list list;
  if (a->answer == LAC_TARGET_NOT_STATED) return;
  va_start(list, format);
  const int n = vsnprintf(a->reason, LACI_TARGET_TEXT, format, list);
  va_end(list);
  if (n > 0 && n < LACI_TARGET_TEXT)
    (void)snprintf(a->reason + n, (size_t)(LACI_TARGET_TEXT - n), ": not stated");
  a->answer = LAC_TARGET_NOT_STATED;
  a->fault = fault;
}

/* ---- Checks that do not read elements ---- */

static void set_answer_from_stance(laci_target_answer *a, laci_target_stance stance,
                                   laci_target_fault fault, const char *what) {
  if (stance == LACI_TARGET_NO) refuse_layer(a, fault, "%s is not taken", what);
  else if (stance == LACI_TARGET_UNSTATED) answer_not_stated(a, fault, "%s", what);
}

static void check_shape_by_rule(const laci_target_rule *rule, const laci_target_layer *layer,
                                laci_target_answer *a) {
  char what[64];
  const int64_t positions = count_kernel_positions(layer);
  if (rule->least_rank && (layer->rank < rule->least_rank || layer->rank > rule->most_rank)) {
    (void)snprintf(what, sizeof what, "a weight of %d axes", layer->rank);
    set_answer_from_stance(a, rule->other_rank, LACI_FAULT_RANK, what);
  }
  if (a->answer == LAC_TARGET_REFUSED) return;
  if (rule->most_positions && positions > rule->most_positions) {
    refuse_layer(a, LACI_FAULT_WINDOW, "a kernel of %" PRId64 " positions, taken %s at most %d",
                 positions, rule->most_positions == 1 ? "is" : "are", rule->most_positions);
    return;
  }
  if (layer->groups > 1) {
    (void)snprintf(what, sizeof what, "a convolution of %" PRId64 " groups", layer->groups);
    set_answer_from_stance(a, rule->groups, LACI_FAULT_GROUPS, what);
  }
  if (a->answer == LAC_TARGET_REFUSED) return;
  if (rule->unshared && layer->shared_with)
    refuse_layer(a, LACI_FAULT_SHARED, "its weight is also that of %.200s", layer->shared_with);
}

static bool check_channel_multiple(int64_t n, int multiple, const char *which, int64_t groups,
                                   laci_target_answer *a) {
  if (multiple <= 1 || n % multiple == 0) return true;
  refuse_layer(a, LACI_FAULT_SIZE, "%" PRId64 " %s channel%s%s, not a multiple of %d", n, which,
               laci_plural(n), groups > 1 ? " in each group" : "", multiple);
  return false;
}

static void check_layer_by_rule(const laci_target_choice *choice, const laci_target_rule *rule,
                                const laci_target_layer *layer, laci_target_answer *a) {
  const char *type = lac_dtype_name(choice->as ? choice->as : layer->dtype);
  *a = (laci_target_answer){.answer = LAC_TARGET_TAKEN};
  if (!laci_has_word(rule->ops, layer->op, strlen(layer->op))) {
    refuse_layer(a, LACI_FAULT_OPERATOR, "%s is not taken", layer->op);
  } else if (!laci_has_word(rule->types, type, strlen(type))) {
    refuse_layer(a, LACI_FAULT_TYPE, "weights of %s, taken are %s", type, rule->types);
  } else {
    check_shape_by_rule(rule, layer, a);
  }
  if (a->answer == LAC_TARGET_REFUSED) return;
  if (check_channel_multiple(layer->channels_in, rule->in_multiple, "input", layer->groups, a))
    (void)check_channel_multiple(layer->channels_out, rule->out_multiple, "output", layer->groups,
                                 a);
}

/* ---- Checks of the elements ---- */

static void check_mask_by_rule(const laci_target_choice *choice, const laci_target_rule *rule,
                               const laci_target_layer *layer, const laci_target_mask *mask,
                               laci_target_answer *a) {
  char reason[LACI_TARGET_TEXT];
  if (rule->least_zeros && mask->n_zeros * 100 < rule->least_zeros * mask->n) {
    refuse_layer(a, LACI_FAULT_ZEROS, "%.1f %% zeros, taken from %d %% on",
                 100 * (double)mask->n_zeros / (double)mask->n, rule->least_zeros);
    return;
  }
  const laci_target_fault fault = rule->pattern.m
                                      ? laci_target_mask_fault(layer, mask, rule->pattern, reason)
                                      : LACI_FAULT_NONE;
  if (fault) refuse_layer(a, fault, "%s", reason);
  else if (mask->by_zero_point && !choice->target->zero_points)
    refuse_layer(a, LACI_FAULT_ZERO_POINT, "its zeros are stored as a zero point that is not 0");
  else if (!rule->pattern.m && a->answer == LAC_TARGET_TAKEN)
    (void)snprintf(a->reason, LACI_TARGET_TEXT, "%.0f %% zeros",
                   100 * (double)mask->n_zeros / (double)mask->n);
}

/* ---- Choosing the nearest of several rules ---- */

static int rank_of_answer(lac_target_answer answer) {
  return answer == LAC_TARGET_TAKEN ? 2 : answer == LAC_TARGET_NOT_STATED;
}

static bool is_better_answer(const laci_target_answer *a, const laci_target_answer *best) {
  if (rank_of_answer(a->answer) != rank_of_answer(best->answer))
    return rank_of_answer(a->answer) > rank_of_answer(best->answer);
  return a->fault > best->fault;
}

static const laci_target_gain *find_gain(const laci_target_choice *choice,
                                         const laci_target_layer *layer) {
  const laci_target *target = choice->target;
  const char *type = lac_dtype_name(choice->as ? choice->as : layer->dtype);
  for (int g = 0; g < target->n_gains; g++) {
    const laci_target_gain *gain = &target->gains[g];
    if (strcmp(gain->op, layer->op) == 0 && strcmp(gain->type, type) == 0 && layer->groups == 1 &&
        gain->positions == count_kernel_positions(layer) && gain->in == layer->channels_in &&
        gain->out == layer->channels_out)
      return gain;
  }
  return NULL;
}

static lac_target_pays find_if_sparsity_pays(const laci_target_rule *rule,
                                             const laci_target_layer *layer) {
  if (!rule->pays_in) return LAC_TARGET_PAYS_NOT_STATED;
  return layer->channels_in * count_kernel_positions(layer) >= rule->pays_in &&
                 layer->channels_out >= rule->pays_out
             ? LAC_TARGET_PAYS
             : LAC_TARGET_PAYS_NOT;
}

static void add_gain_to_answer(const laci_target_choice *choice, const laci_target_layer *layer,
                               laci_target_answer *a) {
  const laci_target *target = choice->target;
  if (a->answer == LAC_TARGET_REFUSED && a->fault == LACI_FAULT_OPERATOR &&
      laci_has_word(target->unstated, layer->op, strlen(layer->op))) {
    *a = (laci_target_answer){0};
    answer_not_stated(a, LACI_FAULT_OPERATOR, "%s", layer->op);
  }
  if (a->answer != LAC_TARGET_TAKEN) return;
  a->pays = find_if_sparsity_pays(a->rule, layer);
  a->gain = find_gain(choice, layer);
  if (a->rule->by) (void)snprintf(a->reason, LACI_TARGET_TEXT, "by %s", a->rule->by);
  if (a->pays == LAC_TARGET_PAYS_NOT)
    (void)snprintf(a->reason, LACI_TARGET_TEXT,
                   "sparse is said to be faster from %d x %d on (inputs times positions, outputs)",
                   a->rule->pays_in, a->rule->pays_out);
}

/* Compares the layer with all rules. mask NULL: as if it had a mask of this pattern. *best becomes
 * the answer of the rule that it comes nearest to. */
static void answer_from_nearest_rule(const laci_target_choice *choice,
                                     const laci_target_layer *layer, const laci_target_mask *mask,
                                     laci_pattern pattern, laci_target_answer *best) {
  const laci_target *target = choice->target;
  *best = (laci_target_answer){0};
  refuse_layer(best, LACI_FAULT_NEVER, "%s", target->never ? target->never : "");
  for (int r = 0; r < target->n_rules; r++) {
    const laci_target_rule *rule = &target->rules[r];
    laci_target_answer a;
    check_layer_by_rule(choice, rule, layer, &a);
    if (a.answer != LAC_TARGET_REFUSED && mask) check_mask_by_rule(choice, rule, layer, mask, &a);
    if (a.answer != LAC_TARGET_REFUSED && !mask && rule->pattern.m &&
        !laci_target_pattern_implies(pattern, rule->pattern)) {
      refuse_layer(&a, LACI_FAULT_PATTERN, "%d:%d is wanted of %s, which %d:%d does not hold",
                   rule->pattern.n, rule->pattern.m,
                   lac_dtype_name(choice->as ? choice->as : layer->dtype), pattern.n, pattern.m);
    }
    if (a.answer == LAC_TARGET_TAKEN) a.rule = rule;
    if (is_better_answer(&a, best)) *best = a;
  }
  add_gain_to_answer(choice, layer, best);
}

/* Answers for a layer as answer_from_nearest_rule does. If the layer is refused because it is
 * stored in f32, the reason also says whether it would be accepted in f16. */
static void answer_for_layer(const laci_target_choice *choice, const laci_target_layer *layer,
                             const laci_target_mask *mask, laci_pattern pattern,
                             laci_target_answer *a) {
  laci_target_choice cast = *choice;
  laci_target_answer other;
  answer_from_nearest_rule(choice, layer, mask, pattern, a);
  const bool by_type = a->fault == LACI_FAULT_TYPE || a->fault == LACI_FAULT_PATTERN;
  if (a->answer != LAC_TARGET_REFUSED || !by_type || choice->as || layer->dtype != LAC_DTYPE_F32)
    return;
  cast.as = LAC_DTYPE_F16;
  answer_from_nearest_rule(&cast, layer, mask, pattern, &other);
  const size_t n = strlen(a->reason);
  if (other.answer == LAC_TARGET_TAKEN)
    (void)snprintf(a->reason + n, LACI_TARGET_TEXT - n, "; cast to f16 it would be taken");
}

void laci_target_predict_answer(const laci_target_choice *choice, const laci_target_layer *layer,
                                laci_pattern pattern, laci_target_answer *answer) {
  answer_for_layer(choice, layer, NULL, pattern, answer);
}

/* ---- Judging a weight by its elements ---- */

/* Answers for a layer that is dense. What a rule refuses in its weight becomes a remark. */
static void answer_for_dense_layer(const laci_target_choice *choice, const laci_target_layer *layer,
                                   const laci_target_mask *mask, laci_target_answer *a) {
  const laci_pattern strictest = {1, 64};
  laci_target_predict_answer(choice, layer, strictest, a);
  if (a->answer == LAC_TARGET_TAKEN) a->reason[0] = 0;
  if (mask->n > 0 && mask->n_zeros == mask->n)
    (void)snprintf(a->reason, LACI_TARGET_TEXT, "all zero");
  a->answer = LAC_TARGET_DENSE;
  a->fault = LACI_FAULT_NONE;
  a->pays = LAC_TARGET_PAYS_NOT_STATED;
  a->rule = NULL;
  a->gain = NULL;
}

lac_status laci_target_judge_weight(const laci_target_choice *choice,
                                    const laci_target_layer *layer, laci_target_answer *answer,
                                    lac_error *err) {
  laci_target_mask mask = {0};
  const laci_pattern none = {0, 0};
  lac_status st = LAC_OK;
  if (laci_dtype_is_numeric(layer->dtype) && layer->view.bytes)
    st = laci_target_mask_read(layer, &mask, err);
  if (st) return st;
  if (mask.n_zeros * 100 < LOOKS_SPARSE * mask.n || mask.n_zeros == mask.n)
    answer_for_dense_layer(choice, layer, &mask, answer);
  else answer_for_layer(choice, layer, &mask, none, answer);
  laci_target_mask_clear(&mask);
  return LAC_OK;
}
