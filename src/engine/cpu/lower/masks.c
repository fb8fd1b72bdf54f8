/* SPDX-License-Identifier: Apache-2.0
 * Masks and the operations from which they are computed: integers and truth values are compared,
 * combined, broadcast and converted to numbers, in one pass over the result's rows.
 *
 * Truth values are int64, as all integers in a net, and row-major. An operand that broadcasts is
 * read with strides of 0; floats are read and written as f32. */
#include <string.h>

#include "engine/cpu/net_in.h"
#include "graph/ops.h"
#include "graph/op.h"
#include "tensor/buf.h"
#include "tensor/bf16.h"
#include "tensor/narrow.h"

enum { MOST_OPERANDS = 3 };

/** Computes one row of n elements of the result: to[i] from element i * steps[k] of each operand
 * from[k]. */
typedef void row_function(int64_t n, void *to, const void *const from[MOST_OPERANDS],
                          const int64_t steps[MOST_OPERANDS]);

/** A step that computes its result row by row, along the last axis, and how each operand is read
 * for that. */
typedef struct rows {
  row_function *row;
  int n_operands, rank; /* number of operands; rank of the result, at least 1 */
  int64_t sizes[LACI_MAX_RANK], strides[MOST_OPERANDS][LACI_MAX_RANK];
  size_t elements[MOST_OPERANDS + 1]; /* bytes of an element of each operand, and last of the
                                         result */
} rows;

/* ---- Rows ---- */

#define INTEGER(k) (((const int64_t *)from[k])[i * steps[k]])
#define DEFINE_ROW(NAME, TYPE, VALUE)                                          \
  static void NAME(int64_t n, void *to, const void *const from[MOST_OPERANDS], \
                   const int64_t steps[MOST_OPERANDS]) {                       \
    for (int64_t i = 0; i < n; i++) ((TYPE *)to)[i] = VALUE;                   \
  }

DEFINE_ROW(row_and, int64_t, INTEGER(0) && INTEGER(1))
DEFINE_ROW(row_or, int64_t, INTEGER(0) || INTEGER(1))
DEFINE_ROW(row_xor, int64_t, !INTEGER(0) != !INTEGER(1))
DEFINE_ROW(row_not, int64_t, !INTEGER(0))
DEFINE_ROW(row_equal, int64_t, INTEGER(0) == INTEGER(1))
DEFINE_ROW(row_less, int64_t, INTEGER(0) < INTEGER(1))
DEFINE_ROW(row_less_equal, int64_t, INTEGER(0) <= INTEGER(1))
DEFINE_ROW(row_greater, int64_t, INTEGER(0) > INTEGER(1))
DEFINE_ROW(row_greater_equal, int64_t, INTEGER(0) >= INTEGER(1))
DEFINE_ROW(row_truth, int64_t, INTEGER(0) != 0)
DEFINE_ROW(row_number, float, (float)INTEGER(0))
DEFINE_ROW(row_f16, float, laci_f16_nearest(((const float *)from[0])[i * steps[0]]))
DEFINE_ROW(row_bf16, float,
           laci_bf16_value(laci_bf16_round(((const float *)from[0])[i * steps[0]])))
DEFINE_ROW(row_copy_integers, int64_t, INTEGER(0))
DEFINE_ROW(row_copy_floats, float, ((const float *)from[0])[i * steps[0]])
DEFINE_ROW(row_choose_integers, int64_t, INTEGER(0) ? INTEGER(1) : INTEGER(2))
DEFINE_ROW(row_choose_floats, float,
           INTEGER(0) ? ((const float *)from[1])[i * steps[1]]
                      : ((const float *)from[2])[i * steps[2]])

static lac_status apply_function_to_rows(laci_net *net, laci_net_step *step, lac_error *err) {
  const rows *r = step->context;
  int last = r->rank - 1;
  int64_t index[LACI_MAX_RANK] = {0}, steps[MOST_OPERANDS] = {0};
  const char *from[MOST_OPERANDS] = {NULL};
  char *to = laci_net_tensor_data(net, step->tensors[r->n_operands]);
  (void)err;
  for (int k = 0; k < r->n_operands; k++) {
    from[k] = laci_net_tensor_data(net, step->tensors[k]);
    steps[k] = r->strides[k][last];
  }
  for (int axis = 0; axis >= 0;) {
    r->row(r->sizes[last], to, (const void *const *)from, steps);
    to += (size_t)r->sizes[last] * r->elements[MOST_OPERANDS];
    for (axis = last - 1; axis >= 0; axis--) { /* advances the indices to the next row, as an
                                                  odometer does */
      bool wraps = ++index[axis] == r->sizes[axis];
      int64_t move = wraps ? 1 - r->sizes[axis] : 1;
      if (wraps) index[axis] = 0;
      for (int k = 0; k < r->n_operands; k++) {
        from[k] += move * r->strides[k][axis] * (int64_t)r->elements[k];
      }
      if (!wraps) break;
    }
  }
  return LAC_OK;
}

/* ---- Steps ---- */

static int read_row_major_tensor(laci_net *net, int value) {
  int tensor = laci_net_read_value(net, value);
  return laci_plan_is_float(&net->plan, value)
             ? laci_net_convert_to_dense(net, tensor, LACI_ELEMENT_F32)
             : tensor;
}

/** Sets the strides of operand x along the axes of the result; the stride is 0 where x is
 * broadcast. */
static void set_broadcast_strides(const laci_shape *x, int rank, int64_t strides[LACI_MAX_RANK]) {
  int64_t stride = 1;
  for (int axis = x->rank - 1; axis >= 0; axis--) {
    strides[rank - x->rank + axis] = x->dims[axis] == 1 ? 0 : stride;
    stride *= x->dims[axis];
  }
}

/** Adds a step that computes the fused node's output, row by row, from the node's first n
 * inputs. */
static void add_row_function_step(laci_net *net, const laci_fused *fused, row_function *row,
                                  int n) {
  const laci_node *node = &net->plan.graph->nodes[fused->node];
  const laci_shape *y = laci_plan_shape(&net->plan, fused->output);
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  rows *r = laci_plan_alloc(&net->plan, 1, sizeof *r);
  int tensors[MOST_OPERANDS + 1];
  if (!r) return;
  *r = (rows){.row = row, .n_operands = n, .rank = y->rank > 0 ? y->rank : 1, .sizes = {1}};
  for (int axis = 0; axis < y->rank; axis++) r->sizes[axis] = y->dims[axis];
  for (int k = 0; k < n; k++) {
    tensors[k] = read_row_major_tensor(net, node->inputs[k]);
    set_broadcast_strides(laci_plan_shape(&net->plan, node->inputs[k]), r->rank, r->strides[k]);
    r->elements[k] =
        laci_plan_is_float(&net->plan, node->inputs[k]) ? sizeof(float) : sizeof(int64_t);
  }
  r->elements[MOST_OPERANDS] = is_float ? sizeof(float) : sizeof(int64_t);
  size_t bytes = (size_t)laci_shape_count(y) * r->elements[MOST_OPERANDS];
  tensors[n] =
      laci_net_tensor_new(net, y, is_float ? LACI_ELEMENT_F32 : LACI_ELEMENT_NONE,
                          is_float ? laci_net_dense_layout(net, y, LACI_ELEMENT_F32) : NULL,
                          laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  laci_net_step *step = laci_net_step_add_code(net, node, apply_function_to_rows, n + 1, tensors);
  if (!step) return;
  step->context = r;
  step->kernel = "rows";
  step->shown = tensors[n];
  laci_net_bind_value(net, fused->output, tensors[n]);
}

/* ---- Truth values ---- */

typedef struct logic {
  const laci_op *op;
  row_function *row;
  int n;
} logic;

static const logic logics[] = {{&laci_op_and, row_and, 2},
                               {&laci_op_or, row_or, 2},
                               {&laci_op_xor, row_xor, 2},
                               {&laci_op_not, row_not, 1},
                               {&laci_op_equal, row_equal, 2},
                               {&laci_op_less, row_less, 2},
                               {&laci_op_less_or_equal, row_less_equal, 2},
                               {&laci_op_greater, row_greater, 2},
                               {&laci_op_greater_or_equal, row_greater_equal, 2}};

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
  add_row_function_step(net, fused, l->row, l->n);
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
  add_row_function_step(net, fused, is_float ? row_choose_floats : row_choose_integers, 3);
}

static void lower_expand(laci_net *net, const laci_fused *fused) {
  bool is_float = laci_plan_is_float(&net->plan, fused->output);
  add_row_function_step(net, fused, is_float ? row_copy_floats : row_copy_integers, 1);
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
  add_row_function_step(net, fused, to == LAC_DTYPE_F16 ? row_f16 : row_bf16, 1);
}

static bool can_lower_cast(laci_net *net, const laci_fused *fused, const char **why) {
  lac_dtype to = net->plan.values[fused->output].type.dtype;
  *why = "a conversion that rounds";
  return is_small_integer(type_before_cast(net, fused)) &&
         (to == LAC_DTYPE_BOOL || to == LAC_DTYPE_F32);
}

static void lower_cast(laci_net *net, const laci_fused *fused) {
  bool truth = net->plan.values[fused->output].type.dtype == LAC_DTYPE_BOOL;
  add_row_function_step(net, fused, truth ? row_truth : row_number, 1);
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
