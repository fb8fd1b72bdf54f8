/* SPDX-License-Identifier: Apache-2.0
 * A function of one quantized value, by a table of its results (plan/quantized.h), in one pass over
 * memory in any layout. Bytes between int8 layers are looked up by native/int8/table.c. */
#include "engine/cpu/lower/float_pass.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/values.h"
#include "engine/cpu/onednn/onednn.h"
#include "engine/cpu/plan/quantized.h"

enum { GRAIN = 1 << 14 }; /* number of floats that a thread looks up at a time */

static void look_up_floats(const void *table, const float *x, int64_t n, float *y) {
  laci_table_look_up_floats_variant()(table, x, n, y);
}

/** Returns the operand as a tensor of floats without gaps. If zeros do not stay zeros, it is one
 * without padding. */
static int read_operand_without_gaps(laci_net *net, int value, const laci_byte_table *table) {
  int x = laci_native_read_as_floats(net, laci_net_find_value_tensor(net, value));
  const bool keeps_zeros = table->values[(int)-table->from.low] == 0;
  if (x < 0) return -1;
  if (net->tensors[x].native && keeps_zeros) return x;
  x = laci_net_make_whole_tensor(net, laci_net_read_value(net, value));
  if (x < 0 || laci_net_count_floats(net, x) == laci_shape_count(&net->tensors[x].shape)) return x;
  return keeps_zeros ? x : laci_net_convert_to_dense(net, x, LACI_ELEMENT_F32);
}

static void lower_table(laci_net *net, const laci_fused *fused) {
  const laci_table_pattern *pattern = fused->details;
  const int x = read_operand_without_gaps(net, fused->reads[0], &pattern->table);
  laci_net_add_float_pass(net, fused, x,
                          &(laci_float_pass){.compute = look_up_floats,
                                             .details = &pattern->table,
                                             .what = pattern->what,
                                             .grain = GRAIN});
}

const laci_implementation laci_implementations_table[] = {
    {"sparse kernels", LACI_FUSIBLE_NOTHING, laci_can_lower_native, laci_lower_native},
    {"our kernel", LACI_FUSIBLE_NOTHING, laci_can_lower_float_pass, lower_table},
    {.name = NULL},
};
