/* SPDX-License-Identifier: Apache-2.0
 * Chooses sizes and random contents for the inputs of the networks that are verified.
 *
 * Any input serves that the network accepts and for which every channel matters. So images go from
 * small to large until one is large enough for all strides, and indices are below the size of the
 * table that they index. */
#include "verify/verify_in.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "cpu/pool.h"
#include "graph/graph.h"
#include "graph/op.h"
#include "lacuna/dtype.h"
#include "permute/orders.h"
#include "tensor/buf.h"
#include "tensor/shape.h"

enum {
  BATCH = 2,
  LARGE_NETWORK = 4 * 1000 * 1000 /* networks with more parameters than this are large */,
  AT_ONCE = 1 << 15,
  LONGEST = 1 << 14 /* limit for the length of a window: an input for a longer one is not tried */
};

/* Sizes for each attempt: image_sizes for heights and widths of images, other_sizes for all other
 * lengths. Audio needs longer inputs. The attempts before the last four use the length of the
 * longest one-dimensional window (the taps of a Fourier transform, for example) and multiples of
 * it. The last four are for many strides in series. */
static const int64_t image_sizes[] = {32,  64,  128, 224, 299, 8,   16,
                                      256, 320, 384, 448, 512, 640, 1024};
static const int64_t other_sizes[] = {8, 16, 32, 64, 128, 4, 1, 0, 0, 0, 512, 2048, 8192, 32768};
static const int64_t window_times[] = {1, 2, 4};
enum {
  N_SIZES = sizeof image_sizes / sizeof *image_sizes,
  FIRST_WINDOW = 7, /* index of the first attempt whose length (0 in other_sizes) follows from the
                       longest window */
  N_WINDOWS = sizeof window_times / sizeof *window_times
};

/* Returns the length of the longest one-dimensional window, dilation included; 0: there is none. */
static int64_t find_longest_window(const laci_graph *graph) {
  int64_t longest = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    bool is_conv = laci_node_is(node, "Conv") && node->n_inputs > 1 && node->inputs[1] >= 0;
    const laci_shape *weight = is_conv ? &graph->values[node->inputs[1]].type.shape : NULL;
    if (!weight || weight->rank != 3 || weight->dims[2] <= longest) continue;
    size_t n_dilations = 0;
    const int64_t *dilations = laci_node_ints(node, "dilations", &n_dilations);
    int64_t apart = n_dilations == 1 && dilations[0] > 0 ? dilations[0] : 1;
    int64_t span = (weight->dims[2] - 1) * (apart < LONGEST ? apart : LONGEST) + 1;
    if (span > longest && span <= LONGEST) longest = span;
  }
  return longest;
}

/* Returns the product of the strides of all one-dimensional convolutions. If they are in series, so
 * many samples of audio become one. */
static int64_t multiply_strides(const laci_graph *graph) {
  int64_t product = 1;
  for (int n = 0; n < graph->n_nodes && product < LONGEST; n++) {
    const laci_node *node = &graph->nodes[n];
    size_t n_strides = 0;
    if (!laci_node_is(node, "Conv")) continue;
    const int64_t *strides = laci_node_ints(node, "strides", &n_strides);
    if (n_strides == 1 && strides[0] > 0) product *= strides[0] < LONGEST ? strides[0] : LONGEST;
  }
  return product;
}

/* Returns the length of inputs that are no images, in attempt number `at`. Only audio is longer
 * than 512: in other networks, products of two lengths would be far too large. */
static int64_t length_at_attempt(const laci_graph *graph, int at) {
  const int64_t most = 64 * multiply_strides(graph);
  if (at >= FIRST_WINDOW + N_WINDOWS && other_sizes[at] > 512 && other_sizes[at] > most)
    return other_sizes[0];
  if (at < FIRST_WINDOW || at >= FIRST_WINDOW + N_WINDOWS) return other_sizes[at];
  int64_t window = find_longest_window(graph);
  return window > 1 ? window * window_times[at - FIRST_WINDOW] : other_sizes[0];
}

static bool is_large_network(const laci_graph *graph) {
  int64_t total = 0;
  for (int s = 0; s < graph->n_stored && total <= LARGE_NETWORK; s++) {
    int64_t count = laci_shape_count(&graph->stored[s].shape);
    total += count > 0 ? count : 0;
  }
  return total > LARGE_NETWORK;
}

enum {
  NONE,
  BATCHES,
  OTHERS,
  IMAGES,
  OF_INPUT = 8 /* is added to the kind of a symbol that an input has */
};

/* Records the kind of every symbol in a value's shape. If a symbol is in several places, the
 * smallest kind counts: first axes are batches, later axes others or those of images. Kinds from
 * inputs are not changed. states: of three axes, [layers, batch, channels], the middle one is a
 * batch, too. Returns whether there is such an axis. */
static bool set_symbol_kinds_of_shape(const laci_graph *graph, int value, bool states,
                                      int64_t *kinds) {
  const laci_shape *shape = &graph->values[value].type.shape;
  bool found = false;
  for (int axis = 0; axis < shape->rank; axis++) {
    if (shape->dims[axis] >= 0 || -shape->dims[axis] > graph->n_symbols) continue;
    int64_t symbol = -shape->dims[axis];
    bool state = axis == 1 && shape->rank == 3;
    bool batch = axis == 0 || (state && states);
    int64_t now = batch ? BATCHES : shape->rank >= 4 ? IMAGES : OTHERS;
    found |= state;
    if (kinds[symbol] >= OF_INPUT) continue;
    if (kinds[symbol] == NONE || now < kinds[symbol]) kinds[symbol] = now;
  }
  return found;
}

/* Finds what each symbol (an unknown size) counts: batches, pixels of images, or others. First the
 * inputs determine that, then outputs of nodes without an implementation, which get random content.
 * Returns true if some input may be a recurrent state. */
static bool find_kinds_of_size_symbols(const laci_graph *graph, bool states, int64_t *kinds) {
  bool found = false;
  for (int s = 0; s <= graph->n_symbols; s++) kinds[s] = NONE;
  for (int i = 0; i < graph->n_inputs; i++) {
    found |= set_symbol_kinds_of_shape(graph, graph->inputs[i], states, kinds);
  }
  for (int s = 0; s <= graph->n_symbols; s++) kinds[s] += kinds[s] == NONE ? 0 : OF_INPUT;
  for (int at = 0; at < graph->n_nodes; at++) {
    const laci_node *node = &graph->nodes[at];
    for (int o = 0; !node->op && o < node->n_outputs; o++) {
      if (node->outputs[o] >= 0)
        (void)set_symbol_kinds_of_shape(graph, node->outputs[o], false, kinds);
    }
  }
  for (int s = 0; s <= graph->n_symbols; s++) kinds[s] %= OF_INPUT;
  return found;
}

bool laci_choose_symbol_sizes(const laci_graph *graph, int attempt, int64_t *size_of_symbol) {
  bool batches = false, others = false, large = is_large_network(graph);
  bool has_states = find_kinds_of_size_symbols(graph, false, size_of_symbol);
  int n_batches = 1;
  for (int s = 1; s <= graph->n_symbols; s++) {
    batches = batches || size_of_symbol[s] == BATCHES;
    others = others || size_of_symbol[s] == OTHERS || size_of_symbol[s] == IMAGES;
  }
  if (batches && !large)
    n_batches = 2; /* number of batch sizes to try: 1 as well, since some networks have a batch of 1
                      written into their shapes */
  int n_attempts = n_batches * (others ? N_SIZES : 1);
  if (attempt >= n_attempts && has_states) {
    attempt -= n_attempts;
    (void)find_kinds_of_size_symbols(graph, true, size_of_symbol);
  }
  if (attempt >= n_attempts) return false;
  int at = attempt / n_batches;
  int64_t batch = large || attempt % n_batches == 1 ? 1 : BATCH;
  const int64_t sizes[] = {[NONE] = 0,
                           [BATCHES] = batch,
                           [OTHERS] = length_at_attempt(graph, at),
                           [IMAGES] = image_sizes[at]};
  for (int s = 1; s <= graph->n_symbols; s++) size_of_symbol[s] = sizes[size_of_symbol[s]];
  return true;
}

bool laci_shape_replace_symbols(const laci_graph *graph, const laci_shape *shape,
                                const int64_t *size_of_symbol, laci_shape *real) {
  *real = *shape;
  for (int axis = 0; axis < shape->rank; axis++) {
    int64_t symbol = -shape->dims[axis];
    if (symbol <= 0) continue;
    if (symbol > graph->n_symbols || size_of_symbol[symbol] <= 0) return false;
    real->dims[axis] = size_of_symbol[symbol];
  }
  return laci_shape_count(real) >= 0;
}

typedef struct filling {
  laci_buf *buf;
  const laci_order_walk *walk;
  uint64_t seed, stream;
  double low, width;
} filling;

/* Writes the elements [from, from + n) of the random sequence to the tensor, from position `to` on.
 * Each block of the generator gives four elements of 32 bits. */
static void fill_elements(const filling *f, int64_t from, int64_t to, int64_t n) {
  const uint32_t key[2] = {(uint32_t)f->seed, (uint32_t)(f->seed >> 32)};
  uint32_t bits[4];
  for (int64_t i = 0; i < n; i++) {
    uint64_t element = (uint64_t)(from + i), block = element / 4;
    if (i == 0 || element % 4 == 0) {
      laci_rng_block((uint32_t[]){(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)f->stream,
                                  (uint32_t)(f->stream >> 32)},
                     key, bits);
    }
    double unit = bits[element % 4] * 0x1p-32;
    if (f->buf->f) f->buf->f[to + i] = f->low + f->width * unit;
    else f->buf->i[to + i] = (int64_t)f->low + (int64_t)(f->width * unit);
  }
}

static void fill_range(int64_t begin, int64_t end, void *context) {
  fill_elements(context, begin, begin, end - begin);
}

static void fill_reordered_runs(int64_t begin, int64_t end, void *context) {
  const filling *f = context;
  int64_t sources[256], run = f->walk->run;
  while (begin < end) {
    int64_t n = end - begin < 256 ? end - begin : 256;
    laci_order_walk_list_offsets(f->walk, begin, n, sources);
    for (int64_t i = 0; i < n; i++) fill_elements(f, sources[i], (begin + i) * run, run);
    begin += n;
  }
}

void laci_draw_uniform(laci_buf *buf, const laci_draw *draw, double low, double high,
                       const laci_order_walk *walk) {
  filling f = {.buf = buf,
               .walk = walk,
               .seed = draw->seed,
               .stream = draw->stream,
               .low = low,
               .width = high - low};
  if (!walk || walk->n_runs < 2) {
    laci_pool_for(draw->pool, buf->count, AT_ONCE, fill_range, &f);
  } else {
    laci_pool_for(draw->pool, walk->n_runs, walk->run < AT_ONCE ? AT_ONCE / walk->run : 1,
                  fill_reordered_runs, &f);
  }
}

/* Ranges of the numbers of each kind of draw: low, high for floats; whole_low, whole_high for
 * integers without a domain. */
static const struct {
  double low, high, whole_low, whole_high;
} draws[] = {
    [LACI_DRAW_USUAL] = {-1.75, 1.75, 0, 2}, /* deviation about 1 */
    [LACI_DRAW_POSITIVE] = {0.05, 1.75, 1, 3}, [LACI_DRAW_UNIT] = {0.01, 0.99, 0, 2},
    [LACI_DRAW_LARGE] = {-52.5, 52.5, 0, 30},  [LACI_DRAW_IMAGE] = {0, 255, 0, 256},
    [LACI_DRAW_HUGE] = {-1750, 1750, 0, 1000}, [LACI_DRAW_ONES] = {1, 1, 1, 2},
    [LACI_DRAW_ZEROS] = {0, 0, 0, 1},
};

/* Fills buf with the numbers of as many axes as it has elements: 0, 1, ... */
static void fill_with_axis_numbers(laci_buf *buf) {
  for (int64_t e = 0; e < buf->count; e++) {
    if (buf->f) buf->f[e] = (double)e;
    else buf->i[e] = e;
  }
}

/* Fills buf with random integers of the domain, even if its type is a float. */
static void draw_integers(laci_buf *buf, const laci_draw *draw, const laci_domain *domain) {
  double low = domain->low, high = domain->high;
  if (draw->kind == LACI_DRAW_ZEROS && high > low) high = low + 1;
  laci_draw_uniform(buf, draw, low, high, NULL);
  for (int64_t e = 0; buf->f && e < buf->count; e++) buf->f[e] = floor(buf->f[e]);
}

/* Fills buf with random boxes. Each row ends with two corners, one in the first part of the image,
 * the other in the last. The index of an image may come before them. */
static void draw_boxes(laci_buf *buf, const laci_draw *draw, const laci_domain *domain) {
  const laci_shape *shape = &buf->shape;
  const int64_t columns = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
  laci_draw_uniform(buf, draw, 0, 0.25, NULL);
  for (int64_t e = 0; e < buf->count; e++) {
    int64_t left = columns - e % columns; /* 4 and 3: coordinates of the first corner; 2 and 1: of
                                             the second */
    buf->f[e] = left > 4 ? 0 : (buf->f[e] + (left <= 2 ? 0.7 : 0)) * domain->high;
  }
}

static void draw_unconstrained(laci_buf *buf, const laci_draw *draw) {
  bool bytes = buf->i && buf->dtype != LAC_DTYPE_BOOL && laci_dtype_bits(buf->dtype) <= 8;
  double low = buf->f ? draws[draw->kind].low : draws[draw->kind].whole_low;
  double high = buf->f ? draws[draw->kind].high : draws[draw->kind].whole_high;
  if (bytes && draw->kind < LACI_DRAW_ONES) { /* bytes are often images or quantized values, which
                                                 use the whole range */
    int64_t least, most;
    laci_int_get_range(buf->dtype, &least, &most);
    low = (double)least;
    high = (double)most + 1;
  } else if (buf->dtype == LAC_DTYPE_BOOL && high > 2) {
    low = 0;
    high = 2;
  }
  laci_draw_uniform(buf, draw, low, high, NULL);
}

lac_status laci_verify_draw_input(const laci_graph *graph, int value, const laci_shape *shape,
                                  uint64_t seed, laci_buf **buf, lac_error *err) {
  const laci_draw draw = {.seed = seed, .stream = (uint64_t)value};
  return laci_draw_value(graph, value, shape, &draw, buf, err);
}

lac_status laci_draw_value(const laci_graph *graph, int value, const laci_shape *shape,
                           const laci_draw *draw, laci_buf **buf, lac_error *err) {
  lac_dtype dtype = graph->values[value].type.dtype;
  lac_status st = laci_buf_create(dtype == LAC_DTYPE_NONE ? LAC_DTYPE_F32 : dtype, shape, buf, err);
  if (st) return st;
  laci_domain domain = laci_domain_of_value(graph, value, draw->size_of_symbol);
  bool no_boxes = domain.kind == LACI_DOMAIN_BOXES && !(*buf)->f;
  if (dtype == LAC_DTYPE_BOOL || no_boxes) domain.kind = LACI_DOMAIN_FREE;
  switch (domain.kind) {
    case LACI_DOMAIN_INTEGERS: draw_integers(*buf, draw, &domain); break;
    case LACI_DOMAIN_AXES: fill_with_axis_numbers(*buf); break;
    case LACI_DOMAIN_BOXES: draw_boxes(*buf, draw, &domain); break;
    case LACI_DOMAIN_SHAPE: laci_draw_shape_content(graph, &domain, draw, *buf); break;
    default: draw_unconstrained(*buf, draw); break;
  }
  return LAC_OK;
}
