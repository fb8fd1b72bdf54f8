/* SPDX-License-Identifier: Apache-2.0
 * Masks and what they are made of: integers and truth values, compared, combined, spread out and
 * turned into numbers, in one pass over the result's rows.
 *
 * Truth values are int64 as every integer of a net, and lie row-major. An operand that broadcasts
 * is read with strides of 0; floats are read and written as f32. */
#include <string.h>

#include "engine/cpu/net_in.h"

enum { MOST_OPERANDS = 3 };

/** One row of the result: to[i] from operand k at from[k] + i * steps[k] elements. */
typedef void row_function(int64_t n, void *to, const void *const from[MOST_OPERANDS],
                          const int64_t steps[MOST_OPERANDS]);

typedef struct rows {
  row_function *row;
  int n_operands, rank; /* rank >= 1 */
  int64_t sizes[LACI_MAX_RANK], strides[MOST_OPERANDS][LACI_MAX_RANK];
  size_t elements[MOST_OPERANDS + 1]; /* bytes of an operand's element; the last: the result's */
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
DEFINE_ROW(row_copy_integers, int64_t, INTEGER(0))
DEFINE_ROW(row_copy_floats, float, ((const float *)from[0])[i * steps[0]])
DEFINE_ROW(row_choose_integers, int64_t, INTEGER(0) ? INTEGER(1) : INTEGER(2))
DEFINE_ROW(row_choose_floats, float,
           INTEGER(0) ? ((const float *)from[1])[i * steps[1]]
                      : ((const float *)from[2])[i * steps[2]])

static lac_status run_rows(laci_net *net, laci_net_step *step, lac_error *err) {
  const rows *r = step->context;
  int last = r->rank - 1;
  int64_t index[LACI_MAX_RANK] = {0}, steps[MOST_OPERANDS] = {0};
  const char *from[MOST_OPERANDS] = {NULL};
  char *to = laci_net_data(net, step->tensors[r->n_operands]);
  (void)err;
  for (int k = 0; k < r->n_operands; k++) {
    from[k] = laci_net_data(net, step->tensors[k]);
    steps[k] = r->strides[k][last];
  }
  for (int axis = 0; axis >= 0;) {
    r->row(r->sizes[last], to, (const void *const *)from, steps);
    to += (size_t)r->sizes[last] * r->elements[MOST_OPERANDS];
    for (axis = last - 1; axis >= 0; axis--) { /* the next row: an odometer */
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

static int read_plain(laci_net *net, int value) {
  int tensor = laci_net_read(net, value);
  return laci_net_is_float(net, value) ? laci_net_as_dense(net, tensor, dnnl_f32) : tensor;
}

/** Where it goes along in the result; 0 where it repeats. */
static void set_strides(const laci_shape *x, int rank, int64_t strides[LACI_MAX_RANK]) {
  int64_t stride = 1;
  for (int axis = x->rank - 1; axis >= 0; axis--) {
    strides[rank - x->rank + axis] = x->dims[axis] == 1 ? 0 : stride;
    stride *= x->dims[axis];
  }
}

/** The layer's output, row by row, from the node's first n inputs. */
static void rows_step(laci_net *net, const laci_net_layer *layer, row_function *row, int n) {
  const laci_node *node = &net->graph->nodes[layer->node];
  const laci_shape *y = laci_net_shape(net, layer->output);
  bool is_float = laci_net_is_float(net, layer->output);
  rows *r = laci_net_new(net, 1, sizeof *r);
  int tensors[MOST_OPERANDS + 1];
  if (!r) return;
  *r = (rows){.row = row, .n_operands = n, .rank = y->rank > 0 ? y->rank : 1, .sizes = {1}};
  for (int axis = 0; axis < y->rank; axis++) r->sizes[axis] = y->dims[axis];
  for (int k = 0; k < n; k++) {
    tensors[k] = read_plain(net, node->inputs[k]);
    set_strides(laci_net_shape(net, node->inputs[k]), r->rank, r->strides[k]);
    r->elements[k] = laci_net_is_float(net, node->inputs[k]) ? sizeof(float) : sizeof(int64_t);
  }
  r->elements[MOST_OPERANDS] = is_float ? sizeof(float) : sizeof(int64_t);
  size_t bytes = (size_t)laci_shape_count(y) * r->elements[MOST_OPERANDS];
  tensors[n] = laci_net_tensor_new(net, y, is_float ? dnnl_f32 : dnnl_data_type_undef,
                                   is_float ? laci_net_dense(net, y, dnnl_f32) : NULL,
                                   laci_net_buffer_new(net, LACI_PLACE_ARENA, bytes));
  laci_net_step *step = laci_net_step_code(net, node, run_rows, n + 1, tensors);
  if (!step) return;
  step->context = r;
  step->kernel = "rows";
  step->shown = tensors[n];
  laci_net_bind(net, layer->output, tensors[n]);
}

/* ---- Builders ---- */

void laci_build_logic(laci_net *net, const laci_net_layer *layer) {
  static const struct {
    const char *type;
    row_function *row;
    int n;
  } kinds[] = {{"And", row_and, 2},
               {"Or", row_or, 2},
               {"Xor", row_xor, 2},
               {"Not", row_not, 1},
               {"Equal", row_equal, 2},
               {"Less", row_less, 2},
               {"LessOrEqual", row_less_equal, 2},
               {"Greater", row_greater, 2},
               {"GreaterOrEqual", row_greater_equal, 2}};
  const laci_node *node = &net->graph->nodes[layer->node];
  size_t kind = 0;
  while (strcmp(node->type, kinds[kind].type) != 0) kind++;
  bool fits = node->n_inputs == kinds[kind].n && laci_node_attr(node, "axis") == NULL;
  for (int at = 0; at < node->n_inputs && fits; at++) {
    lac_dtype dtype = net->values[node->inputs[at]].type.dtype;
    fits = laci_dtype_is_integer(dtype) && dtype != LAC_DTYPE_U64;
  }
  if (fits) rows_step(net, layer, kinds[kind].row, kinds[kind].n);
  else laci_net_fail(net, LAC_UNSUPPORTED, "elements of this type");
}

void laci_build_where(laci_net *net, const laci_net_layer *layer) {
  const int *inputs = net->graph->nodes[layer->node].inputs;
  bool is_float = laci_net_is_float(net, layer->output);
  if (laci_net_is_float(net, inputs[0]) || laci_net_is_float(net, inputs[1]) != is_float ||
      laci_net_is_float(net, inputs[2]) != is_float) {
    laci_net_fail(net, LAC_UNSUPPORTED, "elements of this type");
    return;
  }
  rows_step(net, layer, is_float ? row_choose_floats : row_choose_integers, 3);
}

void laci_build_expand(laci_net *net, const laci_net_layer *layer) {
  bool is_float = laci_net_is_float(net, layer->output);
  rows_step(net, layer, is_float ? row_copy_floats : row_copy_integers, 1);
}

void laci_build_cast(laci_net *net, const laci_net_layer *layer) {
  const laci_node *node = &net->graph->nodes[layer->node];
  lac_dtype from = net->values[node->inputs[0]].type.dtype;
  lac_dtype to = net->values[layer->output].type.dtype;
  bool same = laci_dtype_is_float(from) && laci_dtype_is_float(to);
  bool widens = laci_dtype_is_integer(from) && from != LAC_DTYPE_U64 && to == LAC_DTYPE_I64;
  bool integer = laci_dtype_is_integer(from) && from != LAC_DTYPE_U64;
  if (same || widens || from == to) {
    laci_net_bind(net, layer->output, laci_net_read(net, node->inputs[0]));
  } else if (integer && to == LAC_DTYPE_BOOL) {
    rows_step(net, layer, row_truth, 1);
  } else if (integer && to == LAC_DTYPE_F32) {
    rows_step(net, layer, row_number, 1);
  } else {
    laci_net_fail(net, LAC_UNSUPPORTED, "a conversion that rounds");
  }
}
