/* SPDX-License-Identifier: Apache-2.0
 * A function of an int8 value whose result is int8, by a table (plan/quantized.h): an activation
 * between int8 layers. Each byte is looked up where it is stored, so that the result has the layout
 * of the operand. */
#include "engine/cpu/native/int8/int8.h"
#include "cpu/pool.h"
#include "engine/cpu/native/algorithms/algorithm.h"
#include "engine/cpu/native/algorithms/algorithms.h"
#include "engine/cpu/plan/quantized.h"
#include "kernel/sparse/bytes.h"

typedef struct table_work {
  const uint8_t *bytes, *x;
  uint8_t *y;
} table_work;

enum { GRAIN = 1 << 15 }; /* number of bytes that a thread looks up at a time */

static void look_up_byte_range(int64_t begin, int64_t end, void *context) {
  const table_work *w = context;
  laci_table_look_up_bytes_variant()(w->bytes, w->x + begin, end - begin, w->y + begin);
}

static void run_layer(laci_net *net, const laci_native_layer_step *step) {
  const laci_native_tensors *t = &step->tensors;
  const laci_native_int8_data *int8 = step->layer->int8;
  const laci_table_pattern *table = step->layer->fused->details;
  table_work w = {.bytes = table->bytes,
                  .x = laci_net_tensor_data(net, t->x),
                  .y = laci_net_tensor_data(net, t->y)};
  const size_t n = net->buffers[net->tensors[t->y].buffer].bytes;
  laci_pool_for(net->pool, (int64_t)n, GRAIN, look_up_byte_range, &w);
  /* the padding of the operand is zeros, which the function may make other numbers of */
  if (table->bytes[laci_bytes_zero_point(int8->x)] != laci_bytes_zero_point(int8->y))
    laci_native_fill_result_border(net, step, (float *)(void *)w.y);
}

static void prepare_table_step(laci_net *net, laci_native_layer_step *step) {
  (void)net;
  step->kernel = "int8 table";
}

static bool can_compute_layer(const laci_net *net, const laci_native_layer *layer,
                              const char **why) {
  (void)net;
  *why = "it is no function of an int8 value";
  return layer->kind == LACI_NATIVE_TABLE && !layer->is_dense;
}

const laci_algorithm laci_algorithm_table = {.name = "table",
                                             .timed_as = "sparse",
                                             .kind = LACI_NATIVE_TABLE,
                                             .can = can_compute_layer,
                                             .cost = laci_cost_of_memory_bound,
                                             .make = prepare_table_step,
                                             .run = run_layer};
