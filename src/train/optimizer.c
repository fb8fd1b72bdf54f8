/* SPDX-License-Identifier: Apache-2.0
 * Implements the optimizers of optimizer.h. Parameters are cut into parts of a fixed size, and a
 * step is a few loops over the parts. Norms are summed part by part in order, so that they do not
 * depend on the number of threads. kernel/optimizer/update.h has the arithmetic. */
#include "train/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "kernel/optimizer/update.h"
#include "lacuna/engine_plugin.h"

enum {
  PART = 1 << 15
}; /* number of floats in a part. Weights, gradients and two slots of this size fit into a
      second-level cache */

typedef struct part {
  int parameter;
  int64_t offset, count;
  double weight_squares, gradient_squares; /* sums of squares in this step, for LARS */
} part;

typedef struct tensor {
  laci_parameter about;
  const uint8_t *mask;
  float decay;
  double ratio; /* trust ratio in this step, for LARS */
} tensor;

struct laci_optimizer {
  laci_optimizer_options options;
  laci_pool *pool;
  laci_arena arena;
  tensor *tensors;
  int n_tensors;
  part *parts;
  int64_t n_parts, size, steps;
  float *slots[LACI_OPTIMIZER_MAX_SLOTS];
  int n_slots;
  lac_engine_update update;          /* the step that laci_optimizer_describe_step describes to an
                                        engine */
  lac_engine_parameter *described;   /* [n_tensors] the parameters that `update` lists */
  const lac_engine_parameter **list; /* [n_tensors] addresses of the elements of `described` */
};

static const char *const kind_names[] = {
#define LACI_OPTIMIZER(name, text) text,
#include "train/optimizer.def"
#undef LACI_OPTIMIZER
};

const char *laci_optimizer_kind_name(laci_optimizer_kind kind) { return kind_names[kind]; }

bool laci_optimizer_find_kind(const char *name, laci_optimizer_kind *kind) {
  for (int k = 0; k < LACI_OPTIMIZER_COUNT; k++) {
    if (strcmp(kind_names[k], name) != 0) continue;
    *kind = (laci_optimizer_kind)k;
    return true;
  }
  return false;
}

laci_optimizer_options laci_optimizer_options_default(laci_optimizer_kind kind) {
  return (laci_optimizer_options){.kind = kind,
                                  .momentum = 0.9F,
                                  .trust = 0.001F,
                                  .beta2 = 0.999F,
                                  .epsilon = kind == LACI_OPTIMIZER_ADAMW ? 1e-8F : 0};
}

void laci_optimizer_options_set_kind(laci_optimizer_options *options, laci_optimizer_kind kind) {
  const laci_optimizer_options old = *options;
  *options = laci_optimizer_options_default(kind);
  options->momentum = old.momentum;
  options->decay = old.decay;
  options->decay_all = old.decay_all;
  options->nesterov = old.nesterov && kind != LACI_OPTIMIZER_ADAMW;
  options->rate_inside = old.rate_inside;
}

/* ---- Creating ---- */

static bool is_in_range(float x, float low, float high) { return x >= low && x < high; }

static lac_status check_options(const laci_optimizer_options *o, lac_error *err) {
  bool adam = o->kind == LACI_OPTIMIZER_ADAMW, lars = o->kind == LACI_OPTIMIZER_LARS;
  if (!is_in_range(o->momentum, 0, 1)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "momentum %g, wanted 0 or more, below 1",
                     (double)o->momentum);
  }
  if (!is_in_range(o->decay, 0, INFINITY)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "weight decay %g, wanted 0 or more", (double)o->decay);
  }
  if (adam && !is_in_range(o->beta2, 0, 1)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "beta2 %g, wanted 0 or more, below 1",
                     (double)o->beta2);
  }
  if (!is_in_range(o->epsilon, 0, INFINITY) || (adam && o->epsilon <= 0)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "epsilon %g, wanted above 0", (double)o->epsilon);
  }
  if (lars && !(o->trust > 0 && o->trust < INFINITY)) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "trust %g, wanted above 0", (double)o->trust);
  }
  if (adam && o->nesterov) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "Nesterov's momentum belongs to sgd and lars");
  }
  return LAC_OK;
}

/** Checks the parameters, which must be sorted by their offset. */
static lac_status check_parameters(const laci_parameter *parameters, int n, lac_error *err) {
  int64_t end = 0;
  for (int k = 0; k < n; k++) {
    const laci_parameter *p = &parameters[k];
    if (p->offset < end || p->count < 0 || p->count > INT64_MAX / 8 - p->offset) {
      return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %lld floats at %lld, wanted at %lld or after",
                       p->name, (long long)p->count, (long long)p->offset, (long long)end);
    }
    end = p->offset + p->count;
  }
  return LAC_OK;
}

static lac_status copy_parameters(laci_optimizer *o, const laci_parameter *parameters, int n,
                                  lac_error *err) {
  o->tensors = laci_arena_alloc(&o->arena, (size_t)n, sizeof *o->tensors);
  o->described = laci_arena_alloc(&o->arena, (size_t)n, sizeof *o->described);
  o->list = laci_arena_alloc(&o->arena, (size_t)n, sizeof *o->list);
  if (!o->tensors || !o->described || !o->list) return laci_fail_memory(err, "the optimizer");
  for (int k = 0; k < n; k++) o->list[k] = &o->described[k];
  o->n_tensors = n;
  for (int k = 0; k < n; k++) {
    const laci_parameter *p = &parameters[k];
    o->tensors[k].about = *p;
    o->tensors[k].decay = p->is_vector && !o->options.decay_all ? 0 : o->options.decay;
    o->tensors[k].ratio = 1;
    o->tensors[k].about.name = laci_arena_text(&o->arena, p->name);
    if (!o->tensors[k].about.name) return laci_fail_memory(err, "the optimizer");
    o->n_parts += (p->count + PART - 1) / PART;
    o->size = p->offset + p->count;
  }
  return LAC_OK;
}

static void split_parameters_into_parts(laci_optimizer *o) {
  part *to = o->parts;
  for (int k = 0; k < o->n_tensors; k++) {
    const laci_parameter *p = &o->tensors[k].about;
    for (int64_t at = 0; at < p->count; at += PART) {
      int64_t left = p->count - at;
      *to++ = (part){.parameter = k, .offset = p->offset + at, .count = left < PART ? left : PART};
    }
  }
}

int laci_optimizer_count_slots_for_options(const laci_optimizer_options *options) {
  return options->kind == LACI_OPTIMIZER_ADAMW ? 2 : 1;
}

lac_status laci_optimizer_create(const laci_optimizer_options *options,
                                 const laci_parameter *parameters, int n, laci_pool *pool,
                                 laci_optimizer **optimizer, lac_error *err) {
  *optimizer = NULL;
  lac_status st = check_options(options, err);
  if (!st) st = check_parameters(parameters, n, err);
  if (st) return st;
  laci_optimizer *o = laci_alloc(1, sizeof *o);
  if (!o) return laci_fail_memory(err, "the optimizer");
  o->options = *options;
  o->pool = pool;
  o->n_slots = laci_optimizer_count_slots_for_options(options);
  st = copy_parameters(o, parameters, n, err);
  if (st) goto out;
  o->parts = laci_alloc((size_t)o->n_parts, sizeof *o->parts);
  bool whole = o->parts != NULL;
  for (int k = 0; k < o->n_slots; k++) {
    o->slots[k] = laci_alloc((size_t)o->size, sizeof(float));
    whole &= o->slots[k] != NULL;
  }
  if (!whole) {
    st = laci_fail_memory(err, "the optimizer's state");
    goto out;
  }
  split_parameters_into_parts(o);
  *optimizer = o;
out:
  if (st) laci_optimizer_destroy(o);
  return st;
}

void laci_optimizer_destroy(laci_optimizer *optimizer) {
  if (!optimizer) return;
  for (int k = 0; k < optimizer->n_slots; k++) laci_free(optimizer->slots[k]);
  laci_free(optimizer->parts);
  laci_arena_clear(&optimizer->arena);
  laci_free(optimizer);
}

/* ---- State ---- */

int64_t laci_optimizer_count_floats(const laci_optimizer *optimizer) { return optimizer->size; }
laci_optimizer_kind laci_optimizer_kind_of(const laci_optimizer *optimizer) {
  return optimizer->options.kind;
}
int laci_optimizer_count_slots(const laci_optimizer *optimizer) { return optimizer->n_slots; }
float *laci_optimizer_slot(laci_optimizer *optimizer, int slot) { return optimizer->slots[slot]; }
int64_t laci_optimizer_steps(const laci_optimizer *optimizer) { return optimizer->steps; }
void laci_optimizer_set_steps(laci_optimizer *optimizer, int64_t steps) {
  optimizer->steps = steps;
}

void laci_optimizer_set_mask(laci_optimizer *optimizer, int parameter, const uint8_t *mask,
                             float *weights) {
  tensor *t = &optimizer->tensors[parameter];
  size_t count = (size_t)t->about.count;
  t->mask = mask;
  if (!mask) return;
  if (weights) laci_update_variant()->mask(weights + t->about.offset, mask, count);
  for (int k = 0; k < optimizer->n_slots; k++) {
    laci_update_variant()->mask(optimizer->slots[k] + t->about.offset, mask, count);
  }
}

double laci_optimizer_gradient_norm(const laci_optimizer *o, const float *gradients) {
  double whole = 0;
  for (int p = 0; p < o->n_tensors; p++) {
    const tensor *t = &o->tensors[p];
    const float *g = gradients + t->about.offset;
    double sum = 0;
    for (int64_t k = 0; k < t->about.count; k++) {
      if (!t->mask || t->mask[k]) sum += (double)g[k] * (double)g[k];
    }
    whole += sum;
  }
  return sqrt(whole);
}

/* ---- A step ---- */

typedef struct step {
  laci_optimizer *o;
  const laci_update_kernels *kernels;
  float rate, scale;
  float *weights, *gradients;
} step;

static void mask_gradient(const step *s, const part *p) {
  const tensor *t = &s->o->tensors[p->parameter];
  if (!t->mask) return;
  s->kernels->mask(s->gradients + p->offset, t->mask + (p->offset - t->about.offset),
                   (size_t)p->count);
}

/** Masks the gradients of parts begin to end - 1. For LARS, also sums the squares for the trust
 * ratios. */
static void mask_and_measure_norms(int64_t begin, int64_t end, void *context) {
  const step *s = context;
  for (int64_t at = begin; at < end; at++) {
    part *p = &s->o->parts[at];
    mask_gradient(s, p);
    if (s->o->tensors[p->parameter].about.is_vector) continue;
    p->weight_squares = s->kernels->squares(s->weights + p->offset, (size_t)p->count);
    p->gradient_squares = s->kernels->squares(s->gradients + p->offset, (size_t)p->count);
  }
}

static void compute_trust_ratios(const step *s) {
  laci_optimizer *o = s->o;
  const part *p = o->parts, *end = p + o->n_parts;
  for (int k = 0; k < o->n_tensors; k++) {
    tensor *t = &o->tensors[k];
    double weight = 0, gradient = 0;
    for (; p < end && p->parameter == k; p++) {
      weight += p->weight_squares;
      gradient += p->gradient_squares;
    }
    weight = sqrt(weight);
    gradient = sqrt(gradient) * fabs((double)s->scale);
    double below = gradient + (double)t->decay * weight + (double)o->options.epsilon;
    bool counts = !t->about.is_vector && weight > 0 && gradient > 0;
    t->ratio = counts ? (double)o->options.trust * weight / below : 1;
  }
}

static void update_parts_by_sgd(int64_t begin, int64_t end, void *context) {
  const step *s = context;
  const laci_optimizer_options *options = &s->o->options;
  bool lars = options->kind == LACI_OPTIMIZER_LARS;
  laci_sgd_rule rule = {.momentum = options->momentum,
                        .scale = s->scale,
                        .nesterov = options->nesterov,
                        .rate_inside = lars || options->rate_inside};
  for (int64_t at = begin; at < end; at++) {
    const part *p = &s->o->parts[at];
    const tensor *t = &s->o->tensors[p->parameter];
    if (!lars) mask_gradient(s, p);
    rule.rate = lars ? (float)((double)s->rate * t->ratio) : s->rate;
    rule.decay = t->decay;
    s->kernels->sgd(&rule, s->weights + p->offset, s->gradients + p->offset,
                    s->o->slots[0] + p->offset, (size_t)p->count);
  }
}

static void update_parts_by_adam(int64_t begin, int64_t end, void *context) {
  const step *s = context;
  const laci_optimizer_options *o = &s->o->options;
  double t = (double)s->o->steps, rate = (double)s->rate;
  laci_adam_rule rule = {.step = (float)(rate / (1 - pow((double)o->momentum, t))),
                         .root = (float)sqrt(1 - pow((double)o->beta2, t)),
                         .epsilon = o->epsilon,
                         .scale = s->scale,
                         .one_less_beta1 = (float)(1 - (double)o->momentum),
                         .beta2 = o->beta2,
                         .one_less_beta2 = (float)(1 - (double)o->beta2)};
  for (int64_t at = begin; at < end; at++) {
    const part *p = &s->o->parts[at];
    mask_gradient(s, p);
    rule.keep = (float)(1 - rate * (double)s->o->tensors[p->parameter].decay);
    s->kernels->adam(&rule, s->weights + p->offset, s->gradients + p->offset,
                     s->o->slots[0] + p->offset, s->o->slots[1] + p->offset, (size_t)p->count);
  }
}

void laci_optimizer_step(laci_optimizer *optimizer, float rate, float scale, float *weights,
                         float *gradients) {
  step s = {optimizer, laci_update_variant(), rate, scale, weights, gradients};
  optimizer->steps++;
  if (optimizer->options.kind == LACI_OPTIMIZER_ADAMW) {
    laci_pool_for(optimizer->pool, optimizer->n_parts, 1, update_parts_by_adam, &s);
    return;
  }
  if (optimizer->options.kind == LACI_OPTIMIZER_LARS) {
    laci_pool_for(optimizer->pool, optimizer->n_parts, 1, mask_and_measure_norms, &s);
    compute_trust_ratios(&s);
  }
  laci_pool_for(optimizer->pool, optimizer->n_parts, 1, update_parts_by_sgd, &s);
}

/* ---- A step that an engine takes ---- */

static void describe_parameter(const laci_optimizer *o, int k, float *weights, float *gradients,
                               lac_engine_parameter *to) {
  const tensor *t = &o->tensors[k];
  const int64_t at = t->about.offset;
  *to = (lac_engine_parameter){.size = sizeof *to,
                               .name = t->about.name,
                               .count = t->about.count,
                               .is_vector = t->about.is_vector,
                               .decay = t->decay,
                               .mask = t->mask,
                               .weights = weights + at,
                               .gradients = gradients + at};
  for (int slot = 0; slot < o->n_slots; slot++) to->state[slot] = o->slots[slot] + at;
}

const lac_engine_update *laci_optimizer_describe_step(laci_optimizer *optimizer, float rate,
                                                      float scale, float *weights,
                                                      float *gradients) {
  const laci_optimizer_options *options = &optimizer->options;
  for (int k = 0; k < optimizer->n_tensors; k++) {
    describe_parameter(optimizer, k, weights, gradients, &optimizer->described[k]);
  }
  optimizer->update = (lac_engine_update){
      .size = sizeof(lac_engine_update),
      .rule = laci_optimizer_kind_name(options->kind),
      .rate = rate,
      .scale = scale,
      .momentum = options->momentum,
      .beta2 = options->beta2,
      .epsilon = options->epsilon,
      .trust = options->trust,
      .nesterov = options->nesterov,
      .rate_inside = options->rate_inside || options->kind == LACI_OPTIMIZER_LARS,
      .step = optimizer->steps + 1,
      .n_parameters = optimizer->n_tensors,
      .parameters = optimizer->list};
  return &optimizer->update;
}
