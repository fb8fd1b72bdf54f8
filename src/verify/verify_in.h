/* SPDX-License-Identifier: Apache-2.0
 * What the verification is made of: sizes and inputs (verify_inputs.c), what inputs may be
 * (verify_domain.c), which are tried (verify_tries.c), parameters
 * (verify_parameters.c), products on the fast engine (verify_product.c), the comparison of two
 * values (verify_compare.c). Private to verify. */
#ifndef LACI_VERIFY_VERIFY_IN_H
#define LACI_VERIFY_VERIFY_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "cpu/cpu.h"
#include "verify/verify.h"

typedef struct laci_type laci_type;
typedef struct laci_buf laci_buf;
typedef struct laci_node laci_node;
typedef struct laci_order_walk laci_order_walk;
typedef struct laci_shape laci_shape;
typedef struct laci_value_orders laci_value_orders;

/* A loop that the compiler vectorizes, compiled twice: for any processor, and for AVX2. Both give
 * the same bits. */
#define LACI_WIDE_BODY __attribute__((always_inline))
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LACI_WIDE __attribute__((target("avx2")))
#else
#define LACI_WIDE
#endif
#define LACI_WIDE_LEVEL LACI_CPU_AVX2

/** Sizes for the graph's symbols that its inputs use (0: no input uses it), for the attempt-th
 * attempt from 0 on: batches of 2 (1 for large networks) and then of 1, other sizes from small to
 * large. False: nothing left to try. */
bool laci_choose_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol);
/** *types: the caller's, [n_values] with these sizes. LAC_BAD_SHAPE: the network does not accept
 * them; LAC_UNSUPPORTED: an input has a size that no symbol tells. */
LAC_MUST_CHECK lac_status laci_verify_types(const laci_graph *graph, const int64_t *sizes,
                                            laci_type **types);

/** The type's shape with its symbols replaced; false where one has no size. */
bool laci_real_shape(const laci_graph *graph, const laci_shape *shape,
                     const int64_t *size_of_symbol, laci_shape *real);

/** What is tried, one after the other, until outputs come out that say something: a detector may
 * find nothing in usual numbers, a logarithm has no value below 0. */
typedef enum laci_draw_kind {
  LACI_DRAW_USUAL,    /* around 0, deviation about 1; integers in the range of what they index */
  LACI_DRAW_POSITIVE, /* up to 1.75 */
  LACI_DRAW_UNIT,     /* above 0 and below 1: an arc cosine, say, or a relative place */
  LACI_DRAW_LARGE,    /* 30 times the usual ones */
  LACI_DRAW_IMAGE,    /* 0 to 255 */
  LACI_DRAW_HUGE,     /* 1000 times the usual ones */
  LACI_DRAW_ONES,
  LACI_DRAW_ZEROS,
  LACI_N_DRAWS
} laci_draw_kind;

/** Where the numbers of a draw come from: the same (seed, stream) gives the same tensor, whichever
 * thread asks. */
typedef struct laci_draw {
  uint64_t seed, stream;
  laci_pool *pool;
  laci_draw_kind kind;
  const int64_t *size_of_symbol; /* NULL: no symbol has a size */
} laci_draw;

/** What a value may hold, by what reads it: verify_domain.c. */
typedef struct laci_domain {
  enum {
    LACI_DOMAIN_FREE,
    LACI_DOMAIN_WHOLE, /* low <= integer < high: positions in an axis, counts, class labels */
    LACI_DOMAIN_BOXES, /* rows of corners x, y, x, y, the second after the first, below high */
    LACI_DOMAIN_AXES,  /* 0, 1, ..: numbers of axes */
    LACI_DOMAIN_SHAPE  /* of the Reshape `reader` */
  } kind;
  double low, high;
  const laci_node *reader;
} laci_domain;

laci_domain laci_domain_of(const laci_graph *graph, int value, const int64_t *size_of_symbol);
/** A shape that the reader of the domain can take. */
void laci_draw_shape(const laci_graph *graph, const laci_domain *domain, const laci_draw *draw,
                     laci_buf *buf);

/** Fills buf evenly from low to high; integers from low to high - 1, and at least low. walk, if
 * given, says where each element of the tensor as drawn goes: the tensor comes out reordered. */
void laci_draw_evenly(laci_buf *buf, const laci_draw *draw, double low, double high,
                      const laci_order_walk *walk);

/** Content for a value (a graph input, or what an operator that cannot run would have given) of the
 * draw's kind: integers below the size of what they index, shapes that fit. Fails LAC_UNSUPPORTED
 * for texts and other types that no tensor of ours holds. */
LAC_MUST_CHECK lac_status laci_random_value(const laci_graph *graph, int value,
                                            const laci_shape *shape, const laci_draw *draw,
                                            laci_buf **buf, lac_error *err);

/** The parameters of both runs. */
typedef struct laci_parameters laci_parameters;
LAC_MUST_CHECK lac_status laci_parameters_create(const laci_graph *graph, uint64_t seed,
                                                 laci_pool *pool, laci_parameters **parameters,
                                                 lac_error *err);
void laci_parameters_destroy(laci_parameters *parameters);
/** Content of a stored tensor, as it is or drawn anew with the same mean and spread; reordered, if
 * orders are given. */
LAC_MUST_CHECK lac_status laci_parameters_load(laci_parameters *parameters, int stored, bool anew,
                                               const laci_value_orders *orders, laci_buf **buf,
                                               lac_error *err);

/* ---- Products on the fast engine ---- */

enum { LACI_WHOLE = 7, LACI_WHOLE_SUMMAND = 127 };

/** An integer from -most to most, as even as a draw: a function of key and content alone. */
static inline int laci_drawn_integer(uint64_t key, uint64_t content, int most) {
  uint64_t x = (content + 1) * 0x9E3779B97F4A7C15u ^ key;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return (int)((x >> 32) * (2 * (uint64_t)most + 1) >> 32) - most;
}

/** The same from a place in a tensor, in 32 bits: drawn for every weight, many at a time. */
static inline float laci_integer_at(uint32_t key, int64_t place) {
  uint32_t x = ((uint32_t)place + (uint32_t)(place >> 32) * 0x9E3779B9u) ^ key;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return (float)((int32_t)((x >> 16) * (2 * LACI_WHOLE + 1) >> 16) - LACI_WHOLE);
}

typedef struct laci_products_options {
  laci_pool *pool;
  const laci_graph *graph;
  const laci_orders *orders; /* of this run's stored tensors; NULL: as they are */
  const int64_t *size_of_symbol;
  uint64_t seed;
  bool integers;       /* operands are exchanged for integers: sums are exact */
  bool all;            /* however small */
  laci_budget *budget; /* what the verification's runs hold; NULL: no limit */
} laci_products_options;

enum { LACI_SLAB = 1 << 22 }; /* elements of a weight that products read at once */

/** A part of a stored tensor, in elements, row-major. */
typedef struct laci_slab {
  const uint8_t *bytes; /* of the whole tensor, in memory; not read where integers are drawn */
  int64_t first, n;
} laci_slab;

/** The slab's elements, reordered, as float32; integers in their stead where the options say
 * so. The tensor is of f32, f16 or bf16. */
LAC_MUST_CHECK lac_status laci_parameters_floats(const laci_products_options *options, int stored,
                                                 const laci_slab *slab, float *out, lac_error *err);
/** The slab's address in the file; NULL: not float32, not aligned, or reordered. */
const float *laci_parameters_view(const laci_products_options *options, int stored,
                                  const laci_slab *slab);

/** Do products of such sizes go to the fast engine? */
bool laci_verify_is_fast(const laci_graph *graph, laci_verify_engine engine, const int64_t *sizes);

/** Multiplications of the graph's products in one run, as far as shapes are known. */
int64_t laci_products_cost(const laci_graph *graph, const int64_t *size_of_symbol);

/** A copy of a graph whose larger products the fast engine evaluates, for one plain run; what it
 * declines is evaluated plainly. Borrows all that the options name. */
typedef struct laci_products laci_products;
LAC_MUST_CHECK lac_status laci_products_create(const laci_graph *graph,
                                               const laci_products_options *options,
                                               laci_products **products, lac_error *err);
/** Does the fast engine evaluate that node? */
bool laci_products_has(const laci_products *products, int node);
void laci_products_destroy(laci_products *products);
const laci_graph *laci_products_graph(const laci_products *products);
/** True where the products read that stored tensor for themselves: the run need not load it. */
bool laci_products_stream(const laci_products *products, int stored);

/** How far `got` is from the reordered `wanted`. */
typedef struct laci_difference {
  double largest; /* |difference|, over what is finite on both sides */
  double scale;   /* largest finite |element| of `wanted` */
  int64_t at; /* element of got where the largest difference is, or the first of another kind; -1:
                 equal */
  bool kind_differs; /* NaN or an infinity where the other side has something else */
  bool any_finite;
} laci_difference;

/** Both have the same shape and class. Nothing is copied. Fails LAC_NO_MEMORY, LAC_INTERNAL (orders
 * do not fit). */
LAC_MUST_CHECK lac_status laci_compare(const laci_buf *wanted, const laci_value_orders *orders,
                                       const laci_buf *got, laci_pool *pool,
                                       laci_difference *difference, lac_error *err);

/** out = in, reordered. */
LAC_MUST_CHECK lac_status laci_reordered(const laci_buf *in, const laci_value_orders *orders,
                                         laci_buf **out, lac_error *err);

#endif
