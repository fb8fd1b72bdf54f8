/* SPDX-License-Identifier: Apache-2.0
 * Declarations that the files of the verification share: sizes and inputs (verify_inputs.c), ranges
 * of inputs (verify_domain.c), tries (verify_tries.c), parameters (verify_parameters.c), products
 * on the fast engine (verify_product.c), the comparison of two values (verify_compare.c). Private
 * to src/verify. */
#ifndef LACI_VERIFY_VERIFY_IN_H
#define LACI_VERIFY_VERIFY_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "verify/verify.h"

typedef struct laci_type laci_type;
typedef struct laci_buf laci_buf;
typedef struct laci_node laci_node;
typedef struct laci_order_walk laci_order_walk;
typedef struct laci_shape laci_shape;
typedef struct laci_value_orders laci_value_orders;

/* Attributes for a loop that the compiler vectorizes. It is compiled twice, for any processor and
 * for AVX2; both versions give the same bits. */
#define LACI_WIDE_BODY __attribute__((always_inline))
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LACI_WIDE __attribute__((target("avx2")))
#else
#define LACI_WIDE
#endif
#define LACI_WIDE_LEVEL LACI_CPU_AVX2

/** Chooses the sizes of the graph's symbols for attempt number `attempt`, counted from 0. A symbol
 * that no input uses gets 0. Batches have size 2 (1 in large networks), later 1; other sizes go
 * from small to large. Returns false if there are no more attempts. */
bool laci_choose_symbol_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol);
/** Infers the types of all values, [n_values], with these sizes of symbols. The caller frees
 * *types. Fails with LAC_BAD_SHAPE if the network does not accept the sizes, or with
 * LAC_UNSUPPORTED if an input has an unknown size without a symbol. */
LAC_MUST_CHECK lac_status laci_verify_infer_types(const laci_graph *graph, const int64_t *sizes,
                                                  laci_type **types);

/** Sets *real to a shape in which sizes replace symbols. Returns false if a symbol has no size. */
bool laci_shape_replace_symbols(const laci_graph *graph, const laci_shape *shape,
                                const int64_t *size_of_symbol, laci_shape *real);

/** Kinds of random numbers, which are tried one by one until the outputs are meaningful. A detector
 * may find nothing in usual numbers, and a logarithm has no value below 0. */
typedef enum laci_draw_kind {
  LACI_DRAW_USUAL,    /* numbers around 0, with a deviation of about 1; integers in the range of the
                         axis that they index */
  LACI_DRAW_POSITIVE, /* numbers above 0, up to 1.75 */
  LACI_DRAW_UNIT,     /* numbers above 0 and below 1, for example for an arc cosine or a relative
                         position */
  LACI_DRAW_LARGE,    /* numbers 30 times as large as those of LACI_DRAW_USUAL */
  LACI_DRAW_IMAGE,    /* numbers from 0 to 255 */
  LACI_DRAW_HUGE,     /* numbers 1000 times as large as those of LACI_DRAW_USUAL */
  LACI_DRAW_ONES,
  LACI_DRAW_ZEROS,
  LACI_N_DRAWS
} laci_draw_kind;

/** How random numbers are drawn. The same seed and stream give the same tensor in any thread. */
typedef struct laci_draw {
  uint64_t seed, stream;
  laci_pool *pool;
  laci_draw_kind kind;
  const int64_t *size_of_symbol; /* size of each symbol; NULL: no symbol has a size */
} laci_draw;

/** The domain of a value: the content that its readers accept (verify_domain.c). */
typedef struct laci_domain {
  enum {
    LACI_DOMAIN_FREE,
    LACI_DOMAIN_INTEGERS, /* integers x with low <= x < high: positions along an axis, counts, class
                             labels */
    LACI_DOMAIN_BOXES,    /* rows of two corners x, y, x, y; the second is to the right of and below
                             the first, and coordinates are below high */
    LACI_DOMAIN_AXES,     /* numbers of axes: 0, 1, ... */
    LACI_DOMAIN_SHAPE     /* a shape, for the Reshape `reader` */
  } kind;
  double low, high;        /* bounds of the content */
  const laci_node *reader; /* for LACI_DOMAIN_SHAPE: the Reshape that reads the shape */
} laci_domain;

laci_domain laci_domain_of_value(const laci_graph *graph, int value, const int64_t *size_of_symbol);
/** Fills buf with a shape that domain->reader accepts. */
void laci_draw_shape_content(const laci_graph *graph, const laci_domain *domain,
                             const laci_draw *draw, laci_buf *buf);

/** Fills buf with uniform random numbers from low to high; integers from low to high - 1, and at
 * least low. walk: maps each element to its position in the reordered tensor, which buf then holds;
 * NULL: nothing is reordered. */
void laci_draw_uniform(laci_buf *buf, const laci_draw *draw, double low, double high,
                       const laci_order_walk *walk);

/** Draws random content for a value: a graph input, or an output of an operator that cannot run.
 * Integers are below the size of the axis that they index, and shapes are valid. Fails with
 * LAC_UNSUPPORTED for strings and other types that laci_buf cannot hold. */
LAC_MUST_CHECK lac_status laci_draw_value(const laci_graph *graph, int value,
                                          const laci_shape *shape, const laci_draw *draw,
                                          laci_buf **buf, lac_error *err);

/** The parameters (stored tensors) of both runs. */
typedef struct laci_parameters laci_parameters;
LAC_MUST_CHECK lac_status laci_parameters_create(const laci_graph *graph, uint64_t seed,
                                                 laci_pool *pool, laci_parameters **parameters,
                                                 lac_error *err);
void laci_parameters_destroy(laci_parameters *parameters);
/** Loads stored tensor number `stored`. anew: random elements with the same mean and deviation
 * replace its own. orders: by which the tensor is reordered; NULL: it keeps its order. The caller
 * frees *buf. */
LAC_MUST_CHECK lac_status laci_parameters_load_tensor(laci_parameters *parameters, int stored,
                                                      bool anew, const laci_value_orders *orders,
                                                      laci_buf **buf, lac_error *err);

/* ---- Products on the fast engine ---- */

enum { LACI_MAX_RANDOM_INTEGER = 7, LACI_MAX_RANDOM_SUMMAND = 127 };

/** Returns a pseudorandom integer from -most to most, uniformly distributed. It depends on key and
 * content alone. */
static inline int laci_random_integer(uint64_t key, uint64_t content, int most) {
  uint64_t x = (content + 1) * 0x9E3779B97F4A7C15u ^ key;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return (int)((x >> 32) * (2 * (uint64_t)most + 1) >> 32) - most;
}

/** Returns a pseudorandom integer from -LACI_MAX_RANDOM_INTEGER to LACI_MAX_RANDOM_INTEGER for
 * position `place` in a tensor. It uses 32-bit arithmetic, since it is computed for every
 * weight. */
static inline float laci_random_integer_at(uint32_t key, int64_t place) {
  uint32_t x = ((uint32_t)place + (uint32_t)(place >> 32) * 0x9E3779B9u) ^ key;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return (float)((int32_t)((x >> 16) * (2 * LACI_MAX_RANDOM_INTEGER + 1) >> 16) -
                 LACI_MAX_RANDOM_INTEGER);
}

typedef struct laci_products_options {
  laci_pool *pool;
  const laci_graph *graph;
  const laci_orders *orders; /* orders of the channels in this run; NULL: nothing is reordered */
  const int64_t *size_of_symbol;
  uint64_t seed;
  bool integers;       /* true: integers replace the operands, so that sums are exact */
  bool all;            /* true: the fast engine also computes small products */
  laci_budget *budget; /* budget to which the memory of the verification's runs is added; NULL:
                          there is no limit */
} laci_products_options;

enum {
  LACI_SLAB = 1 << 22
}; /* maximum number of elements of a weight that products read at once */

/** A slab: consecutive elements of a stored tensor, in row-major order. */
typedef struct laci_slab {
  const uint8_t *bytes; /* bytes of the whole tensor, in memory; not read if integers replace the
                           elements */
  int64_t first, n;     /* index of the slab's first element, and number of its elements */
} laci_slab;

/** Reads the slab's elements, reordered, as float32, or the integers that replace them
 * (options->integers). The tensor must be of f32, f16 or bf16. */
LAC_MUST_CHECK lac_status laci_parameters_read_floats(const laci_products_options *options,
                                                      int stored, const laci_slab *slab, float *out,
                                                      lac_error *err);
/** Returns the address of the slab's elements in the file. NULL: they cannot be used there, since
 * they are not float32, not aligned, or reordered. */
const float *laci_parameters_view_floats(const laci_products_options *options, int stored,
                                         const laci_slab *slab);

/** Does the fast engine compute products for a network with these sizes? */
bool laci_verify_uses_fast_engine(const laci_graph *graph, laci_verify_engine engine,
                                  const int64_t *sizes);

/** Returns the number of multiplications in all products of the graph, in one run. Products of
 * unknown shape are not counted. */
int64_t laci_products_count_multiplications(const laci_graph *graph, const int64_t *size_of_symbol);

/** A copy of a graph for one run of the plain engine, in which the fast engine computes the larger
 * products. Products that it declines are computed plainly. It borrows all that the options point
 * to. */
typedef struct laci_products laci_products;
LAC_MUST_CHECK lac_status laci_products_create(const laci_graph *graph,
                                               const laci_products_options *options,
                                               laci_products **products, lac_error *err);
/** Does the fast engine compute this node? */
bool laci_products_has_node(const laci_products *products, int node);
void laci_products_destroy(laci_products *products);
const laci_graph *laci_products_get_graph(const laci_products *products);
/** Do only products read stored tensor number `stored`? They read it themselves, so the run need
 * not load it. */
bool laci_products_is_streamed(const laci_products *products, int stored);

/** The difference between two values, `got` and the reordered `wanted`. */
typedef struct laci_difference {
  double largest;    /* largest |difference| between elements that are finite in both */
  double scale;      /* largest |element| of `wanted` that is finite */
  int64_t at;        /* index in `got` of the element with the largest difference, or of the first
                        element that makes kind_differs true; -1: the values are equal */
  bool kind_differs; /* true: an element is NaN or infinite in one value, and not the same in the
                        other */
  bool any_finite;   /* true: some element of `wanted` is finite */
} laci_difference;

/** Compares two values of the same shape, both of floats or both of integers, without copies. Fails
 * with LAC_NO_MEMORY, or with LAC_INTERNAL if orders do not fit. */
LAC_MUST_CHECK lac_status laci_compare_reordered_values(const laci_buf *wanted,
                                                        const laci_value_orders *orders,
                                                        const laci_buf *got, laci_pool *pool,
                                                        laci_difference *difference,
                                                        lac_error *err);

/** Makes a reordered copy of `in`; the caller frees *out. */
LAC_MUST_CHECK lac_status laci_buf_reorder(const laci_buf *in, const laci_value_orders *orders,
                                           laci_buf **out, lac_error *err);

#endif
