/* SPDX-License-Identifier: Apache-2.0
 * The three products of single convolutions of ResNet-50 in training, with 2:4 weights, against
 * oneDNN's dense ones, on one core: forward, the gradient of the input, the gradient of the weights
 * (ours of kept ones alone); and what reorders between oneDNN's layout and HWC16N take. All of a
 * layer are run alternately, and the least processor time counts.
 *
 * oneDNN has two algorithms: direct in blocks of 16 channels, and for 3x3 Winograd's algorithm or,
 * in bf16, direct with channels last. The faster one is shown; of gradients of weights both are.
 *
 *     sparse_train_bench [--rounds N] [--only TEXT] [--batch N] [--dtype f32|bf16] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/openmp.h"
#include "engine/cpu/onednn/backward.h"
#include "jit/cache.h"
#include "jit/sparse_code.h"
#include "kernel/sparse/gradient.h"
#include "kernel/sparse/bf16_pairs.h"
#include "kernel/sparse/reorder.h"
#include "large_pages.h"
#include "layers.h"

enum { CODE_LIMIT = 128 << 20, LANES = LACI_SPARSE_LANES };
enum { FORWARD, DATA, WEIGHTS, N_PRODUCTS };
enum { X, Y, N_ENDS };
enum { DIRECT, OTHER, N_ALGORITHMS };
static bool bf16;
static laci_sparse_values values;

static _Noreturn void die(const char *what) {
  (void)fprintf(stderr, "sparse_train_bench: %s\n", what);
  exit(1);
}

/* Processor time of this thread, which other load changes little. */
static double cpu_seconds(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* n floats, or bf16 pairs. */
static float *draw(size_t n, uint64_t seed, bool pairs) {
  float *to = large_pages(n, sizeof *to);
  for (size_t at = 0; at < n; at++) {
    const float x = (float)laci_rng_unit_interval(seed, 0, at) - 0.5F;
    const uint32_t pair = laci_bf16_pair(x, 0.25F - x);
    if (pairs) memcpy(to + at, &pair, sizeof pair);
    else to[at] = x;
  }
  return to;
}

/* ---- oneDNN ---- */

static dnnl_engine_t engine;
static dnnl_stream_t stream;

typedef struct dense_layer {
  dnnl_primitive_t primitive[N_PRODUCTS]; /* NULL: it has none */
  dnnl_memory_t x, y, weights[N_PRODUCTS];
} dense_layer;

static dnnl_memory_t memory_of(laci_md_view md, uint64_t seed) {
  dnnl_memory_t memory;
  float *bytes = draw(dnnl_memory_desc_get_size(md) / sizeof(float), seed, bf16);
  if (dnnl_memory_create(&memory, md, engine, bytes)) die("dnnl_memory_create");
  return memory;
}

static dense_layer dense_of(const layer *l, int64_t n, dnnl_alg_kind_t alg, dnnl_format_tag_t tag) {
  const dnnl_data_type_t type = bf16 ? dnnl_bf16 : dnnl_f32;
  const int64_t x[4] = {n, l->in, l->size, l->size}, y[4] = {n, l->out, l->size, l->size};
  const int64_t weights[4] = {l->out, l->in, l->window, l->window};
  const int pad = (int)l->window / 2;
  const laci_dnnl_window w = {.n_spatial = 2,
                              .kernel = {l->window, l->window},
                              .strides = {1, 1},
                              .pads_begin = {pad, pad},
                              .pads_end = {pad, pad}};
  laci_md md_x, md_y, md_w;
  dense_layer d = {.x = NULL};
  dnnl_primitive_desc_t pd[N_PRODUCTS] = {NULL};
  if (!laci_md_create_tagged(&md_x, 4, x, type, tag) ||
      !laci_md_create_tagged(&md_y, 4, y, type, tag) ||
      !laci_md_create_any(&md_w, 4, weights, type)) {
    die("a descriptor");
  }
  const laci_md_view forward[4] = {md_x, md_w, NULL, md_y};
  const laci_dnnl_triple triple = {alg, md_x, md_w, md_y};
  if (laci_pd_create_conv(&pd[FORWARD], engine, (laci_dnnl_conv){dnnl_forward_training, alg, NULL},
                          forward, &w, NULL) == dnnl_success) {
    (void)laci_pd_create_conv_input_gradient(&pd[DATA], engine, triple, &w, pd[FORWARD], NULL);
    (void)laci_pd_create_conv_weight_gradient(&pd[WEIGHTS], engine, triple, &w, pd[FORWARD], NULL);
  }
  d.x = memory_of(md_x, 1);
  d.y = memory_of(md_y, 2);
  for (int at = 0; at < N_PRODUCTS; at++) {
    if (!pd[at]) continue;
    const dnnl_query_t what = at == WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md;
    d.weights[at] = memory_of(dnnl_primitive_desc_query_md(pd[at], what, 0), 3);
    if (dnnl_primitive_create(&d.primitive[at], pd[at])) die("dnnl_primitive_create");
    (void)dnnl_primitive_desc_destroy(pd[at]);
  }
  laci_md_destroy(md_x);
  laci_md_destroy(md_y);
  laci_md_destroy(md_w);
  return d;
}

static void dense_run(const dense_layer *d, int product) {
  static const int codes[N_PRODUCTS][3] = {
      {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
      {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
      {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
  };
  const int *code = codes[product];
  const dnnl_exec_arg_t args[] = {{code[0], d->x}, {code[1], d->weights[product]}, {code[2], d->y}};
  if (dnnl_primitive_execute(d->primitive[product], stream, 3, args)) die("dnnl_primitive_execute");
  (void)dnnl_stream_wait(stream);
}

/* ---- ours ---- */

typedef struct sparse_layer {
  laci_sparse_convolution convolution[2]; /* forward, and of the input's gradient */
  laci_code_cache *cache;
  laci_sparse_code *code[2];
  laci_sparse_reorder reorder[N_ENDS]; /* of oneDNN's */
  float *values[N_ENDS], *dense[N_ENDS], *bias;
  void *scratch;
  laci_sparse_gradient gradient;
  float *gradients, *gradient_scratch;
} sparse_layer;

/* Two of four inputs kept by chance; seen from the other end, too. */
static uint8_t *mask_of(const layer *l, bool transposed) {
  static const uint8_t patterns[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  const int64_t taps = l->window * l->window;
  uint8_t *kept = large_pages((size_t)(l->out * l->in * taps), 1);
  for (int64_t row = 0; row < l->out; row++) {
    for (int64_t block = 0; block < l->in / 4 * taps; block++) {
      const int64_t tap = block % taps;
      const uint8_t *two = patterns[laci_rng_integer_below(1, (uint64_t)row, (uint64_t)block, 6)];
      for (int at = 0; at < 2; at++) {
        const int64_t channel = block / taps * 4 + two[at];
        if (transposed) kept[(channel * l->out + row) * taps + taps - 1 - tap] = 1;
        else kept[(row * l->in + channel) * taps + tap] = 1;
      }
    }
  }
  return kept;
}

static void make_code(sparse_layer *s, int product, int64_t n_x) {
  const laci_sparse_convolution *f = &s->convolution[product];
  const laci_sparse_extent extent = {f->tiles, f->n_tiles, n_x, 1};
  const laci_jit_isa isa = bf16 ? laci_jit_isa_for_bf16(LACI_JIT_AVX512) : LACI_JIT_AVX512;
  const laci_sparse_options options = {.isa = isa,
                                       .cut = laci_sparse_choose_cut(&f->product, isa, &extent)};
  lac_error err = {0};
  if (laci_sparse_code_create(&f->product, &options, s->cache, &s->code[product], &err))
    die(err.text);
  laci_sparse_code_set_weights(s->code[product], draw((size_t)f->n_kept, 4, false));
}

static void sparse_init(sparse_layer *s, const layer *l, int64_t n) {
  const int64_t pad = l->window / 2, channels[N_ENDS] = {l->in, l->out};
  const laci_sparse_border border = {pad, pad, pad, pad, 1, 1};
  laci_sparse_layout ends[N_ENDS];
  lac_error err = {0};
  if (laci_code_cache_create(CODE_LIMIT, &s->cache, &err)) die(err.text);
  for (int end = 0; end < N_ENDS; end++) {
    const int64_t places = laci_sparse_layout_channels(channels[end], values);
    const laci_sparse_size size = {places, l->size, l->size, n};
    const laci_memory_format format = bf16 ? LACI_FORMAT_HWC : LACI_FORMAT_CHW16C;
    ends[end] = laci_sparse_padded_layout(LACI_FORMAT_HWC16N, places, l->size, l->size, border);
    s->values[end] = draw((size_t)(ends[end].n_floats * n / LANES), 5, bf16);
    s->dense[end] = draw((size_t)(places * l->size * l->size * n), 5, bf16);
    s->reorder[end] = (laci_sparse_reorder){
        .from = laci_sparse_layout_contiguous(format, places, l->size, l->size),
        .to = ends[end],
        .size = size,
        .stride_h = 1,
        .stride_w = 1};
  }
  for (int product = 0; product < 2; product++) {
    const layer transposed = {channels[product], channels[1 - product], l->size, l->window};
    laci_sparse_window g = layer_window(&transposed);
    g.values = values;
    const laci_sparse_layouts layouts = {ends[product], ends[1 - product], n / LANES};
    if (laci_sparse_convolution_init(&g, mask_of(l, product == DATA), &layouts,
                                     &s->convolution[product], &err)) {
      die(err.text);
    }
    make_code(s, product, ends[product].n_floats * n / LANES);
  }
  if (laci_code_cache_seal(s->cache, &err)) die(err.text);
  const size_t forward = laci_sparse_code_scratch_bytes(s->code[FORWARD], 1);
  const size_t data = laci_sparse_code_scratch_bytes(s->code[DATA], 1);
  s->scratch = large_pages(forward > data ? forward : data, 1);
  s->bias = large_pages((size_t)(l->in + l->out), sizeof(float));
  const laci_sparse_convolution *f = &s->convolution[FORWARD];
  if (laci_sparse_gradient_init(&f->product, f->tiles, f->n_tiles, &s->gradient, &err)) {
    die(err.text);
  }
  s->gradients = large_pages((size_t)f->n_kept, sizeof(float));
  s->gradient_scratch =
      large_pages(laci_sparse_gradient_scratch_floats(&s->gradient), sizeof(float));
}

static void sparse_run(sparse_layer *s, int product) {
  if (product == WEIGHTS) {
    const laci_sparse_gradient_operands slopes = {s->values[X], s->values[Y], s->gradients,
                                                  s->gradient_scratch};
    (bf16 ? laci_sparse_gradient_bf16_variant() : laci_sparse_gradient_variant())(
        &s->gradient, &slopes, 0, s->gradient.n_items);
    return;
  }
  const laci_sparse_convolution *f = &s->convolution[product == DATA];
  const laci_sparse_operands o = {.bias = s->bias,
                                  .x = s->values[product == DATA ? Y : X],
                                  .y = s->values[product == DATA ? X : Y]};
  laci_sparse_code_run(s->code[product], &o, f->tiles, f->n_tiles, NULL, s->scratch);
}

static void reorder_run(sparse_layer *s, int end) {
  const laci_sparse_reorder *r = &s->reorder[end];
  laci_sparse_reorder_variant()(r, s->dense[end], s->values[end], 0,
                                laci_sparse_reorder_n_items(r));
}

static void sparse_clear(sparse_layer *s) {
  for (int product = 0; product < 2; product++) {
    laci_sparse_code_destroy(s->code[product]);
    laci_sparse_convolution_clear(&s->convolution[product]);
  }
  laci_sparse_gradient_clear(&s->gradient);
  laci_code_cache_destroy(s->cache);
}

/* ---- the table ---- */

typedef struct times {
  double dense[N_PRODUCTS][N_ALGORITHMS], sparse[N_PRODUCTS], reorder[N_ENDS];
} times;

static void least_of(double *least, double start) {
  const double seconds = cpu_seconds() - start;
  if (*least == 0 || seconds < *least) *least = seconds;
}

static times measure(const dense_layer d[N_ALGORITHMS], sparse_layer *s, int rounds) {
  times t = {.dense = {{0}}};
  for (int round = 0; round < rounds; round++) {
    for (int product = 0; product < N_PRODUCTS; product++) {
      for (int algorithm = 0; algorithm < N_ALGORITHMS; algorithm++) {
        const double start = cpu_seconds();
        if (!d[algorithm].primitive[product]) continue;
        dense_run(&d[algorithm], product);
        least_of(&t.dense[product][algorithm], start);
      }
      const double start = cpu_seconds();
      sparse_run(s, product);
      least_of(&t.sparse[product], start);
    }
    for (int end = 0; end < N_ENDS; end++) {
      const double start = cpu_seconds();
      reorder_run(s, end);
      least_of(&t.reorder[end], start);
    }
  }
  return t;
}

static void show(const layer *l, int64_t n, int rounds, const char *only) {
  char name[64];
  sparse_layer s = {.cache = NULL};
  (void)snprintf(name, sizeof name, "%lldx%lld %4lld->%-4lld %2lld px b%lld", (long long)l->window,
                 (long long)l->window, (long long)l->in, (long long)l->out, (long long)l->size,
                 (long long)n);
  if (only && !strstr(name, only)) return;
  dense_layer d[N_ALGORITHMS] = {dense_of(l, n, dnnl_convolution_direct, dnnl_nChw16c)};
  if (bf16) d[OTHER] = dense_of(l, n, dnnl_convolution_direct, dnnl_nhwc);
  else if (l->window == 3) d[OTHER] = dense_of(l, n, dnnl_convolution_winograd, dnnl_nChw16c);
  sparse_init(&s, l, n);
  const times t = measure(d, &s, rounds);
  printf("%-26s", name);
  for (int at = 0; at < N_PRODUCTS; at++) {
    const double *dense = t.dense[at], ours = t.sparse[at];
    const double least =
        dense[OTHER] != 0 && dense[OTHER] < dense[DIRECT] ? dense[OTHER] : dense[DIRECT];
    if (at == WEIGHTS) printf(" %9.0f", 1e6 * dense[DIRECT]);
    printf(" %9.0f %9.0f", 1e6 * (at == WEIGHTS ? dense[OTHER] : least), 1e6 * ours);
    if (at == WEIGHTS) printf(" %6.2f", dense[DIRECT] / ours);
    printf(" %6.2f", least / ours);
  }
  printf(" %9.0f %9.0f\n", 1e6 * t.reorder[X], 1e6 * t.reorder[Y]);
  (void)fflush(stdout);
  sparse_clear(&s); /* all else lives as long as the program */
}

int main(int argc, char **argv) {
  int64_t batch = LANES;
  int rounds = 20;
  const char *only = NULL;
  for (int at = 1; at + 1 < argc; at += 2) {
    if (!strcmp(argv[at], "--rounds")) rounds = atoi(argv[at + 1]);
    else if (!strcmp(argv[at], "--batch")) batch = atoi(argv[at + 1]);
    else if (!strcmp(argv[at], "--only")) only = argv[at + 1];
    else if (!strcmp(argv[at], "--dtype")) bf16 = !strcmp(argv[at + 1], "bf16");
    else die("usage: see the head of bench/sparse_train_bench.c");
  }
  if (laci_jit_isa_in_force() != LACI_JIT_AVX512) die("no AVX-512");
  values = bf16 ? LACI_SPARSE_BF16 : LACI_SPARSE_F32;
  if (bf16 && laci_jit_isa_for_bf16(LACI_JIT_AVX512) == LACI_JIT_NONE) die("no AVX512-BF16");
  if (batch < LANES || batch % LANES) die("images come by sixteens");
  (void)laci_openmp_set_threads(1);
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) ||
      dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)) {
    die("dnnl_engine_create");
  }
  printf("one core; microseconds; %s\n%-26s %9s %9s %6s %9s %9s %6s %9s %9s %9s %6s %6s %9s %9s\n",
         bf16 ? "bf16, the other algorithm is channels last" : "the other algorithm is Winograd's",
         "layer", "forward", "2:4", "ratio", "d input", "2:4", "ratio", "d weights", "other", "2:4",
         "direct", "least", "reorder x", "reorder y");
  for (size_t at = 0; at < sizeof layers / sizeof *layers; at++) {
    show(&layers[at], batch, rounds, only);
  }
  return 0;
}
