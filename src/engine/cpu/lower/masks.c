/* SPDX-License-Identifier: Apache-2.0
 * Masks and the operations from which they are computed: integers and truth values are compared,
 * combined, broadcast and converted to numbers, by the rows of rows.h. */
#include <string.h>

#include "engine/cpu/lower/rows.h"
#include "graph/op.h"
#include "graph/ops.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

/* ---- Truth values ---- */

typedef struct logic {
  const laci_op *op;
  laci_row_kind kind;
  int n;
} logic;

static const logic logics[] = {{&laci_op_and, LACI_ROW_AND, 2},
                               {&laci_op_or, LACI_ROW_OR, 2},
                               {&laci_op_xor, LACI_ROW_XOR, 2},
                               {&laci_op_not, LACI_ROW_NOT, 1},
                               {&laci_op_equal, LACI_ROW_EQUAL, 2},
                               {&laci_op_less, LACI_ROW_LESS, 2},
                               {&laci_op_less_or_equal, LACI_ROW_LESS_EQUAL, 2},
                               {&laci_op_greater, LACI_ROW_GREATER, 2},
                               {&laci_op_greater_or_equal, LACI_ROW_GREATER_EQUAL, 2}};

static const logic *find_logic_operation(const laci_node *node) {
  const logic *found = logics;
  while (found->op != node->op) found++;
  return found;
}

static bool can_lower_logic(laci_net *net, const laci_fused *fused, const char **why) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  bool fits =
      node->n_inputs == find_logic_operation(node)->n && laci_node_attr(node, "axis") == NULL;
  for (int at = 0; at < node->n_inputs && fits; at++) {
    lac_dtype dtype = net->plan.values[node->inputs[at]].type.dtype;
    fits = laci_dtype_is_integer(dtype) && dtype != LAC_DTYPE_U64;
  }
  *why = "elements of this type";
  return fits;
}

static void lower_logic(laci_net *net, const laci_fused *fused) {
  const logic *l = find_logic_operation(&net->plan.graph->nodes[fused->node]);
  laci_rows_add_step(net, fused, l->kind, l->n);
}

/* ---- Where, and copies ---- */

static bool can_lower_where(laci_net *net, const laci_fused *fused, const char **why) {
  const int *inputs = net->plan.graph->nodes[fused->node].inputs;
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  *why = "elements of this type";
  return !laci_plan_is_float(&net->plan, inputs[0]) &&
         laci_plan_is_float(&net->plan, inputs[1]) == is_float &&
         laci_plan_is_float(&net->plan, inputs[2]) == is_float;
}

static void lower_where(laci_net *net, const laci_fused *fused) {
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  laci_rows_add_step(net, fused, is_float ? LACI_ROW_CHOOSE_FLOATS : LACI_ROW_CHOOSE_INTEGERS, 3);
}

static void lower_expand(laci_net *net, const laci_fused *fused) {
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  laci_rows_add_step(net, fused, is_float ? LACI_ROW_COPY_FLOATS : LACI_ROW_COPY_INTEGERS, 1);
}

/* ---- Casts ---- */

static bool is_small_integer(lac_dtype dtype) {
  return laci_dtype_is_integer(dtype) && dtype != LAC_DTYPE_U64;
}

static lac_dtype type_before_cast(const laci_net *net, const laci_fused *fused) {
  return net->plan.values[net->plan.graph->nodes[fused->node].inputs[0]].type.dtype;
}

static bool is_f32_or_f64(lac_dtype dtype) {
  return dtype == LAC_DTYPE_F32 || dtype == LAC_DTYPE_F64;
}

/** Are the operand and the result of a cast stored as the same bytes? All floats of a net are f32,
 * so only a cast to a narrow type rounds. */
static bool can_lower_cast_of_same_bytes(laci_net *net, const laci_fused *fused, const char **why) {
  lac_dtype from = type_before_cast(net, fused), to = net->plan.values[fused->output].type.dtype;
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const char *mode = laci_node_text(node, "round_mode", "up");
  bool rounds = strcmp(mode, LACI_ROUND_MODE_NONE) != 0;
  *why = "a conversion";
  if (!rounds && laci_dtype_is_float(from) && laci_dtype_is_float(to)) return true;
  return (is_f32_or_f64(from) && is_f32_or_f64(to)) ||
         (is_small_integer(from) && to == LAC_DTYPE_I64) ||
         (from == to && !laci_dtype_is_narrow(from));
}

static void lower_cast_of_same_bytes(laci_net *net, const laci_fused *fused) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  laci_net_bind_value(net, fused->output, laci_net_read_value(net, node->inputs[0]));
}

/** Returns the narrow type to which a cast between floats rounds; NONE: the cast does more than
 * rounding. */
static lac_dtype rounding_type(lac_dtype from, lac_dtype to) {
  if (!laci_dtype_is_float(from) || !laci_dtype_is_float(to)) return LAC_DTYPE_NONE;
  if (is_f32_or_f64(from) || from == to) return to;
  return is_f32_or_f64(to) ? from : LAC_DTYPE_NONE;
}

static bool can_lower_rounding_cast(laci_net *net, const laci_fused *fused, const char **why) {
  lac_dtype to =
      rounding_type(type_before_cast(net, fused), net->plan.values[fused->output].type.dtype);
  *why = "a conversion through doubles";
  return to == LAC_DTYPE_F16 || to == LAC_DTYPE_BF16;
}

static void lower_rounding_cast(laci_net *net, const laci_fused *fused) {
  lac_dtype to =
      rounding_type(type_before_cast(net, fused), net->plan.values[fused->output].type.dtype);
  laci_rows_add_step(net, fused, to == LAC_DTYPE_F16 ? LACI_ROW_F16 : LACI_ROW_BF16, 1);
}

static bool can_lower_cast(laci_net *net, const laci_fused *fused, const char **why) {
  lac_dtype to = net->plan.values[fused->output].type.dtype;
  *why = "a conversion that rounds";
  return is_small_integer(type_before_cast(net, fused)) &&
         (to == LAC_DTYPE_BOOL || to == LAC_DTYPE_F32);
}

static void lower_cast(laci_net *net, const laci_fused *fused) {
  bool truth = net->plan.values[fused->output].type.dtype == LAC_DTYPE_BOOL;
  laci_rows_add_step(net, fused, truth ? LACI_ROW_TRUTH : LACI_ROW_NUMBER, 1);
}

/* ---- The lists of implementations ---- */

const laci_implementation laci_implementations_logic[] = {
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_logic, lower_logic},
    {.name = NULL},
};
const laci_implementation laci_implementations_where[] = {
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_where, lower_where},
    {.name = NULL},
};
const laci_implementation laci_implementations_expand[] = {
    {"rows", LACI_FUSIBLE_NOTHING, NULL, lower_expand},
    {.name = NULL},
};
const laci_implementation laci_implementations_cast[] = {
    {"the same bytes", LACI_FUSIBLE_NOTHING, can_lower_cast_of_same_bytes,
     lower_cast_of_same_bytes},
    {"rounded", LACI_FUSIBLE_NOTHING, can_lower_rounding_cast, lower_rounding_cast},
    {"rows", LACI_FUSIBLE_NOTHING, can_lower_cast, lower_cast},
    {.name = NULL},
};
