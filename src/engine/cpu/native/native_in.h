/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and products whose weights are mostly zeros, by kernel/sparse and jit: which of them
 * are done so, and how their values lie.
 *
 *   layer     a fused node that sparse kernels can do; one that is done so is chosen
 *   pictures  a value in a layout of kernel/sparse/window.h (native/layout/tensors.h)
 *
 * Before anything is lowered, layers are found (native/choose/find.c) and chosen by what they and
 * the reorders between them and dense ones cost (native/choose/cost.c, native/choose/choose.c).
 * Every value that a chosen layer writes, or reads as it lies, has one layout for all chosen layers
 * (native/layout/assign.c); others read a reordered copy of it (native/layout/read.c), or a
 * normalised one (native/layout/norm.c). Next: native/algorithms/kernel.c,
 * native/algorithms/lower.c. */
#ifndef LACI_ENGINE_CPU_NATIVE_NATIVE_IN_H
#define LACI_ENGINE_CPU_NATIVE_NATIVE_IN_H

#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/net_in.h"
#include "jit/isa.h"
#include "kernel/sparse/window.h"

typedef struct laci_code_cache laci_code_cache;

/** How a layer reads its input. */
typedef enum laci_sparse_reading {
  LACI_SPARSE_AS_IT_LIES,
  LACI_SPARSE_THINNED, /* a copy of the pixels that a window of one pixel stops at */
  LACI_SPARSE_PHASES,  /* a copy in phases, for larger windows that stride */
  LACI_SPARSE_PLAINLY, /* row-major, for these by Winograd's algorithm: as the network's input is */
} laci_sparse_reading;

/** What a layer of int8 has: its values are quads of bytes (kernel/sparse/quads.h). */
typedef struct laci_sparse_bytes {
  const laci_fake_quantised *x, *residual, *y; /* what bytes stand for; y NULL: results are floats,
                                                  and so is what is added */
  const float *weight_scale;                   /* [n_scales]: of each row, or of all */
  int64_t n_scales;
  laci_sparse_quantised quantised; /* once it is lowered */
} laci_sparse_bytes;

/** How a layer is done, and what is timed. */
typedef enum laci_sparse_way {
  LACI_SPARSE_WAY_DENSE,  /* by dense kernels: it is not chosen */
  LACI_SPARSE_WAY_SPARSE, /* by generated code where there is any */
  LACI_SPARSE_WAY_LISTS,  /* by lists of rows, or of rows alike (kernel/sparse/csr.h, bundles.h) */
  LACI_SPARSE_WAY_WINOGRAD, /* with all weights, zeros or not (kernel/sparse/winograd4.h) */
  LACI_SPARSE_WAY_REORDER,  /* a float's share of reorders; of no layer */
} laci_sparse_way;

/** What a layer does. Others than products gain nothing by themselves, and stand between these. */
typedef enum laci_sparse_kind {
  LACI_SPARSE_PRODUCT,
  LACI_SPARSE_DEPTHWISE, /* channel by channel, with all weights (native/algorithms/depthwise.c) */
  LACI_SPARSE_SUM,       /* of `input` and `residual`, of bytes (native/int8/sum.c) */
  LACI_SPARSE_POOL,      /* the most of a window (native/algorithms/pool.c) */
} laci_sparse_kind;

typedef struct laci_sparse_layer {
  const laci_fused *fused;
  bool rows; /* a product with a constant matrix: a window of one pixel over pictures of one line,
                whose pixels are the rows on the left */
  laci_sparse_kind kind;
  laci_sparse_bytes *bytes; /* of int8; NULL: of floats, or pairs */
  laci_sparse_window window;
  int64_t n_images;
  int input, output, residual; /* values; residual -1: none */
  bool has_low, has_high;      /* results are clipped, after the residual was added */
  float low, high;
  struct laci_pointwise *functions; /* [n_functions]: what follows */
  int n_functions;
  bool residual_last; /* it is added behind the functions */
  double kept;        /* share of the weights that are no zeros, as a sample says */
  bool full;          /* too many are for code and lists to gain */
  laci_sparse_reading reading;
  const uint8_t *mask; /* of a weight that changes, while planning; NULL: a constant */
  bool turned;         /* the gradient of a convolution's input: rows are that one's channels */
  int64_t scatter;     /* a kernel's results lie so many rows and pixels apart; 0, 1: they do not */
  int n_phases;        /* of one with a mask: kernels that write its results together; one that
                          scatters writes zeros between */
  int64_t whole_h, whole_w;          /* of one that is turned: the result */
  struct laci_sparse_kernel *kernel; /* of one with a mask, once it is lowered */
  bool chosen;
  laci_sparse_way way; /* of one that is chosen */
} laci_sparse_layer;

/** Values that have one layout: a layer's result lies as what is added to it. */
typedef struct laci_sparse_place {
  int same_as; /* another value, towards the one that speaks for all; itself */
  bool used, planes, rows;
  bool bytes; /* a layer of int8 reads this value, whatever others do */
  laci_sparse_border border;
  laci_sparse_layout layout, of_quads;
} laci_sparse_place;

/** Floats of a layer's weights while its kernel is made: one layer's after the other, since the
 * system takes as long to clear fresh pages as all the rest takes. */
typedef struct laci_sparse_scratch {
  float *floats;
  int64_t n;
} laci_sparse_scratch;

struct laci_sparse_net {
  laci_jit_isa isa, isa_of_bytes; /* of layers of floats, or pairs, and of int8 */
  laci_sparse_layer *layers;      /* in the order of their turns */
  int n_layers;
  bool trained;                      /* weights change, under masks: all layers have one */
  bool tight;                        /* there is no room for transformed weights */
  laci_sparse_place *places;         /* [n_values] */
  laci_code_cache *cache;            /* of all generated code; NULL: there is none */
  laci_sparse_scratch dense, turned; /* while layers are lowered */
  struct laci_sparse_kernel **kernels;
  size_t n_kernels, kernels_capacity;
};

/* ---- native/layout/window.c ---- */

/** A node's window over values of three or four axes. */
laci_sparse_window laci_sparse_window_over(const laci_shape *x, const laci_shape *y,
                                           const laci_window *w);
/** One of a pixel. */
laci_sparse_window laci_sparse_window_of_pixels(int64_t channels_in, int64_t channels_out,
                                                int64_t h, int64_t w);

/* ---- native/choose/limits.c ---- */

/** A window of one pixel that reads nothing around a picture. */
bool laci_sparse_is_pixel(const laci_sparse_window *g);
/** Is each channel by itself, as kernel/sparse/depthwise.h does it? */
bool laci_sparse_is_depthwise(const laci_sparse_window *g);
/** Pads, dilations and strides make no layout much larger than the picture. */
bool laci_sparse_is_modest(const laci_sparse_layer *layer);
/** Of bf16: values come and go with channels last, in pairs, and what the network returns is not
 * rounded to bf16 first. */
bool laci_sparse_can_pair(const laci_net *net, const laci_sparse_layer *layer);

/* ---- native/train/find.c ---- */

/** A convolution, or the gradient of its input, whose weights change and keep their zeros? */
bool laci_sparse_find_trained(laci_net *net, const laci_fused *fused, laci_sparse_layer *layer);
/** Chooses among such layers. */
void laci_sparse_choose_trained(laci_net *net);
/** The window of one of the layer's kernels: results of (even, odd) rows and columns. */
laci_sparse_window laci_sparse_phase(const laci_sparse_layer *layer, int phase);
/** The mask as rows of the layer's product: the caller's to free. NULL: no memory (noted). */
uint8_t *laci_sparse_turned_mask(laci_net *net, const laci_sparse_layer *layer, int phase);
/** What is kept of the form, as places in the weight: [n_kept], the caller's to free. NULL: no
 * memory (noted). */
int32_t *laci_sparse_weight_places(laci_net *net, const laci_sparse_layer *layer, int phase,
                                   const laci_sparse_form *form);

/* ---- native/choose/posts.c ---- */

/** Sets what follows the layer's sums; false where sparse kernels lack it. */
bool laci_sparse_take_posts(laci_net *net, laci_sparse_layer *layer);

/* ---- native/int8/find.c ---- */

/** The QuantizeLinear and DequantizeLinear that alone read the value; NULL: others do. */
const laci_fused *laci_sparse_quantised_behind(const laci_cpu_plan *plan, int value);
/** The value, or the one that it is, too: of bytes that several DequantizeLinear read. */
int laci_sparse_same_value(const laci_cpu_plan *plan, int value);
/** What the bytes stand for that the value came through; NULL: it did not. */
const laci_fake_quantised *laci_sparse_bytes_of(const laci_cpu_plan *plan, int value);
/** Do bytes stand for the same numbers there? */
bool laci_sparse_same_units(const laci_fake_quantised *a, const laci_fake_quantised *b);
/** Makes the layer, which was found as one of floats, one of int8 where its input, its weight and
 * what follows allow it; else it stays. */
void laci_sparse_take_bytes(laci_net *net, laci_sparse_layer *layer);
/** What a sum of a row counts in: the input's scale times the row's. */
double laci_sparse_bytes_scale(const laci_sparse_bytes *bytes, int64_t row);

/* ---- native/int8/posts.c ---- */

/** The bounds of a result that becomes bytes, and its zero point. */
void laci_sparse_bound_bytes(laci_sparse_layer *layer);
/** These, and residual and functions of such a layer as its kernel wants them. False: no memory
 * (noted). */
bool laci_sparse_follow_bytes(laci_net *net, laci_sparse_layer *layer);

/* ---- native/int8/weights.c ---- */

/** What is kept, floats, as whole numbers, and bias and scales of the layer's rows. False: a
 * failure (noted). */
bool laci_sparse_quantise_kept(laci_net *net, const laci_sparse_layer *layer,
                               laci_sparse_kept *kept);

/* ---- native/choose/find_between.c ---- */

/** Is it a sum of two values of bytes, which becomes bytes itself? */
bool laci_sparse_find_sum(laci_net *net, const laci_fused *fused, laci_sparse_layer *layer);
/** Is it a MaxPool of floats, with nothing fused behind it? */
bool laci_sparse_find_pool(laci_net *net, const laci_fused *fused, laci_sparse_layer *layer);
/** Is it one of a value of bytes, which stays bytes of the same units? */
bool laci_sparse_find_pool_of_bytes(laci_net *net, const laci_fused *fused,
                                    laci_sparse_layer *layer);

/* ---- native/algorithms/algorithms.c ---- */

/** What the layer's code is generated for; NONE: it is compiled. */
laci_jit_isa laci_sparse_isa_of(const laci_net *net, const laci_sparse_layer *layer);
/** Does its code need no zeros between rows of pixels? */
bool laci_sparse_code_is_bare(const laci_net *net, const laci_sparse_layer *layer);
/** Can the layer be done so? */
bool laci_sparse_can(const laci_net *net, const laci_sparse_layer *layer, laci_sparse_way way);
/** Is there no room for the weights of all layers that Winograd's algorithm can do? */
bool laci_sparse_is_tight(const laci_net *net);
/** The wanted way, or else what it can be done by: beside Winograd's algorithm that is lists, which
 * are made at once. */
laci_sparse_way laci_sparse_way_or(const laci_net *net, const laci_sparse_layer *layer,
                                   laci_sparse_way wanted);

/* ---- native/choose/name.c ---- */

enum { LACI_SPARSE_NAME = 256 };
/** What the time depends on, beside the machine: the name that it is kept by. layer NULL: reorders.
 */
void laci_sparse_name(const laci_net *net, const laci_sparse_layer *layer, laci_sparse_way way,
                      char name[LACI_SPARSE_NAME]);

/* ---- native/choose/cost.c ---- */

typedef struct laci_sparse_costs {
  double *of[LACI_SPARSE_WAY_REORDER]; /* by each way, [n_layers], of the plan's memory; infinite
                                          where a layer cannot be done so */
  double *chosen;                      /* by the layer's way, if it is chosen */
  double reorder;                      /* of a float */
  double norm_of_images;               /* of a float that a normalisation writes as images, beside
                                          what it takes anyway */
  double step;                         /* of a reorder, beside its floats */
  double least_gain; /* of the whole network, for which it is worth to leave dense kernels */
} laci_sparse_costs;

/** Room for all layers; false: no memory (noted). */
bool laci_sparse_new_costs(laci_net *net, laci_sparse_costs *costs);
/** The times of all layers; false where one was not timed. */
bool laci_sparse_find_timings(const laci_net *net, const laci_timings *timings,
                              laci_sparse_costs *costs);
/** Estimates of all of it. native/choose/estimate.c */
void laci_sparse_estimate(const laci_net *net, laci_sparse_costs *costs);
/** These times, or estimates; layers have the way that costs the least. False: no memory (noted).
 */
bool laci_sparse_find_costs(laci_net *net, laci_sparse_costs *costs);

/* ---- native/choose/budget.c ---- */

/** Takes another way than Winograd's algorithm for layers that hold zeros, until weights are no
 * more than 1.7 times the bytes that they have, or than those of a dense plan, or no such layer is
 * left.
 */
void laci_sparse_save_memory(laci_net *net, laci_sparse_costs *costs);

/* ---- native/layout/assign.c ---- */

/** Gives every value that chosen layers write, add, or read as it lies its layout. */
void laci_sparse_lay_out(laci_net *net);
const laci_sparse_layout *laci_sparse_layout_at(const laci_net *net, int value);
/** The layout that a chosen layer reads. */
laci_sparse_layout laci_sparse_layer_in(const laci_net *net, const laci_sparse_layer *layer);

/** Is the value one that a chosen layer writes, adds, or reads as it lies? */
bool laci_sparse_has_place(const laci_net *net, int value);
/** Does a chosen layer of int8 read it? */
bool laci_sparse_wants_bytes(const laci_net *net, int value);
/** The pictures that such a value has: of floats, or of bytes that stand for this. */
laci_pictures laci_sparse_pictures_at(const laci_net *net, int value,
                                      const laci_fake_quantised *bytes);

/* ---- native/layout/read.c ---- */

/** The value as a tensor that reorders of ours read, and its layout. Declines where there is none.
 */
int laci_sparse_source(laci_net *net, int value, bool rows, laci_sparse_layout *layout);
/** The value as such pictures: as it lies, found again, or by a reorder now. */
int laci_sparse_read(laci_net *net, int value, const laci_pictures *pictures);
/** Of the layer's input those rows and pixels that its window stops at. */
int laci_sparse_read_thinned(laci_net *net, const laci_sparse_layer *layer,
                             const laci_pictures *pictures);

/** What a layer's step reads and writes; residual -1: none. */
typedef struct laci_sparse_tensors {
  int x, bias, residual, y;
} laci_sparse_tensors;
/** Those of a chosen layer, laid out as it wants them, and a new one for its result. */
laci_sparse_tensors laci_sparse_take_tensors(laci_net *net, const laci_sparse_layer *layer);
/** Where they are, after placing, and what follows the layer's sums; no weight. */
laci_sparse_operands laci_sparse_operands_of(const laci_net *net, const laci_sparse_layer *layer,
                                             const laci_sparse_tensors *tensors);

/** Between layers whose weights change, values stay images. May this one be: four axes of whole
 * groups of 16 images, channels that share places in whole, in a plan with such layers? */
bool laci_sparse_may_be_images(const laci_net *net, int value);
/** What is done between them: of floats, or of pairs. */
const struct laci_image_norm *laci_sparse_images_kernel(const laci_net *net);
/** Is it there as images? */
bool laci_sparse_in_images(const laci_net *net, int value);
/** The images that it is to become: as its place says, or without a border. */
laci_pictures laci_sparse_images(const laci_net *net, int value);
/** The value as images, with any border: as it lies, found again, or by a reorder now. */
int laci_sparse_read_images(laci_net *net, int value);

/* ---- native/layout/norm.c ---- */

/** A batch normalisation by constants that can be written as pictures: of f32, of a convolution's
 * axes, and nothing but a Relu behind it? */
bool laci_sparse_is_norm(laci_net *net, const laci_fused *fused);

/* ---- native/algorithms/weights.c ---- */

/** What is kept of a layer's weights, scaled, as rows of its product: the zeros of the constant are
 * the pattern. False: a failure (noted). Clear it in any case. */
bool laci_sparse_read_kept(laci_net *net, const laci_sparse_layer *layer, laci_sparse_kept *kept);
/** The same from the layer's packed rows, where there are any that fit: dense weights are then
 * never made. weight: its factors. False: none do, nothing was done; or a failure (noted).
 * native/algorithms/packed.c */
bool laci_sparse_read_packed(laci_net *net, const laci_sparse_layer *layer,
                             const laci_net_weight *weight, laci_sparse_kept *kept);
/** Gives the net's scratch back. */
void laci_sparse_clear_scratch(struct laci_sparse_net *sparse);
/** A constant weight as it is, scaled, [channels_out][what a result reads], in scratch. NULL after
 * a failure (noted). */
const float *laci_sparse_read_dense(laci_net *net, const laci_sparse_layer *layer);
/** The same in a weight of the plan. -1 after a failure (noted). */
int laci_sparse_dense(laci_net *net, const laci_sparse_layer *layer);
/** The bias as a weight; zeros where there is none. */
int laci_sparse_bias(laci_net *net, const laci_sparse_layer *layer);

/* ---- native/algorithms/kernel.c ---- */

typedef struct laci_sparse_code laci_sparse_code;

typedef struct laci_sparse_kernel {
  laci_sparse_form form;           /* its tiles; all of it where there is no code */
  laci_sparse_code *code;          /* NULL: lists, or the compiled kernel */
  struct laci_sparse_lists *lists; /* NULL: none */
  laci_sparse_places places;       /* of a weight that changes: where its kept elements are, in the
                                      kernel's order; a constant has none */
  bool of_pairs;                   /* code takes two places for each of its weights */
  int phase;
  struct laci_sparse_kernel *next;              /* of the same layer: its next phase; NULL: none */
  struct laci_sparse_weight_gradient *gradient; /* of a forward kernel whose weight's is wanted */
} laci_sparse_kernel;

/** The kernel of a chosen layer, which net->sparse owns. NULL after a failure, and where the
 * implementation declines. */
const laci_sparse_kernel *laci_sparse_make_kernel(laci_net *net, const laci_sparse_layer *layer);
/** The layout in which the kernel's results lie: the layer's output's, or some pixels of it. */
laci_sparse_layout laci_sparse_layer_out(const laci_net *net, const laci_sparse_layer *layer);
/** What the gradient of the layer's weight needs, while the kernel has its product. False: a
 * failure (noted), or nobody wants it. native/train/weight_gradient.c */
bool laci_sparse_keep_gradient(laci_net *net, const laci_sparse_layer *layer,
                               laci_sparse_kernel *kernel);
void laci_sparse_drop_gradient(laci_sparse_kernel *kernel);

/* ---- native/algorithms/csr.c ---- */

/** Into how many strips so many halves of tiles fall where a layer's rows are bundled; 0: they are
 * not. */
int64_t laci_sparse_bundled_strips(const laci_sparse_layer *layer, int64_t n_units);
/** Makes them of the kernel's product, of which tiles stay. */
LAC_MUST_CHECK lac_status laci_sparse_make_lists(laci_net *net, laci_sparse_kernel *kernel,
                                                 lac_error *err);
void laci_sparse_drop_lists(laci_sparse_kernel *kernel);
/** All that the kernel has to do, where it has lists. */
void laci_sparse_run_lists(laci_net *net, const laci_sparse_kernel *kernel,
                           const laci_sparse_operands *o);
/** Which ones these are, in a word. */
const char *laci_sparse_lists_name(const laci_sparse_kernel *kernel);

/* ---- native/algorithms/depthwise.c, native/int8/sum.c, native/algorithms/pool.c,
 * native/algorithms/winograd.c ---- */

/** Lower a chosen layer of that kind. */
void laci_sparse_lower_depthwise(laci_net *net, const laci_sparse_layer *layer);
void laci_sparse_lower_sum(laci_net *net, const laci_sparse_layer *layer);
void laci_sparse_lower_pool(laci_net *net, const laci_sparse_layer *layer);
/** Lowers one that is done that way. */
void laci_sparse_lower_winograd(laci_net *net, const laci_sparse_layer *layer);

/* ---- native/train/fill.c ---- */

/** A step that puts the values of a layer's weight in the places of its kernels. */
void laci_sparse_fill(laci_net *net, const laci_sparse_layer *layer,
                      const laci_sparse_kernel *kernel);

#endif
