/* SPDX-License-Identifier: Apache-2.0
 * A function of one quantized value, by a table of its results (plan/quantized.h), in one pass over
 * memory in any layout. Bytes between int8 layers are looked up by native/int8/table.c. */
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/values.h"
#include "engine/cpu/onednn/onednn.h"
#include "engine/cpu/plan/quantized.h"
#include "cpu/pool.h"

typedef struct table_step {
  const laci_byte_table *table;
  int64_t n;
} table_step;

typedef struct table_work {
  const table_step *s;
  const float *x;
  float *y;
} table_work;

enum { GRAIN = 1 << 14 }; /* number of floats that a thread looks up at a time */

static void look_up_range(int64_t begin, int64_t end, void *context) {
  const table_work *w = context;
  laci_table_look_up_floats_variant()(w->s->table, w->x + begin, end - begin, w->y + begin);
}

static lac_status run_table(laci_net *net, laci_net_step *step, lac_error *err) {
  const table_step *s = step->context;
  table_work w = {s, laci_net_tensor_data(net, step->tensors[0]),
                  laci_net_tensor_data(net, step->tensors[1])};
  (void)err;
  laci_pool_for(net->pool, s->n, GRAIN, look_up_range, &w);
  return LAC_OK;
}

static bool can_lower_table(laci_net *net, const laci_fused *fused, const char **why) {
  (void)fused;
  *why = "values are bf16";
  return !net->plan.bf16;
}

/** Returns the number of floats of a tensor, padding included. */
static int64_t count_floats(const laci_net *net, int tensor) {
  const laci_net_tensor *t = &net->tensors[tensor];
  if (!t->native) return (int64_t)(laci_layout_bytes(t->md) / sizeof(float));
  return laci_native_count_floats(net, tensor);
}

/** Returns the operand as a tensor of floats without gaps. If zeros do not stay zeros, it is one
 * without padding. */
static int read_operand(laci_net *net, int value, const laci_byte_table *table) {
  int x = laci_native_read_as_floats(net, laci_net_value_tensor(net, value));
  const bool keeps_zeros = table->values[(int)-table->from.low] == 0;
  if (x < 0) return -1;
  if (net->tensors[x].native && keeps_zeros) return x;
  x = laci_net_make_whole_tensor(net, laci_net_read_value(net, value));
  if (x < 0 || count_floats(net, x) == laci_shape_count(&net->tensors[x].shape)) return x;
  return keeps_zeros ? x : laci_net_convert_to_dense(net, x, LACI_ELEMENT_F32);
}

static void lower_table(laci_net *net, const laci_fused *fused) {
  const laci_table_pattern *pattern = fused->details;
  const int x = read_operand(net, fused->reads[0], &pattern->table);
  const int y = laci_net_new_result_like(net, x, true);
  table_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[fused->node], run_table,
                                               2, (int[]){x, y});
  if (x < 0 || !s || !step) return;
  *s = (table_step){&pattern->table, count_floats(net, x)};
  step->what = pattern->what;
  step->kernel = "own";
  step->context = s;
  step->shown = y;
  laci_net_bind_value(net, fused->output, y);
}

const laci_implementation laci_implementations_table[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"our kernel", LACI_FUSIBLE_NOTHING, can_lower_table, lower_table},
    {.name = NULL},
};
