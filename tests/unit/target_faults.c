/* SPDX-License-Identifier: Apache-2.0
 * Faults planted in models that a target takes as a whole: one group, one axis, one size, one type
 * at a time, and what else a target asks for. Each is found where it is, called what it is, and
 * nothing else is complained of. Layers are independent of each other, so that one can change
 * alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/model/model_in.h"
#include "lacuna/prune.h"
#include "support/graph_build.h"
#include "support/light.h"

enum { LAYERS = 3, TRIALS = 490, MOST_TYPES = 5 };

typedef enum kind { CONV, GEMM, MAT_MUL } kind;

typedef struct spec {
  kind kind;
  lac_dtype type;
  int in, out, kernel, groups, zero_point;
  int n, m;  /* pattern; 0: percent zeros anywhere */
  int zeros; /* percent */
} spec;

/* What a target takes, as its documentation says; the rules are not asked. */
typedef struct taker {
  const char *name;
  kind kinds[3];
  int n_kinds;
  lac_dtype types[MOST_TYPES], wrong_types[MOST_TYPES];
  int n_types, n_wrong_types;
  int most_kernel;
  int in_multiple, out_multiple; /* that all of its types take; 1: none is asked for */
  bool any_zeros;
  bool pairs_of_f32; /* f32 is 1:2 */
  bool takes_zero_points;
} taker;

static const taker takers[] = {
    {.name = "tensorrt",
     .kinds = {CONV, GEMM, MAT_MUL},
     .n_kinds = 3,
     .types = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8},
     .n_types = 4,
     .wrong_types = {LAC_DTYPE_F64, LAC_DTYPE_U8},
     .n_wrong_types = 2,
     .most_kernel = 3,
     .in_multiple = 4,
     .out_multiple = 1},
    {.name = "cusparselt",
     .kinds = {CONV, GEMM, MAT_MUL},
     .n_kinds = 3,
     .types = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8},
     .n_types = 4,
     .wrong_types = {LAC_DTYPE_F64, LAC_DTYPE_U8},
     .n_wrong_types = 2,
     .most_kernel = 1,
     .in_multiple = 32,
     .out_multiple = 32,
     .pairs_of_f32 = true},
    {.name = "torch",
     .kinds = {GEMM, MAT_MUL},
     .n_kinds = 2,
     .types = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8},
     .n_types = 4,
     .wrong_types = {LAC_DTYPE_F64, LAC_DTYPE_U8},
     .n_wrong_types = 2,
     .in_multiple = 32,
     .out_multiple = 32,
     .pairs_of_f32 = true},
    {.name = "ascend",
     .kinds = {CONV, GEMM, MAT_MUL},
     .n_kinds = 3,
     .types = {LAC_DTYPE_F32, LAC_DTYPE_F64, LAC_DTYPE_I8},
     .n_types = 3,
     .wrong_types = {LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_U8},
     .n_wrong_types = 3,
     .most_kernel = 3,
     .in_multiple = 4,
     .out_multiple = 1},
    {.name = "openvino",
     .kinds = {GEMM, MAT_MUL},
     .n_kinds = 2,
     .types = {LAC_DTYPE_I8},
     .n_types = 1,
     .wrong_types = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_U8},
     .n_wrong_types = 3,
     .in_multiple = 64,
     .out_multiple = 64,
     .any_zeros = true},
    {.name = "lacuna-cpu",
     .kinds = {CONV, GEMM, MAT_MUL},
     .n_kinds = 3,
     .types = {LAC_DTYPE_F32, LAC_DTYPE_F16, LAC_DTYPE_BF16, LAC_DTYPE_I8, LAC_DTYPE_U8},
     .n_types = 5,
     .wrong_types = {LAC_DTYPE_F64},
     .n_wrong_types = 1,
     .most_kernel = 3,
     .in_multiple = 1,
     .out_multiple = 1,
     .any_zeros = true,
     .takes_zero_points = true},
};

enum { N_TAKERS = sizeof takers / sizeof *takers };

/* ---- Random numbers ---- */

typedef struct dice {
  uint64_t stream, at;
} dice;

static int roll(dice *d, int n) {
  return (int)(laci_rng_unit_interval(77, d->stream, d->at++) * n);
}

/* ---- Masks ---- */

static int64_t count_of(const spec *s) {
  return (int64_t)s->out * (s->in / s->groups) * s->kernel * s->kernel;
}

/* Element of output channel k, input channel c, position p. */
static int64_t element_at(const spec *s, int64_t k, int64_t c, int64_t p) {
  const int64_t in = s->in / s->groups, positions = (int64_t)s->kernel * s->kernel;
  if (s->kind == MAT_MUL) return c * s->out + k;
  return (k * in + c) * positions + p;
}

/* Keeps n of the m elements at `at`, `stride` apart; fewer where the block ends early. */
static void keep_some(dice *d, uint8_t *mask, const int64_t *at, int size, int n) {
  for (int kept = 0; kept < n && kept < size;) {
    const int k = roll(d, size);
    kept += !mask[at[k]];
    mask[at[k]] = 1;
  }
}

static void fill_along_inputs(dice *d, const spec *s, int n, int m, uint8_t *mask) {
  const int64_t in = s->in / s->groups, positions = (int64_t)s->kernel * s->kernel;
  int64_t at[8];
  for (int64_t k = 0; k < s->out; k++) {
    for (int64_t p = 0; p < positions; p++) {
      for (int64_t c = 0; c < in; c += m) {
        int size = 0;
        for (int64_t i = c; i < c + m && i < in; i++) at[size++] = element_at(s, k, i, p);
        keep_some(d, mask, at, size, n);
      }
    }
  }
}

static void fill_along_outputs(dice *d, const spec *s, int n, int m, uint8_t *mask) {
  const int64_t in = s->in / s->groups, positions = (int64_t)s->kernel * s->kernel;
  int64_t at[8];
  for (int64_t c = 0; c < in; c++) {
    for (int64_t p = 0; p < positions; p++) {
      for (int64_t k = 0; k < s->out; k += m) {
        for (int i = 0; i < m; i++) at[i] = element_at(s, k + i, c, p);
        keep_some(d, mask, at, m, n);
      }
    }
  }
}

/* As pruners do that see a kernel as [O, I*kH*kW]. */
static void fill_flattened(dice *d, const spec *s, int n, int m, uint8_t *mask) {
  int64_t at[8];
  for (int64_t e = 0; e < count_of(s); e += m) {
    for (int i = 0; i < m; i++) at[i] = e + i;
    keep_some(d, mask, at, m, n);
  }
}

static void fill_anywhere(dice *d, const spec *s, uint8_t *mask) {
  const int64_t n = count_of(s), n_zeros = n * s->zeros / 100;
  memset(mask, 1, (size_t)n);
  for (int64_t left = n_zeros; left > 0;) {
    const int at = roll(d, (int)n);
    left -= mask[at];
    mask[at] = 0;
  }
}

/* One more non-zero in a block that is full. */
static void spoil_group(dice *d, const spec *s, uint8_t *mask) {
  for (;;) {
    const int k = roll(d, s->out), p = roll(d, s->kernel * s->kernel);
    const int in = s->in / s->groups, block = roll(d, in / s->m) * s->m;
    int n_kept = 0, free_at = -1;
    for (int c = block; c < block + s->m; c++) {
      const int64_t e = element_at(s, k, c, p);
      n_kept += mask[e];
      if (!mask[e]) free_at = (int)e;
    }
    if (n_kept != s->n) continue;
    mask[free_at] = 1;
    return;
  }
}

/* ---- Models ---- */

typedef struct plan {
  spec specs[LAYERS];
  uint8_t *masks[LAYERS];
  bool shared; /* the weight of layer 0 has a second reader */
} plan;

static const char *type_name(lac_dtype type) { return lac_dtype_name(type); }

static size_t say_layer(char *text, size_t size, int l, const spec *s) {
  const bool quantized = s->type == LAC_DTYPE_I8 || s->type == LAC_DTYPE_U8;
  char shape[64], input[64];
  size_t n = 0;
  if (s->kind == CONV) {
    (void)snprintf(shape, sizeof shape, "%dx%dx%dx%d", s->out, s->in / s->groups, s->kernel,
                   s->kernel);
    (void)snprintf(input, sizeof input, "1x%dx4x4", s->in);
  } else {
    (void)snprintf(shape, sizeof shape, "%dx%d", s->kind == GEMM ? s->out : s->in,
                   s->kind == GEMM ? s->in : s->out);
    (void)snprintf(input, sizeof input, "2x%d", s->in);
  }
  n += (size_t)snprintf(text + n, size - n, "input x%d %s\nstored w%d %s %s\n", l, input, l, shape,
                        type_name(s->type));
  if (quantized)
    n += (size_t)snprintf(text + n, size - n,
                          "stored s%d \"\" = 0.5\nstored z%d \"\" %s = %d\n"
                          "r%d = DequantizeLinear(w%d, s%d, z%d)\n",
                          l, l, type_name(s->type), s->zero_point, l, l, l, l);
  else n += (size_t)snprintf(text + n, size - n, "r%d = Cast(w%d) to=1\n", l, l);
  if (s->kind == CONV)
    n += (size_t)snprintf(text + n, size - n, "y%d = Conv(x%d, r%d) group=%d name=\"layer%d\"\n", l,
                          l, l, s->groups, l);
  else if (s->kind == GEMM)
    n += (size_t)snprintf(text + n, size - n, "y%d = Gemm(x%d, r%d) transB=1 name=\"layer%d\"\n", l,
                          l, l, l);
  else
    n += (size_t)snprintf(text + n, size - n, "y%d = MatMul(x%d, r%d) name=\"layer%d\"\n", l, l, l,
                          l);
  return n + (size_t)snprintf(text + n, size - n, "output y%d\n", l);
}

static void put_weights(laci_graph *graph, int l, const spec *s, const uint8_t *mask) {
  char name[16];
  (void)snprintf(name, sizeof name, "w%d", l);
  laci_stored *stored = &graph->stored[graph->values[laci_graph_find_value(graph, name)].stored];
  uint8_t *bytes = laci_arena_alloc(graph->arena, stored->size_bytes, 1);
  assert_non_null(bytes);
  for (int64_t e = 0; e < count_of(s); e++) {
    const double x = 1 + (double)(e % 7); /* as f16's bits a small number, too */
    net_put(s->type, bytes, e, mask[e] ? x + s->zero_point : s->zero_point);
  }
  stored->bytes = bytes;
}

static lac_model *build(const plan *p) {
  char text[4096];
  size_t n = 0;
  lac_error err = {0};
  lac_model *model;
  for (int l = 0; l < LAYERS; l++) n += say_layer(text + n, sizeof text - n, l, &p->specs[l]);
  if (p->shared) {
    const bool conv = p->specs[0].kind == CONV, gemm = p->specs[0].kind == GEMM;
    (void)snprintf(text + n, sizeof text - n, "z = %s(x0, r0)%s name=\"again\"\noutput z\n",
                   conv   ? "Conv"
                   : gemm ? "Gemm"
                          : "MatMul",
                   gemm ? " transB=1" : "");
  }
  assert_int_equal(laci_model_create_empty("(test)", &model, NULL), LAC_OK);
  if (net_read(text, &model->graph, &err)) fail_msg("%s\n%s", err.text, text);
  model->inferred->assumed = laci_alloc(1, 1);
  assert_non_null(model->inferred->assumed);
  for (int l = 0; l < LAYERS; l++) put_weights(model->graph, l, &p->specs[l], p->masks[l]);
  return model;
}

/* ---- Good layers ---- */

static int size_for(dice *d, int multiple) {
  const int least = multiple < 16 ? (16 + multiple - 1) / multiple : 1;
  return multiple * (least + roll(d, multiple < 16 ? 4 : 2));
}

static spec good_spec(dice *d, const taker *t) {
  spec s = {.kind = t->kinds[roll(d, t->n_kinds)],
            .type = t->types[roll(d, t->n_types)],
            .in = size_for(d, t->in_multiple),
            .out = (t->out_multiple == 1 ? 4 : 1) * size_for(d, t->out_multiple),
            .kernel = 1,
            .groups = 1,
            .n = 2,
            .m = 4};
  if (s.kind == CONV && t->most_kernel == 3) s.kernel = roll(d, 3) ? 3 : 1;
  if (t->pairs_of_f32 && s.type == LAC_DTYPE_F32) s.n = 1, s.m = 2;
  if (t->any_zeros) s.n = s.m = 0, s.zeros = 35 + roll(d, 50);
  if (s.type == LAC_DTYPE_U8) s.zero_point = 128;
  return s;
}

static void fill(dice *d, const spec *s, uint8_t **mask) {
  *mask = laci_alloc((size_t)count_of(s), 1);
  assert_non_null(*mask);
  if (s->m) fill_along_inputs(d, s, s->n, s->m, *mask);
  else fill_anywhere(d, s, *mask);
}

/* ---- Faults ---- */

typedef enum fault { GROUP, AXIS, SIZE, TYPE, ZERO_POINT, OTHER, N_FAULTS } fault;

static void refill(dice *d, plan *p, int l) {
  laci_free(p->masks[l]);
  fill(d, &p->specs[l], &p->masks[l]);
}

static const char *plant_axis(dice *d, plan *p, int l) {
  const spec *s = &p->specs[l];
  if (!s->m) return NULL;
  memset(p->masks[l], 0, (size_t)count_of(s));
  if (s->kernel > 1 && roll(d, 2)) fill_flattened(d, s, s->n, s->m, p->masks[l]);
  else fill_along_outputs(d, s, s->n, s->m, p->masks[l]);
  return "axis";
}

static const char *plant_size(dice *d, const taker *t, plan *p, int l) {
  spec *s = &p->specs[l];
  const bool of_input = t->out_multiple == 1 || roll(d, 2);
  if (t->in_multiple == 1) return NULL;
  if (of_input) s->in += 1 + 2 * roll(d, t->in_multiple / 2);
  else s->out += 1 + 2 * roll(d, t->out_multiple / 2);
  refill(d, p, l);
  return "size";
}

static const char *plant_type(dice *d, const taker *t, plan *p, int l) {
  spec *s = &p->specs[l];
  s->type = t->wrong_types[roll(d, t->n_wrong_types)];
  s->zero_point = s->type == LAC_DTYPE_U8 ? 128 : 0;
  return "type";
}

static const char *plant_zero_point(const taker *t, plan *p, int l) {
  spec *s = &p->specs[l];
  if (s->type != LAC_DTYPE_I8) return NULL;
  s->zero_point = 3;
  return t->takes_zero_points ? "" : "zero point"; /* "": this is no fault */
}

/* What only this target minds. */
static const char *plant_other(dice *d, const taker *t, plan *p, int l) {
  spec *s = &p->specs[l];
  if (strcmp(t->name, "lacuna-cpu") == 0) {
    s->zeros = 26 + roll(d, 3);
    refill(d, p, l);
    return "zeros";
  }
  if (strcmp(t->name, "ascend") == 0) {
    if (s->kind != CONV) return NULL;
    s->in *= 2, s->groups = 2;
    refill(d, p, l);
    return "groups";
  }
  if (strcmp(t->name, "tensorrt") == 0) return NULL;
  s->kind = CONV, s->kernel = 3;
  refill(d, p, l);
  return strcmp(t->name, "cusparselt") == 0 ? "window" : "operator";
}

/* What the target has to say; "": nothing; NULL: there is no such fault in this layer. */
static const char *plant(dice *d, fault f, const taker *t, plan *p, int l) {
  switch (f) {
    case GROUP:
      if (!p->specs[l].m) return NULL;
      spoil_group(d, &p->specs[l], p->masks[l]);
      return "pattern";
    case AXIS: return plant_axis(d, p, l);
    case SIZE: return plant_size(d, t, p, l);
    case TYPE: return plant_type(d, t, p, l);
    case ZERO_POINT: return plant_zero_point(t, p, l);
    default: return plant_other(d, t, p, l);
  }
}

/* ---- Asking ---- */

static lac_report *check(const lac_model *model, const char *target) {
  lac_options o = lac_options_default();
  lac_report *report;
  lac_error err = {0};
  o.all_sizes = true;
  o.threads = 1;
  o.targets = &target;
  o.n_targets = 1;
  if (lac_check(model, NULL, &o, &report, &err)) fail_msg("%s", err.text);
  assert_int_equal(report->n_targets, 1);
  return report;
}

static void expect(const taker *t, const plan *p, int planted, const char *what, uint64_t seed) {
  lac_model *model = build(p);
  lac_report *report = check(model, t->name);
  const lac_target_report *target = &report->targets[0];
  assert_int_equal(report->n_layers, LAYERS + p->shared);
  for (int l = 0; l < report->n_layers; l++) {
    const lac_target_layer *layer = &target->layers[l];
    const bool wrong = l == planted || (p->shared && (l == 0 || l == LAYERS));
    const char *found = layer->fault ? layer->fault : "", *wanted = wrong ? what : "";
    if (strcmp(found, wanted) == 0 &&
        layer->answer == (wanted[0] ? LAC_TARGET_REFUSED : LAC_TARGET_TAKEN))
      continue;
    /* what the rules take, a plan may run as dense: unit/api_target_plan.c looks at that */
    if (strcmp(found, "plan") == 0 && !wanted[0] && layer->answer == LAC_TARGET_REFUSED) continue;
    fail_msg("%s, seed %llu, layer %d: \"%s\", wanted \"%s\": %s", t->name,
             (unsigned long long)seed, l, found, wanted, layer->reason ? layer->reason : "");
  }
  lac_report_destroy(report);
  lac_model_destroy(model);
}

static void clear(plan *p) {
  for (int l = 0; l < LAYERS; l++) laci_free(p->masks[l]);
}

static plan good_plan(dice *d, const taker *t) {
  plan p = {.shared = false};
  for (int l = 0; l < LAYERS; l++) {
    p.specs[l] = good_spec(d, t);
    fill(d, &p.specs[l], &p.masks[l]);
  }
  return p;
}

static void every_planted_fault_is_found_and_nothing_else(void **state) {
  (void)state;
  int n_planted = 0, n_each[N_FAULTS] = {0};
  for (int t = 0; t < N_TAKERS; t++) {
    /* a plan is made in each trial of lacuna-cpu */
    const int trials = strcmp(takers[t].name, "lacuna-cpu") == 0 ? TRIALS / 7 : TRIALS;
    for (int trial = 0; trial < trials; trial += tests_stride(7)) { /* no multiple of N_FAULTS */
      const uint64_t seed = (uint64_t)t * TRIALS + (uint64_t)trial;
      dice d = {.stream = seed};
      plan p = good_plan(&d, &takers[t]);
      const fault f = (fault)(trial % N_FAULTS);
      const int l = roll(&d, LAYERS);
      const char *what = plant(&d, f, &takers[t], &p, l);
      expect(&takers[t], &p, what ? l : -1, what, seed);
      n_planted += what && what[0];
      n_each[f] += what && what[0];
      clear(&p);
    }
  }
  print_message(
      "%d faults planted: %d groups, %d axes, %d sizes, %d types, %d zero points, %d others\n",
      n_planted, n_each[GROUP], n_each[AXIS], n_each[SIZE], n_each[TYPE], n_each[ZERO_POINT],
      n_each[OTHER]);
  assert_true(n_planted >= 1500 / tests_stride(8));
  for (int f = 0; f < N_FAULTS; f++) assert_true(n_each[f] > 0);
}

static void a_weight_of_two_layers_is_refused_where_it_may_not_be(void **state) {
  (void)state;
  for (int t = 0; t < N_TAKERS; t++) {
    dice d = {.stream = 9000 + (uint64_t)t};
    plan p = good_plan(&d, &takers[t]);
    p.shared = true;
    expect(&takers[t], &p, -1, strcmp(takers[t].name, "ascend") == 0 ? "shared" : "", 0);
    clear(&p);
  }
}

static void groups_and_transposed_convolutions_are_not_stated(void **state) {
  (void)state;
  dice d = {.stream = 5};
  plan p = good_plan(&d, &takers[0]);
  p.specs[0] = (spec){.kind = CONV,
                      .type = LAC_DTYPE_F32,
                      .in = 64,
                      .out = 32,
                      .kernel = 3,
                      .groups = 2,
                      .n = 2,
                      .m = 4};
  refill(&d, &p, 0);
  lac_model *model = build(&p);
  lac_report *report = check(model, "tensorrt");
  const lac_target_layer *layer = &report->targets[0].layers[0];
  assert_int_equal(layer->answer, LAC_TARGET_NOT_STATED);
  assert_string_equal(layer->fault, "groups");
  assert_string_equal(layer->reason, "a convolution of 2 groups: not stated");
  assert_int_equal(report->targets[0].n_not_stated, 1);
  assert_int_equal(report->targets[0].n_taken, 2);
  lac_report_destroy(report);
  lac_model_destroy(model);
  clear(&p);
}

static void vitis_takes_nothing(void **state) {
  (void)state;
  dice d = {.stream = 6};
  plan p = good_plan(&d, &takers[0]);
  lac_model *model = build(&p);
  lac_report *report = check(model, "vitis");
  assert_int_equal(report->targets[0].n_refused, LAYERS);
  assert_string_equal(report->targets[0].layers[0].fault, "target");
  lac_report_destroy(report);
  lac_model_destroy(model);
  clear(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_planted_fault_is_found_and_nothing_else),
      cmocka_unit_test(a_weight_of_two_layers_is_refused_where_it_may_not_be),
      cmocka_unit_test(groups_and_transposed_convolutions_are_not_stated),
      cmocka_unit_test(vitis_takes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
