/* SPDX-License-Identifier: Apache-2.0
 * Assigns layouts to the values of native layers, so that one layer writes what the next one reads.
 *
 * With many images, SIMD lanes are images (HWC16N), and a value has the widest border that its
 * readers need. With few images, lanes are pixels: a value is in CHW with a border where a reader's
 * window has more than one pixel, and in PC16P where none has. All values of the same height and
 * width then have the same row stride, so that the tiles of a layer's results and of its input
 * follow the same long row. The exception are strided windows that read phases. If the rows of
 * their phases are longer, the row stride becomes that of the phases only if that makes less work
 * for all layers together. */
#include "engine/cpu/native/layout/tensors.h"
#include "base/divide.h"
#include "engine/cpu/native/layer.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/algorithms/algorithm.h"

static int64_t larger_of(int64_t a, int64_t b) { return a > b ? a : b; }

static laci_native_value_layout *find_joined_layout(const laci_net *net, int value) {
  laci_native_value_layout *layouts = net->native->layouts;
  while (layouts[value].same_as != value) value = layouts[value].same_as;
  return &layouts[value];
}

/* ---- Rows ---- */

/** The row stride that all native values of one height h and width w have. */
typedef struct stride_of_size {
  int64_t h, w, stride;
  int64_t of_phases; /* row stride for windows that read their input in phases; 0: there are none */
  bool depthwise;    /* a depthwise convolution of floats reads values of this size */
} stride_of_size;

typedef struct row_table {
  stride_of_size *list; /* row strides of all image sizes: at most one for each value of a layer */
  int n;
} row_table;

static stride_of_size *find_row_stride(row_table *table, int64_t h, int64_t w) {
  int at = 0;
  while (at < table->n && (table->list[at].h != h || table->list[at].w != w)) at++;
  if (at == table->n) table->list[table->n++] = (stride_of_size){.h = h, .w = w, .stride = w};
  return &table->list[at];
}

/** Can the layer's kernel do without zeros between rows of its input, even if its window reaches
 * beyond the ends of the rows? */
static bool needs_no_row_padding(const laci_net *net, const laci_native_layer *layer) {
  if (laci_native_has_image_lanes(layer->n_images) || layer->kind != LACI_NATIVE_PRODUCT)
    return false;
  const laci_algorithm *algorithm = laci_algorithm_by_id(layer->algorithm);
  return algorithm->is_unpadded && algorithm->is_unpadded(net, layer);
}

/** Returns the widths of the border of zeros that a layer reads around its input. */
static laci_sparse_border find_input_border(const laci_net *net, const laci_native_layer *layer) {
  laci_sparse_border b = laci_sparse_needed_border(&layer->window);
  if (needs_no_row_padding(net, layer)) b.left = b.right = 0;
  return b;
}

/** Returns the row stride of one phase of the layer's input, without zeros added between rows. */
static int64_t phase_row_stride(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_border b = find_input_border(net, layer);
  return laci_ceil_div(b.left + layer->window.w + b.right, layer->window.stride_w);
}

/** Does the layer read the border of its input as if it were pixels? */
static bool needs_border_as_pixels(const laci_native_layer *layer) {
  return layer->reading == LACI_NATIVE_AS_STORED && layer->kind != LACI_NATIVE_POOL &&
         layer->kind != LACI_NATIVE_MOVE;
}

static void widen_row_stride(const laci_net *net, row_table *table,
                             const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  stride_of_size *in = find_row_stride(table, g->h, g->w);
  if (needs_border_as_pixels(layer)) {
    const laci_sparse_border b = find_input_border(net, layer);
    in->stride = larger_of(in->stride, g->w + larger_of(b.left, b.right));
    in->depthwise = in->depthwise || (layer->kind == LACI_NATIVE_DEPTHWISE && !layer->int8);
  }
  stride_of_size *out = find_row_stride(table, g->out_h, g->out_w);
  if (layer->reading == LACI_NATIVE_PHASES) {
    out->of_phases = larger_of(out->of_phases, phase_row_stride(net, layer));
  }
}

/** Returns the number of tiles of a layer's results, if their row stride is `stride`. If a layer
 * reads phases, and that stride is smaller than the phases' row stride, its tiles begin anew in
 * each row. */
static int64_t count_tiles(const laci_net *net, const laci_native_layer *layer, int64_t stride) {
  const laci_sparse_window *g = &layer->window;
  const bool apart = layer->reading == LACI_NATIVE_PHASES && stride < phase_row_stride(net, layer);
  if (apart) return g->out_h * laci_ceil_div(g->out_w, LACI_SPARSE_LANES);
  return laci_ceil_div((g->out_h - 1) * stride + g->out_w, LACI_SPARSE_LANES);
}

/** Returns the number of multiply-adds of all layers whose results have this height and width, if
 * their row stride is `stride`. */
static double count_multiply_adds(const laci_net *net, const stride_of_size *r, int64_t stride) {
  const laci_native_net *native = net->native;
  double n = 0;
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    const laci_sparse_window *g = &layer->window;
    if (!layer->chosen || layer->kind != LACI_NATIVE_PRODUCT) continue;
    if (laci_algorithm_by_id(layer->algorithm)->transforms || g->out_h != r->h || g->out_w != r->w)
      continue;
    const double kept = layer->kept * (double)(g->channels_out * laci_sparse_weights_per_row(g));
    n += kept * (double)(layer->n_images * count_tiles(net, layer, stride));
  }
  return n;
}

/** Makes rows of nearly 16 pixels whole vectors, if that needs no more tiles: a depthwise
 * convolution then loads each row once for all results that read it. */
static void lengthen_short_rows(stride_of_size *r) {
  enum { LANES = LACI_SPARSE_LANES };
  if (!r->depthwise || r->stride <= LANES / 2 || r->stride >= LANES) return;
  if (r->h == laci_ceil_div((r->h - 1) * r->stride + r->w, LANES)) r->stride = LANES;
}

/** Chooses the row stride of phases for a height and width, if that makes less work. */
static void choose_row_stride(const laci_net *net, stride_of_size *r) {
  lengthen_short_rows(r);
  if (r->of_phases <= r->stride) return;
  if (count_multiply_adds(net, r, r->of_phases) <= count_multiply_adds(net, r, r->stride))
    r->stride = r->of_phases;
}

/* ---- Layouts of values ---- */

static void join_value_layouts(laci_net *net, int value, int with) {
  laci_native_value_layout *a = find_joined_layout(net, value), *b = find_joined_layout(net, with);
  b->same_as = a->same_as;
}

static void widen_border(laci_sparse_border *border, const laci_sparse_border *b) {
  border->top = larger_of(border->top, b->top);
  border->left = larger_of(border->left, b->left);
  border->bottom = larger_of(border->bottom, b->bottom);
  border->right = larger_of(border->right, b->right);
}

/** Records that an int8 layer reads the value as it is stored. */
static void record_int8_read(laci_net *net, int value, bool rows, bool is_chw) {
  laci_native_value_layout *layout = find_joined_layout(net, value);
  net->native->layouts[value].read_as_int8 = true;
  layout->used = true;
  layout->rows = rows;
  layout->is_chw = layout->is_chw || is_chw;
}

/** Records how the layer uses its values. int8x4 values are made in the layout of the floats, even
 * for a strided window, which then reads a reordered copy. */
static void record_value_uses(laci_net *net, const laci_native_layer *layer) {
  laci_native_value_layout *out = find_joined_layout(net, layer->output);
  laci_native_value_layout *in = find_joined_layout(net, layer->input);
  out->used = true;
  out->rows = layer->rows;
  if (layer->int8) net->native->layouts[layer->input].read_as_int8 = true;
  if (layer->int8 && layer->int8->residual)
    net->native->layouts[layer->residual].read_as_int8 = true;
  if (layer->int8 || layer->reading == LACI_NATIVE_AS_STORED) {
    in->used = true;
    in->rows = layer->rows;
  }
  const int gate = laci_native_gate_value(layer);
  if (gate >= 0) record_int8_read(net, gate, layer->rows, false);
  const laci_native_move *move = layer->move;
  for (int at = 0; move && at < move->n_sources; at++)
    record_int8_read(net, move->values[at], layer->rows, move->moves_pixels);
  if (move && move->moves_pixels) out->is_chw = true;
  in->is_chw = in->is_chw || layer->kind == LACI_NATIVE_POOL; /* a pool reads rows of one channel */
  if (!needs_border_as_pixels(layer)) return;
  const laci_sparse_border b = find_input_border(net, layer);
  in->is_chw = in->is_chw || !laci_native_is_1x1(&layer->window);
  widen_border(&in->border, &b);
}

/** Makes the layer's result CHW unless the layer can write it in PC16P. PC16P can be written by
 * products whose input has the same row stride as the result, and by layers that traverse their
 * results. */
static void use_chw_if_needed(laci_net *net, row_table *table, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const int64_t out = find_row_stride(table, g->out_h, g->out_w)->stride;
  bool differs = layer->reading == LACI_NATIVE_PHASES && out < phase_row_stride(net, layer);
  if (layer->reading == LACI_NATIVE_AS_STORED && layer->kind == LACI_NATIVE_PRODUCT) {
    differs = find_row_stride(table, g->h, g->w)->stride != out;
  }
  if (differs) find_joined_layout(net, layer->output)->is_chw = true;
}

static void set_layout_of_value(laci_net *net, row_table *table, int value) {
  laci_native_value_layout *layout = find_joined_layout(net, value);
  const laci_shape *shape = laci_plan_shape(&net->plan, value);
  const laci_sparse_size size = laci_native_value_size(net, shape, layout->rows);
  laci_sparse_border border = layout->border;
  border.stride_h = border.stride_w = 1;
  laci_memory_format format = LACI_FORMAT_HWC16N;
  if (!laci_native_has_image_lanes(size.n_images)) {
    format = layout->is_chw ? LACI_FORMAT_CHW : LACI_FORMAT_PC16P;
    border.right = larger_of(border.right, find_row_stride(table, size.h, size.w)->stride - size.w);
  }
  layout->layout = laci_sparse_padded_layout(format, size.channels, size.h, size.w, border);
  layout->of_int8x4 = laci_sparse_padded_layout(
      format, laci_sparse_layout_channels(size.channels, LACI_SPARSE_S8), size.h, size.w, border);
}

/** Joins matrices that have the same rows under other axes. */
static void join_matrices_of_same_rows(laci_net *net) {
  const laci_cpu_plan *plan = &net->plan;
  bool *images = laci_plan_alloc(&net->plan, (size_t)plan->graph->n_values, sizeof *images);
  if (!images) return;
  laci_native_mark_images(net, true, images);
  for (int t = 0; t < plan->n_scheduled; t++) {
    const int value = plan->fused[plan->schedule[t].fused].output;
    const int same = laci_native_find_same_rows(plan, value);
    if (same >= 0 && !images[value] && !images[same]) join_value_layouts(net, value, same);
  }
}

/** Marks a matrix as read in int8 if its only reader is a Reshape or Transpose that keeps its rows,
 * and whose result is read in int8. */
static void mark_int8_matrices_of_same_rows(laci_net *net) {
  const laci_cpu_plan *plan = &net->plan;
  laci_native_value_layout *layouts = net->native->layouts;
  for (int t = plan->n_scheduled - 1; t >= 0; t--) {
    const int value = plan->fused[plan->schedule[t].fused].output;
    const int same = laci_native_find_same_rows(plan, value);
    if (same < 0 || find_joined_layout(net, same) != find_joined_layout(net, value)) continue;
    if (laci_plan_count_uses(plan, same) == 1 && layouts[value].read_as_int8)
      layouts[same].read_as_int8 = true;
  }
}

void laci_native_assign_layouts(laci_net *net) {
  laci_native_net *native = net->native;
  laci_native_value_layout *layouts = native->layouts;
  size_t n_values = 0; /* limit of the number of image sizes */
  for (int at = 0; at < native->n_layers; at++)
    n_values += (size_t)laci_native_n_values(&native->layers[at]);
  row_table table = {.list = laci_plan_alloc(&net->plan, n_values, sizeof *table.list)};
  if (!table.list) return;
  for (int v = 0; v < net->plan.graph->n_values; v++)
    layouts[v] = (laci_native_value_layout){.same_as = v};
  for (int at = 0; at < native->n_layers; at++) {
    const laci_native_layer *layer = &native->layers[at];
    if (!layer->chosen) continue;
    if (layer->residual >= 0) join_value_layouts(net, layer->output, layer->residual);
    if (laci_native_is_elementwise(layer)) join_value_layouts(net, layer->output, layer->input);
    widen_row_stride(net, &table, layer);
  }
  join_matrices_of_same_rows(net);
  for (int at = 0; at < table.n; at++) choose_row_stride(net, &table.list[at]);
  for (int at = 0; at < native->n_layers; at++) {
    if (native->layers[at].chosen) record_value_uses(net, &native->layers[at]);
  }
  mark_int8_matrices_of_same_rows(net);
  for (int at = 0; at < native->n_layers; at++) {
    if (native->layers[at].chosen) use_chw_if_needed(net, &table, &native->layers[at]);
  }
  for (int v = 0; v < net->plan.graph->n_values; v++) {
    if (layouts[v].same_as == v && layouts[v].used) set_layout_of_value(net, &table, v);
  }
}

const laci_sparse_layout *laci_native_assigned_layout(const laci_net *net, int value) {
  return &find_joined_layout(net, value)->layout;
}

bool laci_native_has_assigned_layout(const laci_net *net, int value) {
  return net->native && net->native->layouts && find_joined_layout(net, value)->used;
}

bool laci_native_is_read_as_int8(const laci_net *net, int value) {
  return net->native && net->native->layouts && net->native->layouts[value].read_as_int8;
}

laci_native_layout laci_native_layout_of_value(const laci_net *net, int value,
                                               const laci_fake_quantized *bytes) {
  const laci_native_value_layout *layout = find_joined_layout(net, value);
  return (laci_native_layout){.layout = bytes ? layout->of_int8x4 : layout->layout,
                              .rows = layout->rows,
                              .bytes = bytes,
                              .as_floats = layout->layout};
}

laci_sparse_layout laci_native_output_layout(const laci_net *net, const laci_native_layer *layer) {
  const laci_fake_quantized *bytes = layer->int8 ? layer->int8->y : NULL;
  laci_sparse_layout out = laci_native_layout_of_value(net, layer->output, bytes).layout;
  if (layer->scatter > 1) {
    out.row_stride *= layer->scatter;
    out.pixel_stride *= layer->scatter;
    out.top = out.left = 0;
  }
  return out;
}

laci_sparse_layout laci_native_input_layout(const laci_net *net, const laci_native_layer *layer) {
  const laci_sparse_window *g = &layer->window;
  const int64_t channels = laci_sparse_layout_channels(g->channels_in, g->values);
  const int64_t rows_out = laci_native_assigned_layout(net, layer->output)->row_stride;
  if (layer->reading == LACI_NATIVE_AS_STORED) {
    return laci_native_layout_of_value(net, layer->input, layer->int8 ? layer->int8->x : NULL)
        .layout;
  }
  if (layer->reading == LACI_NATIVE_SUBSAMPLED) {
    const laci_sparse_border between = {.right = rows_out - g->out_w};
    return laci_sparse_padded_layout(LACI_FORMAT_PC16P, channels, g->out_h, g->out_w, between);
  }
  if (layer->reading == LACI_NATIVE_ROW_MAJOR) {
    return laci_sparse_layout_contiguous(LACI_FORMAT_CHW, channels, g->h, g->w);
  }
  laci_sparse_border border = find_input_border(net, layer);
  const int64_t less = rows_out - phase_row_stride(net, layer);
  if (less > 0) border.right += less * g->stride_w;
  return laci_sparse_padded_layout(LACI_FORMAT_CHW, channels, g->h, g->w, border);
}
