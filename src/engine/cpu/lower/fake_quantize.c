/* SPDX-License-Identifier: Apache-2.0
 * QuantizeLinear and DequantizeLinear together, in one pass over memory in any layout: zeros stay
 * zeros, so that padding between pixels can be included. */
#include "engine/cpu/lower/float_pass.h"
#include "engine/cpu/native/native.h"
#include "engine/cpu/native/values.h"
#include "kernel/pointwise/fake_quantize.h"
#include "engine/cpu/onednn/onednn.h"

enum { GRAIN = 1 << 14 }; /* number of floats that a thread computes at a time */

static void fake_quantize_floats(const void *q, const float *x, int64_t n, float *y) {
  laci_fake_quantize_variant()(q, x, n, y);
}

/** Returns a tensor of the result's int8 values for the int8 layers that read it; -1: none does. */
static int find_int8_result(laci_net *net, const laci_fused *fused) {
  return laci_native_read_as_int8(net, fused->reads[0], fused->output, fused->details);
}

/** Is a table of floats the only reader of the value? It gives the same results for numbers before
 * they are quantized (kernel/pointwise/table.h). */
static bool is_read_only_by_table(const laci_net *net, int value) {
  const laci_cpu_plan *plan = &net->plan;
  int readers[2];
  if (laci_plan_count_uses(plan, value) != 1 || laci_plan_find_readers(plan, value, readers) < 1)
    return false;
  const laci_fused *fused = &plan->fused[laci_plan_find_computing_node(plan, readers[0])];
  return fused->pattern == LACI_PATTERN_TABLE && fused->reads[0] == value &&
         !laci_native_is_chosen_layer(net, fused);
}

static void lower_quantize(laci_net *net, const laci_fused *fused) {
  if (laci_native_is_within_layer(net, fused->reads[0])) return;
  int x = laci_net_find_value_tensor(net, fused->reads[0]);
  /* the layer before it has written the int8 values already */
  const bool are_there = laci_native_is_int8_tensor(net, x, fused->details);
  if (are_there || laci_native_has_int8_reader(net, fused->output)) {
    laci_net_bind_value(net, fused->output, are_there ? x : find_int8_result(net, fused));
    return;
  }
  if (is_read_only_by_table(net, fused->output)) {
    laci_net_bind_value(net, fused->output, x);
    return;
  }
  x = laci_native_read_as_floats(net, x);
  if (x >= 0 && !net->tensors[x].native) {
    x = laci_net_make_whole_tensor(
        net, laci_net_convert_tensor(net, x, net->tensors[x].md, LACI_ELEMENT_F32));
  }
  laci_net_add_float_pass(net, fused, x,
                          &(laci_float_pass){.compute = fake_quantize_floats,
                                             .details = fused->details,
                                             .what = "QuantizeLinear + DequantizeLinear",
                                             .grain = GRAIN});
}

/** Binds the result of a DequantizeLinear to the result of another one that reads the same
 * bytes. */
static void lower_repeated_dequantize(laci_net *net, const laci_fused *fused) {
  laci_net_bind_value(net, fused->output, laci_net_find_value_tensor(net, fused->reads[0]));
}

const laci_implementation laci_implementations_duplicate[] = {
    {"nothing", LACI_FUSIBLE_NOTHING, NULL, lower_repeated_dequantize},
    {.name = NULL},
};
const laci_implementation laci_implementations_quantize[] = {
    {"our kernel", LACI_FUSIBLE_NOTHING, laci_can_lower_float_pass, lower_quantize},
    {.name = NULL},
};
