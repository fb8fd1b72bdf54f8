/* SPDX-License-Identifier: Apache-2.0
 * What layers cost by each way, where they were not timed: an estimate in multiply-adds of the peak
 * of one core, from the layer's shape, the share of weights that are kept, and what code streams
 * from memory. docs/sparse-kernels.md has the measurements that it comes from. */
#include <math.h>

#include "base/divide.h"
#include "engine/cpu/onednn/convolution.h"
#include "kernel/sparse/winograd4.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/choose/choose.h"
#include "engine/cpu/native/algorithms/algorithms.h"

typedef struct constants {
  double least_gain;      /* with less to be gained, no layer is sparse */
  double step;            /* of a step, whatever it does */
  double generated_share; /* of the peak that generated code reaches; 0 below: as this one */
  double generated_far;   /* the same of many columns of images, which stay in no first cache */
  double compiled_share;  /* where there is none */
  double reorder;         /* of an element */
  double norm_of_images;  /* of one that is normalised into images; into others it is as fast as
                             not */
  double stream; /* of a weight and its code, 12 bytes, of bf16 7, while others are at work */
  double first;  /* of these, while nobody else is: the first tile of a chunk waits for its code */
  double result; /* of a result, beside its terms */
  double csr, csr_window; /* shares of the peak that lists reach: windows of one pixel, or of
                             images, and others, whose vectors lie anywhere */
  double bundles, bundles_window; /* the same of bundles, where these gain */
  double bundles_few;             /* how much of it few rows have */
  double strip;                   /* units of a strip of bundles that are lost */
  double bundles_weight;          /* of a kept weight, which comes from memory */
  double bundles_result;          /* of a result, of images more */
  double bundles_of_images;
  double winograd;    /* share of the peak that sums of transformed tiles reach; 0: unknown */
  double parts;       /* of its three parts, between which threads wait for each other */
  double tile;        /* of a transform of a tile of a channel, in or out */
  double tile_far;    /* the same of pixels that do not stay in caches */
  double transformed; /* of a transformed weight, which comes from memory */
  double small;       /* how much longer dense kernels take for few pixels than for many */
  double depthwise_dense, depthwise; /* shares of the peak that windows of one channel reach: by
                                        oneDNN, and by ours with what writing planes costs */
  double depthwise_images;
  double by_gemm, in_blocks, in_groups; /* groups_cost; 0: they take as long as one group */
} constants;

/* What all layers of floats have. */
#define OF_FLOATS .least_gain = 1e6, .step = 1e5, .depthwise_dense = 0.35

static const constants of_f32 = {
    OF_FLOATS,          .generated_share = 0.8, .compiled_share = 0.22,
    .reorder = 50,      .stream = 60,           .csr = 0.22,
    .csr_window = 0.22, .depthwise = 0.1,       .depthwise_images = 0.27,
    .winograd = 0.9,    .parts = 1.5e6,         .tile = 750,
    .tile_far = 1600,   .transformed = 4,       .small = 1};
/* Code takes 27 bytes a weight, and a result has six rows' to share what is done around it. */
static const constants of_avx2 = {OF_FLOATS,
                                  .generated_share = 0.77,
                                  .reorder = 80,
                                  .norm_of_images = 80,
                                  .first = 34,
                                  .result = 6,
                                  .generated_far = .67,
                                  .csr = 0.7,
                                  .csr_window = 0.57,
                                  .depthwise = 0.25,
                                  .depthwise_images = 0.2,
                                  .bundles = .97,
                                  .bundles_window = .87,
                                  .bundles_few = .78,
                                  .strip = .6,
                                  .bundles_weight = 26,
                                  .bundles_result = 16,
                                  .bundles_of_images = 25,
                                  .winograd = 0.92,
                                  .parts = 3e6,
                                  .by_gemm = 15,
                                  .in_blocks = 2.8,
                                  .in_groups = 2,
                                  .tile = 750,
                                  .tile_far = 750,
                                  .transformed = 6,
                                  .small = 1.18};
/* Nobody has measured it: what keeps half is dense where it is not timed, and what keeps less is
 * not. */
static const constants of_neon = {OF_FLOATS,
                                  .generated_share = 0.5,
                                  .reorder = 50,
                                  .first = 22,
                                  .result = 6,
                                  .csr = 0.22,
                                  .csr_window = 0.22,
                                  .depthwise = 0.25,
                                  .depthwise_images = 0.2,
                                  .small = 1};
/* As many as four floats' multiply-adds take as long; what keeps less than half takes as long as
 * half, and what keeps more twice as long. Code takes 4.6 bytes a kept weight. */
static const constants of_int8 = {
    .generated_share = 3.2, .compiled_share = 0.05, .stream = 23, .result = 1, .small = 1};
/* Twice as many multiply-adds take as long. */
static const constants of_bf16 = {.least_gain = 2e6,
                                  .step = 4e5,
                                  .generated_share = 0.85,
                                  .compiled_share = 0.02,
                                  .reorder = 20,
                                  .stream = 80,
                                  .small = 1,
                                  .depthwise_dense = 1,
                                  .depthwise = 1,
                                  .depthwise_images = 1};

/* Of direct's, where oneDNN has it: in f32. */
static const double winograd_cost = 0.58;
static const double winograd_small = 0.8;  /* of pictures of at most 8 x 8, which hold few tiles */
static const double winograd_few = 0.65;   /* of one image of at most 16 x 16: smaller tiles */
static const double winograd_large = 0.38; /* of larger ones than 16 x 16 with many channels, which
                                              pay transforms back; one image */

/** layer NULL: reorders. */
static const constants *constants_of(const laci_net *net, const laci_sparse_layer *layer) {
  if (net->plan.bf16) return &of_bf16;
  if (layer && layer->bytes) return &of_int8;
  if (net->sparse->isa == LACI_JIT_NEON) return &of_neon;
  return net->sparse->isa == LACI_JIT_AVX2 ? &of_avx2 : &of_f32;
}

/* Of an element of a sum or a pool of floats, and of one of bytes. */
static const double of_light = 50, of_light_bytes = 15;
static const double of_pool = 150; /* of floats, by whomever: both wait for memory */

static bool is_light(const laci_sparse_layer *layer) {
  return layer->kind == LACI_SPARSE_SUM || layer->kind == LACI_SPARSE_POOL;
}

static double results(const laci_sparse_layer *layer) {
  return (double)layer->n_images * (double)layer->window.channels_out *
         (double)(layer->window.out_h * layer->window.out_w);
}

static double weights_each(const laci_sparse_window *g) {
  return (double)laci_sparse_row_weights(g);
}

static bool has_few_pixels(const laci_sparse_layer *layer) {
  enum { FEW = 8 * 8 };
  return layer->n_images * layer->window.out_h * layer->window.out_w <= FEW;
}

static double winograd_of(const laci_sparse_layer *layer) {
  enum { SMALL = 8 * 8, LARGE = 16 * 16, MANY = 128 };
  const laci_sparse_window *g = &layer->window;
  const int64_t pixels = g->out_h * g->out_w;
  const bool many = g->channels_in / g->groups >= MANY && g->channels_out / g->groups >= MANY;
  if (pixels <= SMALL) return winograd_small;
  if (pixels <= LARGE && layer->n_images == 1) return winograd_few;
  return many && layer->n_images == 1 ? winograd_large : winograd_cost;
}

/** How much longer groups of few channels take than their products. What oneDNN has no code for is
 * copied, pixels of a window together, and goes through small matrix products. */
static double groups_cost(const constants *c, const laci_sparse_window *g) {
  enum { BLOCK = 8, WHOLE = 64 };
  const int64_t in = g->channels_in / g->groups, out = g->channels_out / g->groups;
  if (g->groups == 1 || c->by_gemm == 0 || in >= WHOLE) return 1;
  if (in % BLOCK != 0 || out % BLOCK != 0) return c->by_gemm;
  return in == BLOCK ? c->in_blocks : c->in_groups;
}

static double dense_cost(const laci_net *net, const laci_sparse_layer *layer) {
  const double products = results(layer) * weights_each(&layer->window);
  if (is_light(layer) && !layer->bytes) return results(layer) * of_pool;
  if (is_light(layer)) return results(layer) * (of_light + constants_of(net, NULL)->reorder);
  if (layer->kind == LACI_SPARSE_DEPTHWISE)
    return products / constants_of(net, layer)->depthwise_dense;
  const double groups = groups_cost(constants_of(net, layer), &layer->window);
  if (groups > 1) return products * groups;
  const bool direct = layer->rows || net->plan.bf16;
  if (direct || !laci_conv_gains_by_winograd(net, layer->fused)) {
    return products * (has_few_pixels(layer) ? constants_of(net, layer)->small : 1);
  }
  return products * winograd_of(layer);
}

/** Pixels walk along one long row; what is between two rows, most windows need one of. */
static int64_t tiles_of(const laci_sparse_layer *layer, int64_t between) {
  const laci_sparse_window *g = &layer->window;
  if (laci_pictures_by_images(layer->n_images)) {
    return laci_ceil_div(layer->n_images, LACI_SPARSE_LANES) * g->out_h * g->out_w;
  }
  return layer->n_images *
         laci_ceil_div((g->out_h - 1) * (g->out_w + between) + g->out_w, LACI_SPARSE_LANES);
}

/** What is read of larger windows than one pixel is read again soon. */
static double generated_share(const laci_net *net, const laci_sparse_layer *layer) {
  enum { MANY = 128 };
  const constants *c = constants_of(net, layer);
  const bool far = laci_pictures_by_images(layer->n_images) &&
                   laci_sparse_is_pixel(&layer->window) && weights_each(&layer->window) > MANY;
  if (laci_sparse_isa_of(net, layer) == LACI_JIT_NONE) return c->compiled_share;
  return far && c->generated_far > 0 ? c->generated_far : c->generated_share;
}

/** A chunk of tiles goes through all code before the next one; code that comes from memory does so
 * while the piece before it is at work. */
static double sparse_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { CHUNK = 64 };
  const double half = 0.5;
  const laci_sparse_window *g = &layer->window;
  const constants *c = constants_of(net, layer);
  const double share_kept = layer->bytes ? (layer->kept > half ? 1 : half) : layer->kept;
  const double kept = (double)g->channels_out * weights_each(g) * share_kept;
  const bool together = !laci_sparse_is_pixel(g) && laci_sparse_code_is_bare(net, layer);
  const int64_t tiles = tiles_of(layer, together ? 0 : 1);
  if (layer->kind == LACI_SPARSE_DEPTHWISE) {
    const bool images = laci_pictures_by_images(layer->n_images);
    return results(layer) * weights_each(g) / (images ? c->depthwise_images : c->depthwise);
  }
  if (is_light(layer)) return results(layer) * (layer->bytes ? of_light_bytes : of_pool);
  const double worked = (double)(tiles * LACI_SPARSE_LANES) / generated_share(net, layer);
  const double chunks = (double)laci_ceil_div(tiles, CHUNK);
  const double waited = chunks * c->first, streamed = chunks * c->stream;
  const double around = (double)(tiles * LACI_SPARSE_LANES * g->channels_out) * c->result;
  return kept * (worked + waited > streamed ? worked + waited : streamed) + around;
}

/* Halves of tiles that have results. */
static int64_t units_of(const laci_sparse_layer *layer) {
  enum { UNIT = LACI_SPARSE_LANES / 2 };
  const laci_sparse_window *g = &layer->window;
  const int64_t between = laci_sparse_is_pixel(g) ? 0 : 1; /* pixels, from row to row */
  const int64_t pixels = (g->out_h - 1) * (g->out_w + between) + g->out_w;
  if (laci_pictures_by_images(layer->n_images)) return 2 * tiles_of(layer, 1);
  return layer->n_images * laci_ceil_div(pixels, UNIT);
}

/** What is lost with each strip is the same for fewer units. */
static double bundles_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { UNIT = LACI_SPARSE_LANES / 2, FEW = 128 };
  const laci_sparse_window *g = &layer->window;
  const constants *c = constants_of(net, layer);
  const bool images = laci_pictures_by_images(layer->n_images);
  const double units = (double)units_of(layer);
  const double lost = (double)laci_sparse_bundled_strips(layer, units_of(layer)) * c->strip;
  const double share = (laci_sparse_is_pixel(g) || images ? c->bundles : c->bundles_window) *
                       (g->channels_out / g->groups < FEW ? c->bundles_few : 1);
  const double kept = weights_each(g) * layer->kept; /* of a row */
  const double result = images ? c->bundles_of_images : c->bundles_result;
  const double each = kept * (units + lost) / share + units * result;
  return (double)g->channels_out * (UNIT * each + kept * c->bundles_weight);
}

/** Lists are read for each strip of tiles, so that none waits for what it runs. */
static double csr_cost(const laci_net *net, const laci_sparse_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const constants *c = constants_of(net, layer);
  const bool aligned = laci_sparse_is_pixel(g) || laci_pictures_by_images(layer->n_images);
  const double kept = weights_each(g) * layer->kept; /* of a row */
  const double lanes = (double)(tiles_of(layer, 1) * LACI_SPARSE_LANES * g->channels_out);
  return lanes * (kept / (aligned ? c->csr : c->csr_window) + c->result);
}

static double lists_cost(const laci_net *net, const laci_sparse_layer *layer) {
  const bool bundled = laci_sparse_bundled_strips(layer, 1) > 0;
  return bundled ? bundles_cost(net, layer) : csr_cost(net, layer);
}

/** Tiles are padded to whole vectors; images come by sixteen. */
static double winograd4_cost(const laci_net *net, const laci_sparse_layer *layer) {
  enum { SIDE = LACI_WINOGRAD4_SIDE, VECTOR = 8, HELD = 1 << 21 /* points and sums */ };
  const laci_sparse_window *g = &layer->window;
  const constants *c = constants_of(net, layer);
  if (c->winograd == 0) return INFINITY;
  const int64_t tiles = laci_ceil_div(g->out_h, SIDE) * laci_ceil_div(g->out_w, SIDE);
  const int64_t each = laci_pictures_by_images(layer->n_images) ? LACI_SPARSE_LANES : VECTOR;
  const int64_t n = each == VECTOR ? tiles * layer->n_images : layer->n_images;
  const double lanes = (double)(laci_ceil_div(n, each) * each * (each == VECTOR ? 1 : tiles));
  const double sources = (double)laci_winograd4_sources(g),
               points = (double)laci_winograd4_points(g);
  const double weights = points * sources * (double)g->channels_out;
  const double channels = sources + (double)g->channels_out;
  const bool own = g->stride_w > 1; /* threads do these by themselves */
  const bool far = each == VECTOR && !own && points * lanes * channels > HELD;
  return weights * (lanes / c->winograd + c->transformed) +
         lanes * channels * (far ? c->tile_far : c->tile) + c->parts;
}

static double cost_by(const laci_net *net, const laci_sparse_layer *layer, laci_sparse_way way) {
  if (!laci_sparse_can(net, layer, way)) return INFINITY;
  switch (way) {
    case LACI_SPARSE_WAY_SPARSE: return sparse_cost(net, layer);
    case LACI_SPARSE_WAY_LISTS: return lists_cost(net, layer);
    case LACI_SPARSE_WAY_WINOGRAD: return winograd4_cost(net, layer);
    default: return dense_cost(net, layer);
  }
}

void laci_sparse_estimate(const laci_net *net, laci_sparse_costs *costs) {
  const laci_sparse_net *sparse = net->sparse;
  const constants *c = constants_of(net, NULL);
  costs->reorder = c->reorder;
  costs->norm_of_images = c->norm_of_images;
  costs->step = c->step;
  costs->least_gain = c->least_gain;
  for (int at = 0; at < sparse->n_layers; at++) {
    for (int way = 0; way < LACI_SPARSE_WAY_REORDER; way++) {
      costs->of[way][at] = cost_by(net, &sparse->layers[at], way);
    }
  }
}
