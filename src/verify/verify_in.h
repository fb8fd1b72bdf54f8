/* SPDX-License-Identifier: Apache-2.0
 * The parts of the verification: sizes and inputs (verify_inputs.c), ranges of inputs
 * (verify_domain.c), tries (verify_tries.c), parameters (verify_parameters.c), products on the fast
 * engine (verify_product.c), the comparison of two values (verify_compare.c). Private to verify. */
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

/* Attributes for a loop that the compiler vectorizes and that is compiled twice: for any processor,
 * and for AVX2. Both versions give the same bits. */
#define LACI_WIDE_BODY __attribute__((always_inline))
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define LACI_WIDE __attribute__((target("avx2")))
#else
#define LACI_WIDE
#endif
#define LACI_WIDE_LEVEL LACI_CPU_AVX2

/** Chooses the sizes of the graph's symbols for attempt number `attempt`, from 0 on; a symbol that
 * no input uses gets 0. Batches are of 2 (1 for large networks), later of 1; other sizes go from
 * small to large. False: there are no more attempts. */
bool laci_choose_symbol_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol);
/** Infers the types of all values, [n_values], with these sizes; the caller frees *types.
 * LAC_BAD_SHAPE: the network does not accept the sizes; LAC_UNSUPPORTED: an input has an unknown
 * size without a symbol. */
LAC_MUST_CHECK lac_status laci_verify_infer_types(const laci_graph *graph, const int64_t *sizes,
                                                  laci_type **types);

/** Replaces the symbols of a shape by their sizes; false where a symbol has no size. */
bool laci_shape_replace_symbols(const laci_graph *graph, const laci_shape *shape,
                                const int64_t *size_of_symbol, laci_shape *real);

/** Kinds of draws, tried one by one until the outputs are meaningful: a detector may find nothing
 * in usual numbers, a logarithm has no value below 0. */
typedef enum laci_draw_kind {
  LACI_DRAW_USUAL,    /* around 0, deviation about 1; integers in the range of the axis that they
                         index */
  LACI_DRAW_POSITIVE, /* above 0, up to 1.75 */
  LACI_DRAW_UNIT,     /* above 0 and below 1: for an arc cosine, say, or a relative position */
  LACI_DRAW_LARGE,    /* 30 times as large as LACI_DRAW_USUAL */
  LACI_DRAW_IMAGE,    /* 0 to 255 */
  LACI_DRAW_HUGE,     /* 1000 times as large as LACI_DRAW_USUAL */
  LACI_DRAW_ONES,
  LACI_DRAW_ZEROS,
  LACI_N_DRAWS
} laci_draw_kind;

/** A draw of random numbers. The same seed and stream give the same tensor in any thread. */
typedef struct laci_draw {
  uint64_t seed, stream;
  laci_pool *pool;
  laci_draw_kind kind;
  const int64_t *size_of_symbol; /* NULL: no symbol has a size */
} laci_draw;

/** The content that a value's readers accept (verify_domain.c). */
typedef struct laci_domain {
  enum {
    LACI_DOMAIN_FREE,
    LACI_DOMAIN_WHOLE, /* integers with low <= x < high: positions along an axis, counts, class
                          labels */
    LACI_DOMAIN_BOXES, /* rows of two corners x, y, x, y, the second beyond the first, below high */
    LACI_DOMAIN_AXES,  /* 0, 1, ..: axis numbers */
    LACI_DOMAIN_SHAPE  /* a shape for the Reshape `reader` */
  } kind;
  double low, high;        /* bounds of the content */
  const laci_node *reader; /* LACI_DOMAIN_SHAPE: the Reshape that reads the shape */
} laci_domain;

laci_domain laci_domain_of_value(const laci_graph *graph, int value, const int64_t *size_of_symbol);
/** Fills buf with a shape that domain->reader accepts. */
void laci_draw_shape_content(const laci_graph *graph, const laci_domain *domain,
                             const laci_draw *draw, laci_buf *buf);

/** Fills buf with uniform random numbers from low to high; if it holds integers, from low to high
 * - 1, and at least low. walk (may be NULL) gives the place of each element in the reordered
 * tensor, which buf then holds. */
void laci_draw_uniform(laci_buf *buf, const laci_draw *draw, double low, double high,
                       const laci_order_walk *walk);

/** Draws content for a value: a graph input, or an output of an operator that cannot run. Integers
 * are below the size of the axis that they index, and shapes are valid. Fails LAC_UNSUPPORTED for
 * strings and other types that laci_buf cannot hold. */
LAC_MUST_CHECK lac_status laci_draw_value(const laci_graph *graph, int value,
                                          const laci_shape *shape, const laci_draw *draw,
                                          laci_buf **buf, lac_error *err);

/** The parameters of both runs. */
typedef struct laci_parameters laci_parameters;
LAC_MUST_CHECK lac_status laci_parameters_create(const laci_graph *graph, uint64_t seed,
                                                 laci_pool *pool, laci_parameters **parameters,
                                                 lac_error *err);
void laci_parameters_destroy(laci_parameters *parameters);
/** Loads stored tensor number `stored`. anew: draws its elements with the same mean and deviation
 * instead. orders: reorders it (NULL: does not). The caller frees *buf. */
LAC_MUST_CHECK lac_status laci_parameters_load_tensor(laci_parameters *parameters, int stored,
                                                      bool anew, const laci_value_orders *orders,
                                                      laci_buf **buf, lac_error *err);

/* ---- Products on the fast engine ---- */

enum { LACI_WHOLE = 7, LACI_WHOLE_SUMMAND = 127 };

/** Returns a pseudorandom integer from -most to most, uniformly distributed, that depends on key
 * and content alone. */
static inline int laci_random_integer(uint64_t key, uint64_t content, int most) {
  uint64_t x = (content + 1) * 0x9E3779B97F4A7C15u ^ key;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
  return (int)((x >> 32) * (2 * (uint64_t)most + 1) >> 32) - most;
}

/** Returns a pseudorandom integer from -LACI_WHOLE to LACI_WHOLE for a place in a tensor. It uses
 * 32-bit arithmetic, as it is computed for every weight. */
static inline float laci_random_integer_at(uint32_t key, int64_t place) {
  uint32_t x = ((uint32_t)place + (uint32_t)(place >> 32) * 0x9E3779B9u) ^ key;
  x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
  x = (x ^ (x >> 13)) * 0xC2B2AE35u;
  return (float)((int32_t)((x >> 16) * (2 * LACI_WHOLE + 1) >> 16) - LACI_WHOLE);
}

typedef struct laci_products_options {
  laci_pool *pool;
  const laci_graph *graph;
  const laci_orders *orders; /* orders of the channels of this run; NULL: not reordered */
  const int64_t *size_of_symbol;
  uint64_t seed;
  bool integers;       /* operands are replaced by integers, so that sums are exact */
  bool all;            /* the fast engine computes small products, too */
  laci_budget *budget; /* the memory of the verification's runs is added to it; NULL: no limit */
} laci_products_options;

enum { LACI_SLAB = 1 << 22 }; /* elements of a weight that products read at once */

/** A part of a stored tensor: consecutive elements in row-major order. */
typedef struct laci_slab {
  const uint8_t *bytes; /* bytes of the whole tensor, in memory; not read where integers replace the
                           elements */
  int64_t first, n;     /* index of the first element of the part, and number of elements */
} laci_slab;

/** Reads the slab's elements, reordered, as float32, or the integers that replace them
 * (options->integers). The tensor must be of f32, f16 or bf16. */
LAC_MUST_CHECK lac_status laci_parameters_read_floats(const laci_products_options *options,
                                                      int stored, const laci_slab *slab, float *out,
                                                      lac_error *err);
/** Returns the address in the file of the slab's elements, if they can be read there; NULL: they
 * are not float32, not aligned, or reordered. */
const float *laci_parameters_view_floats(const laci_products_options *options, int stored,
                                         const laci_slab *slab);

/** Does the fast engine compute products for a network with these sizes? */
bool laci_verify_uses_fast_engine(const laci_graph *graph, laci_verify_engine engine,
                                  const int64_t *sizes);

/** Returns the number of multiplications of the graph's products in one run; products of unknown
 * shape are not counted. */
int64_t laci_products_count_multiplications(const laci_graph *graph, const int64_t *size_of_symbol);

/** A copy of a graph, for one run of the plain engine, in which the fast engine evaluates the
 * larger products; those that it declines are evaluated plainly. It borrows all that the options
 * point to. */
typedef struct laci_products laci_products;
LAC_MUST_CHECK lac_status laci_products_create(const laci_graph *graph,
                                               const laci_products_options *options,
                                               laci_products **products, lac_error *err);
/** Does the fast engine evaluate that node? */
bool laci_products_has_node(const laci_products *products, int node);
void laci_products_destroy(laci_products *products);
const laci_graph *laci_products_graph(const laci_products *products);
/** Do the products read stored tensor number `stored` themselves, so that the run need not load
 * it? */
bool laci_products_is_streamed(const laci_products *products, int stored);

/** The difference between `got` and the reordered `wanted`. */
typedef struct laci_difference {
  double largest;    /* largest |difference| over elements that are finite on both sides */
  double scale;      /* largest finite |element| of `wanted` */
  int64_t at;        /* index in `got` of the element with the largest difference, or of the first
                        element for which kind_differs; -1: equal */
  bool kind_differs; /* an element is NaN or infinite on one side, and not the same on the other */
  bool any_finite;   /* some element of `wanted` is finite */
} laci_difference;

/** Compares two values of the same shape and class, without copies. Fails LAC_NO_MEMORY,
 * LAC_INTERNAL (orders do not fit). */
LAC_MUST_CHECK lac_status laci_compare_reordered_values(const laci_buf *wanted,
                                                        const laci_value_orders *orders,
                                                        const laci_buf *got, laci_pool *pool,
                                                        laci_difference *difference,
                                                        lac_error *err);

/** Makes a reordered copy of `in`; the caller frees *out. */
LAC_MUST_CHECK lac_status laci_buf_reorder(const laci_buf *in, const laci_value_orders *orders,
                                           laci_buf **out, lac_error *err);

#endif
