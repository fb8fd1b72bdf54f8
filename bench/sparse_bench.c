/* SPDX-License-Identifier: Apache-2.0
 * Single convolutions of ResNet-50 with 2:4 weights against oneDNN's dense ones, on one core:
 * generated code (jit/sparse_code.h), the compiled kernels (kernel/sparse; of floats CSR and
 * grouped rows) against "direct" and, for 3x3, "winograd"; and, with all of their weights, ours
 * (kernel/sparse/winograd4.h). CHW is unpadded for kernels that can read it so, as in a network;
 * for the others rows have zeros between them. All kernels of a layer are run alternately, and the
 * least time counts, so that other load on the machine affects all of them alike. --dtype bf16:
 * both in bf16, where the processor multiplies bf16 pairs.
 *
 *     sparse_bench [--rounds N] [--only TEXT] [--isa avx2] [--rows N] [--terms N] [--chunk N]
 *                  [--order columns|rows] [--dtype f32|bf16|int8] [--compiled yes|no]
 *                  [--pattern N:M] [--together ROWS, which keep the same] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/divide.h"
#include "base/clock.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/openmp.h"
#include "engine/cpu/onednn/compat.h"
#include "jit/cache.h"
#include "jit/sparse_code.h"
#include "kernel/sparse/grouped_rows.h"
#include "kernel/sparse/csr.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/winograd4.h"
#include "large_pages.h"
#include "layers.h"

enum { CODE_LIMIT = 64 << 20, LANES = LACI_SPARSE_LANES, ALGORITHMS = 6 };
enum { DIRECT, WINOGRAD, GENERATED, COMPILED, GROUPED_ROWS, TILES };

typedef struct settings {
  int rounds, x_ahead;
  int n, m, together; /* the mask: N:M, one for so many rows */
  const char *only, *order;
  laci_jit_isa isa;
  laci_sparse_values values;
  bool without_compiled;
  laci_sparse_cut cut; /* what is not 0 overrides the rule */
} settings;

static void die(const char *what) {
  (void)fprintf(stderr, "sparse_bench: %s\n", what);
  exit(1);
}

/* ---- oneDNN ---- */

typedef struct dense_layer {
  dnnl_primitive_t primitive; /* NULL: it has none */
  dnnl_memory_t memory[4];    /* source, weights, bias, destination */
  dnnl_stream_t stream;
} dense_layer;

static dnnl_engine_t engine;

/* n floats, or what has as many bytes. */
static void draw(uint64_t seed, size_t n, laci_sparse_values values, float *to) {
  for (size_t at = 0; at < n; at++) {
    const float x = (float)laci_rng_unit_interval(seed, 0, at) - 0.5F;
    const uint32_t pair = laci_bf16_pair(x, 0.25F - x);
    const uint32_t int8x4 = (uint32_t)laci_rng_integer_below(seed, 0, at, UINT32_MAX);
    if (values == LACI_SPARSE_F32) to[at] = x;
    else memcpy(to + at, values == LACI_SPARSE_BF16 ? &pair : &int8x4, sizeof pair);
  }
}

/* Of a convolution's source, weights, bias and destination. */
static const dnnl_data_type_t types[][4] = {
    [LACI_SPARSE_F32] = {dnnl_f32, dnnl_f32, dnnl_f32, dnnl_f32},
    [LACI_SPARSE_BF16] = {dnnl_bf16, dnnl_bf16, dnnl_f32, dnnl_bf16},
    [LACI_SPARSE_S8] = {dnnl_u8, dnnl_s8, dnnl_f32, dnnl_u8}};

static dnnl_memory_t memory_of(const_dnnl_primitive_desc_t pd, dnnl_query_t what, uint64_t seed,
                               laci_sparse_values values) {
  dnnl_memory_t memory;
  laci_md_view md = dnnl_primitive_desc_query_md(pd, what, 0);
  void *bytes = large_pages(dnnl_memory_desc_get_size(md), 1);
  if (dnnl_memory_create(&memory, md, engine, bytes)) die("dnnl_memory_create");
  draw(seed, dnnl_memory_desc_get_size(md) / sizeof(float), values, bytes);
  return memory;
}

static dense_layer dense_of(const layer *l, int64_t n, dnnl_alg_kind_t alg,
                            laci_sparse_values values) {
  const int64_t dims[4][4] = {{n, l->in, l->size, l->size},
                              {l->out, l->in, l->window, l->window},
                              {l->out},
                              {n, l->out, l->size, l->size}};
  const int pad = (int)l->window / 2;
  const laci_dnnl_window w = {.n_spatial = 2,
                              .kernel = {l->window, l->window},
                              .strides = {1, 1},
                              .pads_begin = {pad, pad},
                              .pads_end = {pad, pad}};
  static const dnnl_query_t what[4] = {dnnl_query_src_md, dnnl_query_weights_md,
                                       dnnl_query_weights_md, dnnl_query_dst_md};
  laci_md md[4];
  laci_md_view views[4];
  dense_layer d = {0};
  dnnl_primitive_desc_t pd;
  dnnl_post_ops_t ops;
  dnnl_primitive_attr_t attr;
  for (int at = 0; at < 4; at++) {
    if (!laci_md_create_any(&md[at], at == 2 ? 1 : 4, dims[at], types[values][at]))
      die("a descriptor");
    views[at] = md[at];
  }
  (void)dnnl_primitive_attr_create(&attr);
  (void)dnnl_post_ops_create(&ops);
  (void)laci_post_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
  (void)dnnl_primitive_attr_set_post_ops(attr, ops);
  (void)dnnl_stream_create(&d.stream, engine, dnnl_stream_default_flags);
  if (laci_pd_create_conv(&pd, engine, (laci_dnnl_conv){dnnl_forward_inference, alg, NULL}, views,
                          &w, attr) == dnnl_success) {
    for (int at = 0; at < 4; at++) {
      if (at != 2) d.memory[at] = memory_of(pd, what[at], (uint64_t)at, values);
    }
    laci_md_view bias = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 1);
    if (dnnl_memory_create(&d.memory[2], bias, engine, DNNL_MEMORY_ALLOCATE)) die("a bias");
    if (dnnl_primitive_create(&d.primitive, pd)) die("dnnl_primitive_create");
    (void)dnnl_primitive_desc_destroy(pd);
  }
  (void)dnnl_post_ops_destroy(ops);
  (void)dnnl_primitive_attr_destroy(attr);
  for (int at = 0; at < 4; at++) laci_md_destroy(md[at]);
  return d;
}

static void dense_run(const dense_layer *d) {
  const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, d->memory[0]},
                                  {DNNL_ARG_WEIGHTS, d->memory[1]},
                                  {DNNL_ARG_BIAS, d->memory[2]},
                                  {DNNL_ARG_DST, d->memory[3]}};
  if (dnnl_primitive_execute(d->primitive, d->stream, 4, args)) die("dnnl_primitive_execute");
  (void)dnnl_stream_wait(d->stream);
}

static void dense_clear(dense_layer *d) {
  for (int at = 0; at < 4; at++) {
    if (d->memory[at]) (void)dnnl_memory_destroy(d->memory[at]);
  }
  if (d->primitive) (void)dnnl_primitive_destroy(d->primitive);
  (void)dnnl_stream_destroy(d->stream);
}

/* ---- ours ---- */

typedef struct sparse_layer {
  laci_sparse_convolution convolution;
  laci_sparse_operands o;
  laci_code_cache *cache;
  laci_sparse_code *code;    /* NULL: not here */
  laci_csr csr;              /* of floats */
  laci_grouped_rows grouped; /* of floats */
  laci_winograd4 tiles;      /* of 3x3, of floats */
  laci_winograd4_block block;
  float *points, *sums, *weights; /* of a block; NULL: not here */
  void *scratch, *x, *y, *bias;
  float *scale; /* of int8, and the rest: */
  laci_sparse_quantized quantized;
  int64_t n_x;
  double made_seconds;
} sparse_layer;

static void make_code(sparse_layer *s, const settings *set) {
  lac_error err = {0};
  const laci_sparse_extent extent = {s->convolution.tiles, s->convolution.n_tiles, s->n_x, 1};
  laci_sparse_cut cut = laci_sparse_choose_cut(&s->convolution.product, set->isa, &extent);
  if (set->cut.rows) cut.rows = set->cut.rows;
  if (set->cut.terms) cut.terms = set->cut.terms;
  if (set->cut.chunk_tiles) cut.chunk_tiles = set->cut.chunk_tiles;
  if (!set->x_ahead) cut.x_prefetch_distance = 0;
  if (set->order) cut.columns_first = !strcmp(set->order, "columns");
  const laci_sparse_options options = {
      .isa = set->isa, .after = {.low = set->values != LACI_SPARSE_S8}, .cut = cut};
  if (laci_code_cache_create(CODE_LIMIT, &s->cache, &err) ||
      laci_sparse_code_create(&s->convolution.product, &options, s->cache, &s->code, &err) ||
      laci_code_cache_seal(s->cache, &err)) {
    die(err.text);
  }
  laci_sparse_code_set_weights(s->code, s->convolution.kept.weight);
  s->scratch = large_pages(laci_sparse_code_scratch_bytes(s->code, 1), 1);
}

static void make_tiles(sparse_layer *s, const laci_sparse_window *g,
                       const laci_sparse_layouts *layouts, const float *dense) {
  lac_error err = {0};
  if (!laci_winograd4_can_compute(g)) return;
  if (laci_winograd4_init(g, layouts, &s->tiles, &err)) die(err.text);
  s->weights = large_pages(laci_winograd4_weight_bytes(g), 1);
  laci_winograd4_transform_weights(&s->tiles, dense,
                                   (int64_t[]){0, laci_winograd4_n_groups(&s->tiles)}, s->weights);
  s->block =
      laci_winograd4_block_of_units(&s->tiles, 0, laci_winograd4_units_per_block(&s->tiles, false));
  const int64_t n_points = laci_winograd4_block_floats(&s->tiles, &s->block, s->tiles.sources);
  const int64_t n_sums = laci_winograd4_block_floats(&s->tiles, &s->block, g->channels_out);
  s->points = large_pages((size_t)n_points, sizeof *s->points);
  s->sums = large_pages((size_t)n_sums, sizeof *s->sums);
}

static void tiles_run(const sparse_layer *s) {
  const laci_winograd4 *w = &s->tiles;
  const laci_winograd4_kernel k = laci_winograd4_variant(w);
  const int64_t units = s->block.last, in = w->window.channels_in, out = w->window.channels_out;
  for (int64_t unit = 0; unit < w->n_units; unit += units) {
    const int64_t last = unit + units < w->n_units ? unit + units : w->n_units;
    const laci_winograd4_block b = laci_winograd4_block_of_units(w, unit, last);
    k.transform(w, &b, s->o.x, (int64_t[]){0, in}, s->points);
    k.multiply(w, &b, s->weights, s->points, (int64_t[]){0, w->points}, s->sums);
    k.finish(w, &b, s->sums, (int64_t[]){0, out}, &s->o);
  }
}

/* N of M kept by chance, in `together` rows the same ones. */
static void draw_mask(const layer *l, const settings *set, uint8_t *kept) {
  const int64_t taps = l->window * l->window;
  for (int64_t row = 0; row < l->out; row++) {
    for (int64_t tap = 0; tap < taps; tap++) {
      for (int64_t in = 0, left = 0; in < l->in; in++) {
        const int64_t at = in % set->m;
        if (at == 0) left = set->n;
        const uint64_t place = (uint64_t)(in * taps + tap), rows = (uint64_t)(row / set->together);
        const bool is_kept =
            (int64_t)laci_rng_integer_below(1, rows, place, (uint64_t)(set->m - at)) < left;
        kept[(row * l->in + in) * taps + tap] = is_kept;
        left -= is_kept;
      }
    }
  }
}

static laci_sparse_window window_of(const layer *l, const settings *set) {
  laci_sparse_window g = layer_window(l);
  g.values = set->values;
  return g;
}

/* Can code, and Winograd's algorithm, read rows without zeros between them? */
static bool may_be_unpadded(const layer *l, int64_t n, const settings *set) {
  const laci_sparse_window g = window_of(l, set);
  return l->window > 1 && n < LANES && set->isa == LACI_JIT_AVX512 &&
         laci_sparse_may_be_unpadded(&g);
}

static laci_sparse_layout unpadded_chw(const laci_sparse_window *g) {
  laci_sparse_border border = laci_sparse_needed_border(g);
  border.left = border.right = 0;
  return laci_sparse_padded_layout(LACI_FORMAT_CHW, g->channels_in, g->h, g->w, border);
}

static void sparse_init(sparse_layer *s, const layer *l, int64_t n, const settings *set,
                        bool is_unpadded) {
  const int64_t taps = l->window * l->window;
  const laci_sparse_window g = window_of(l, set);
  const bool few = n < LANES;
  const int64_t n_groups = few ? n : n / LANES;
  const laci_memory_format ones = few ? LACI_FORMAT_PC16P : LACI_FORMAT_HWC16N;
  const laci_memory_format threes = few ? LACI_FORMAT_CHW : LACI_FORMAT_HWC16N;
  const laci_sparse_layout in =
      is_unpadded ? unpadded_chw(&g) : laci_sparse_input_layout(l->window == 1 ? ones : threes, &g);
  const laci_sparse_layout out = laci_sparse_output_layout(ones, &g, &in, (laci_sparse_border){0});
  const int64_t n_dense = l->out * l->in * taps;
  uint8_t *kept = large_pages((size_t)n_dense, 1);
  float *dense = large_pages((size_t)n_dense, sizeof *dense);
  lac_error err = {0};
  draw_mask(l, set, kept);
  for (int64_t at = 0; at < n_dense; at++) {
    const float unit = (float)laci_rng_unit_interval(2, 0, (uint64_t)at) - 0.5F;
    dense[at] = set->values == LACI_SPARSE_S8 ? rintf(254 * unit) : unit;
  }
  const laci_sparse_layouts layouts = {in, out, n_groups};
  *s = (sparse_layer){.bias = large_pages((size_t)l->out, sizeof(float)),
                      .n_x = in.n_floats * n_groups};
  const double start = laci_clock_seconds();
  if (laci_sparse_convolution_init(&g, kept, &layouts, &s->convolution, &err)) die(err.text);
  laci_sparse_convolution_set_weights(&s->convolution, dense);
  if (set->isa != LACI_JIT_NONE) make_code(s, set);
  s->made_seconds = laci_clock_seconds() - start;
  const laci_csr_cut cut = {s->convolution.tiles, s->convolution.n_tiles, LACI_CSR_MOST_ROWS};
  const bool has_compiled = set->values == LACI_SPARSE_F32 && !is_unpadded;
  if (has_compiled &&
      (laci_csr_init(&s->convolution.product, s->convolution.kept.weight, &cut, &s->csr, &err) ||
       laci_grouped_rows_init(&s->convolution.product, s->convolution.kept.weight, l->out,
                              &s->grouped, &err))) {
    die(err.text);
  }
  make_tiles(s, &g, &layouts, dense);
  s->x = large_pages((size_t)s->n_x, sizeof(float));
  s->y = large_pages((size_t)(out.n_floats * n_groups), sizeof(float));
  draw(3, (size_t)s->n_x, set->values, s->x);
  s->o = (laci_sparse_operands){.weight = s->convolution.kept.weight,
                                .bias = s->bias,
                                .x = s->x,
                                .y = s->y,
                                .low = 0,
                                .high = 1e30F};
  if (set->values != LACI_SPARSE_S8) return;
  s->scale = large_pages((size_t)l->out, sizeof *s->scale);
  for (int64_t row = 0; row < l->out; row++) s->scale[row] = 1e-4F;
  s->quantized = (laci_sparse_quantized){.bias = s->bias, .scale = s->scale, .high = UINT8_MAX};
  s->o.quantized = &s->quantized; /* u8 is a Relu by itself */
}

static void sparse_clear(sparse_layer *s) {
  laci_sparse_code_destroy(s->code);
  laci_code_cache_destroy(s->cache);
  laci_sparse_convolution_clear(&s->convolution);
  laci_csr_clear(&s->csr);
  laci_grouped_rows_clear(&s->grouped);
  laci_winograd4_clear(&s->tiles);
}

static void csr_run(const sparse_layer *s) {
  const int64_t n_tiles = s->convolution.n_tiles, n_strips = laci_csr_n_strips(n_tiles);
  for (int64_t chunk = 0; chunk < s->csr.n_chunks; chunk++) {
    for (int64_t strip = 0; strip < n_strips; strip++) {
      const int64_t first = laci_sparse_strip_begin(n_tiles, n_strips, strip);
      const int64_t last = laci_sparse_strip_begin(n_tiles, n_strips, strip + 1);
      laci_csr_variant()(&s->csr, &s->o, chunk, s->convolution.tiles + first, last - first);
    }
  }
}

static void grouped_rows_run(const sparse_layer *s) {
  const int64_t n_units = laci_grouped_rows_n_vectors(s->convolution.tiles, s->convolution.n_tiles);
  const int64_t n_strips = laci_grouped_rows_n_strips(n_units);
  for (int64_t chunk = 0; chunk < s->grouped.n_chunks; chunk++) {
    for (int64_t strip = 0; strip < n_strips; strip++) {
      const int64_t first = laci_sparse_strip_begin(n_units, n_strips, strip);
      const int64_t last = laci_sparse_strip_begin(n_units, n_strips, strip + 1);
      laci_grouped_rows_variant()(&s->grouped, &s->o, chunk, s->convolution.tiles, first, last);
    }
  }
}

static void sparse_run(sparse_layer *s, bool generated) {
  const laci_sparse_convolution *f = &s->convolution;
  if (generated) {
    laci_sparse_code_run(s->code, &s->o, f->tiles, f->n_tiles, NULL, s->scratch);
  } else if (s->csr.n_chunks > 0) {
    csr_run(s);
  } else {
    laci_sparse_multiply_scalar(&f->product, &s->o,
                                &(laci_sparse_part){f->tiles, 0, f->n_tiles, 0, f->product.n_rows});
  }
}

/* ---- the table ---- */

/* `s`: the layer for generated code and for Winograd's algorithm; `compiled`: for CSR and grouped
 * rows. */
static void measure(const dense_layer d[2], sparse_layer *s, sparse_layer *compiled,
                    const settings *set, double least[ALGORITHMS]) {
  for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) least[algorithm] = 0;
  for (int round = 0; round < set->rounds; round++) {
    for (int algorithm = 0; algorithm < ALGORITHMS; algorithm++) {
      if (algorithm < GENERATED && !d[algorithm].primitive) continue;
      if (algorithm == GENERATED && !s->code) continue;
      if (algorithm == COMPILED && set->without_compiled) continue;
      if (algorithm == GROUPED_ROWS && compiled->grouped.n_chunks == 0) continue;
      if (algorithm == TILES && !s->weights) continue;
      const double start = laci_clock_seconds();
      if (algorithm < GENERATED) dense_run(&d[algorithm]);
      else if (algorithm == TILES) tiles_run(s);
      else if (algorithm == GROUPED_ROWS) grouped_rows_run(compiled);
      else sparse_run(algorithm == GENERATED ? s : compiled, algorithm == GENERATED);
      const double seconds = laci_clock_seconds() - start;
      if (least[algorithm] == 0 || seconds < least[algorithm]) least[algorithm] = seconds;
    }
  }
}

/* A time, and the one of direct over it. */
static void show_algorithm(const double least[ALGORITHMS], int algorithm) {
  if (least[algorithm] > 0)
    printf(" %9.1f %6.2f", 1e6 * least[algorithm], least[DIRECT] / least[algorithm]);
  else printf(" %9s %6s", "-", "-");
}

static void show(const layer *l, int64_t n, const settings *set) {
  char name[64];
  double least[ALGORITHMS];
  sparse_layer s, with_zeros = {0};
  (void)snprintf(name, sizeof name, "%lldx%lld %4lld->%-4lld %2lld px b%lld", (long long)l->window,
                 (long long)l->window, (long long)l->in, (long long)l->out, (long long)l->size,
                 (long long)n);
  if (set->only && !strstr(name, set->only)) return;
  dense_layer d[WINOGRAD + 1] = {dense_of(l, n, dnnl_convolution_direct, set->values)};
  if (l->window == 3 && set->values == LACI_SPARSE_F32) {
    d[WINOGRAD] = dense_of(l, n, dnnl_convolution_winograd, set->values);
  }
  const bool is_unpadded = may_be_unpadded(l, n, set);
  sparse_init(&s, l, n, set, is_unpadded);
  if (is_unpadded) sparse_init(&with_zeros, l, n, set, false);
  measure(d, &s, is_unpadded ? &with_zeros : &s, set, least);
  printf("%-26s %9.1f", name, 1e6 * least[DIRECT]);
  if (least[WINOGRAD] > 0) printf(" %9.1f", 1e6 * least[WINOGRAD]);
  else printf(" %9s", "-");
  static const int algorithms[] = {TILES, GENERATED, COMPILED, GROUPED_ROWS};
  for (size_t at = 0; at < sizeof algorithms / sizeof *algorithms; at++)
    show_algorithm(least, algorithms[at]);
  if (s.code) {
    const double operations =
        2.0 * (double)(l->in * l->out * l->window * l->window) * (double)(l->size * l->size * n);
    const double bytes =
        (double)(laci_code_cache_code_bytes(s.cache) + laci_code_cache_data_bytes(s.cache));
    printf(" %6.0f %6.0f %6.1f %7.2f %7.1f", 1e-9 * operations / least[DIRECT],
           1e-9 * operations / least[GENERATED], bytes / (double)s.convolution.n_kept,
           1e3 * s.made_seconds, 1e9 * s.made_seconds / (double)s.convolution.n_kept);
  }
  printf("\n");
  (void)fflush(stdout);
  for (int at = 0; at < 2; at++) {
    if (d[at].stream) dense_clear(&d[at]);
  }
  sparse_clear(&s);
  if (is_unpadded) sparse_clear(&with_zeros);
}

static void take_pattern(const char *text, settings *set) {
  const char *colon = strchr(text, ':');
  set->n = atoi(text);
  set->m = colon ? atoi(colon + 1) : 0;
  if (set->n < 1 || set->m <= set->n || set->m > 64) die("--pattern N:M");
}

static laci_sparse_values values_of(const char *dtype) {
  if (!strcmp(dtype, "bf16")) return LACI_SPARSE_BF16;
  if (!strcmp(dtype, "int8")) return LACI_SPARSE_S8;
  if (strcmp(dtype, "f32") != 0) die("--dtype f32|bf16|int8");
  return LACI_SPARSE_F32;
}

static settings settings_of(int argc, char **argv) {
  settings set = {.rounds = 30, .x_ahead = 1, .n = 2, .m = 4, .together = 1};
  set.isa = laci_jit_isa_in_force();
  for (int at = 1; at + 1 < argc; at += 2) {
    const char *word = argv[at], *value = argv[at + 1];
    if (!strcmp(word, "--rounds")) set.rounds = atoi(value);
    else if (!strcmp(word, "--only")) set.only = value;
    else if (!strcmp(word, "--pattern")) take_pattern(value, &set);
    else if (!strcmp(word, "--together")) set.together = atoi(value);
    else if (!strcmp(word, "--order")) set.order = value;
    else if (!strcmp(word, "--compiled")) set.without_compiled = !strcmp(value, "no");
    else if (!strcmp(word, "--dtype")) set.values = values_of(value);
    else if (!strcmp(word, "--rows")) set.cut.rows = atoi(value);
    else if (!strcmp(word, "--terms")) set.cut.terms = atoi(value);
    else if (!strcmp(word, "--chunk")) set.cut.chunk_tiles = atoi(value);
    else if (!strcmp(word, "--x-ahead")) set.x_ahead = atoi(value);
    else if (!strcmp(word, "--isa") && !strcmp(value, "avx2")) {
      (void)laci_cpu_limit_level(LACI_CPU_AVX2);
      (void)setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
      set.isa = laci_jit_isa_in_force();
    } else {
      die("usage: see the head of bench/sparse_bench.c");
    }
  }
  if (set.values == LACI_SPARSE_BF16) set.isa = laci_jit_isa_for_bf16(set.isa);
  if (set.values == LACI_SPARSE_S8) set.isa = laci_jit_isa_for_int8(set.isa);
  return set;
}

int main(int argc, char **argv) {
  const settings set = settings_of(argc, argv);
  (void)laci_openmp_set_threads(1);
  if (dnnl_engine_create(&engine, dnnl_cpu, 0)) die("dnnl_engine_create");
  printf("generated code: %s; one core; microseconds; GF/s count dense operations\n",
         laci_jit_isa_name(set.isa));
  printf("%-26s %9s %9s %9s %6s %9s %6s %9s %6s %9s %6s %6s %6s %6s %7s %7s\n", "layer", "direct",
         "winograd", "tiles", "ratio", "generated", "ratio", "compiled", "ratio", "grouped",
         "ratio", "GF/s d", "GF/s g", "B/kept", "made ms", "ns/kept");
  for (int64_t n = 1; n <= LANES; n += LANES - 1) {
    for (size_t at = 0; at < sizeof layers / sizeof *layers; at++) show(&layers[at], n, &set);
  }
  (void)dnnl_engine_destroy(engine);
  return 0;
}
