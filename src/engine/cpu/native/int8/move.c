/* SPDX-License-Identifier: Apache-2.0
 * Moves bytes from int8 values to an int8 result: a Concat, Slice, Pad or Resize to the nearest
 * pixel between int8 layers (plan/moves.h). Where operand and result have different scales, a table
 * has the byte that each byte becomes when it is dequantized and quantized again. */
#include "kernel/sparse/byte_moves.h"

#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/native/layout/layout.h"
#include "engine/cpu/native/layout/tensors.h"
#include "engine/cpu/plan/quantized.h"
#include "kernel/sparse/bytes.h"

typedef struct move_state {
  laci_byte_move move;
  const uint32_t **x; /* [number of sources] addresses of the sources, set by each run */
} move_state;

typedef struct move_work {
  const move_state *s;
  uint32_t *y;
} move_work;

static void move_item_range(int64_t begin, int64_t end, void *context) {
  const move_work *w = context;
  laci_byte_move_variant()(&w->s->move, w->s->x, w->y, begin, end);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  const laci_native_move *move = step->layer->move;
  const move_state *s = step->state;
  move_work w = {s, laci_net_tensor_data(net, step->tensors.y)};
  for (int at = 0; at < move->n_sources; at++)
    s->x[at] = laci_net_tensor_data(net, step->tensors.sources[at]);
  const int64_t n_items = laci_byte_move_n_items(&s->move);
  const int64_t n_floats = s->move.n_image_blocks * s->move.out.n_floats;
  laci_native_fill_result_border(net, step, (float *)(void *)w.y);
  laci_pool_for(net->pool, n_items, laci_native_items_per_task(n_items, n_floats), move_item_range,
                &w);
}

/** Returns a table of the bytes that those of x become as those of y; NULL: no memory. */
static const uint8_t *make_table(laci_net *net, const laci_fake_quantized *x,
                                 const laci_fake_quantized *y) {
  uint8_t *table = laci_plan_alloc(&net->plan, LACI_N_BYTES, sizeof *table);
  for (int at = 0; at < LACI_N_BYTES && table; at++) {
    table[at] = laci_quantize_to_byte(y, ((float)at + x->low) * x->scale);
  }
  return table;
}

/** Sets the runs of columns of a part; false: no memory. */
static bool set_column_runs(laci_net *net, const int32_t *columns, int64_t n,
                            laci_byte_move_part *part) {
  part->n_runs = laci_byte_move_find_runs(columns, n, NULL);
  laci_byte_run *runs = laci_plan_alloc(&net->plan, (size_t)part->n_runs, sizeof *runs);
  if (runs) (void)laci_byte_move_find_runs(columns, n, runs);
  part->runs = runs;
  return runs != NULL;
}

/** Sets the parts as the kernel reads them; false: no memory. */
static bool set_kernel_parts(laci_net *net, const laci_native_layer *layer,
                             laci_byte_move_part *parts) {
  const laci_native_move *move = layer->move;
  for (int at = 0; at < move->n_parts; at++) {
    const laci_native_moved_part *part = &move->parts[at];
    const int value = move->values[part->source];
    const laci_fake_quantized *x = move->quantized[part->source], *y = layer->int8->y;
    const laci_native_layout in = laci_native_layout_of_value(net, value, x);
    const bool same = laci_plan_has_same_scale_and_bounds(x, y);
    parts[at] = (laci_byte_move_part){
        .x = part->source,
        .in = in.layout,
        .width = laci_native_size_in_layout(net, laci_plan_shape(&net->plan, value), &in).w,
        .channels = part->channels,
        .rows = part->rows,
        .table = same ? NULL : make_table(net, x, y)};
    if (!same && !parts[at].table) return false;
    if (!set_column_runs(net, part->columns, layer->window.out_w, &parts[at])) return false;
  }
  return true;
}

static void prepare_move_step(laci_net *net, laci_native_layer_step *step) {
  const laci_native_layer *layer = step->layer;
  const laci_native_move *move = layer->move;
  laci_byte_move_part *parts = laci_plan_alloc(&net->plan, (size_t)move->n_parts, sizeof *parts);
  move_state *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!parts || !s || !set_kernel_parts(net, layer, parts)) return;
  *s =
      (move_state){.move = {.out = step->out,
                            .channels = layer->window.channels_out,
                            .h = layer->window.out_h,
                            .w = layer->window.out_w,
                            .n_image_blocks = laci_native_image_blocks(&step->out, layer->n_images),
                            .n_parts = move->n_parts,
                            .parts = parts,
                            .is_filled = move->is_filled,
                            .fill = move->fill,
                            .zero = (uint8_t)laci_bytes_zero_point(layer->int8->y),
                            .look_up = laci_table_look_up_bytes_variant()},
                   .x = laci_plan_alloc(&net->plan, (size_t)move->n_sources, sizeof *s->x)};
  if (!s->x) return;
  step->state = s;
  step->kernel = "int8 move";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it moves no int8 values";
  return layer->kind == LACI_NATIVE_MOVE && !layer->is_dense;
}

const laci_algorithm laci_algorithm_move = {.name = "move",
                                            .timed_as = "sparse",
                                            .kind = LACI_NATIVE_MOVE,
                                            .can = can_compute_layer,
                                            .cost = laci_cost_of_memory_bound,
                                            .make = prepare_move_step,
                                            .run = run_layer};
