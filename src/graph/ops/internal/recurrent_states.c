/* SPDX-License-Identifier: Apache-2.0
 * lacuna.RecurrentStates: the hidden states that the steps of an LSTM, GRU or RNN begin with.
 *
 *   Y, initial_h (optional), lengths (optional)  ->  [T, B, D, H]
 *
 * Y are the states after the steps, with the attributes `direction` and `layout` of their node.
 * Steps after the end of a sequence have zeros. */
#include "graph/ops/shared/op_in.h"
#include "tensor/buf.h"

enum { STATES, INITIAL_H, LENGTHS };

/* Sizes of the states, and where they are in Y. */
typedef struct job {
  const laci_eval *eval;
  int64_t time, batch, directions, hidden;
  bool batch_first, backward;
} job;

static bool is_batch_first(const laci_node *node) { return laci_node_int(node, "layout", 0) != 0; }

static job read_sizes(const laci_node *node, const laci_shape *y) {
  const bool first = is_batch_first(node);
  return (job){.time = y->dims[first ? 1 : 0],
               .batch = y->dims[first ? 0 : 2],
               .directions = y->dims[first ? 2 : 1],
               .hidden = y->dims[3],
               .batch_first = first,
               .backward = strcmp(laci_node_text(node, "direction", "forward"), "reverse") == 0};
}

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 1, 3);
  const laci_shape *y = st ? NULL : laci_in_shape(infer, STATES);
  if (!y) return st;
  if (y->rank != 4)
    return laci_node_fail(infer->node, infer->err, LAC_BAD_SHAPE, "input 0 has %d axes, wanted 4",
                          y->rank);
  const job j = read_sizes(infer->node, y);
  infer->out[0].dtype = infer->in[STATES]->dtype;
  infer->out[0].shape = (laci_shape){.rank = 4, .dims = {j.time, j.batch, j.directions, j.hidden}};
  return LAC_OK;
}

/* Copies the state that a step begins with: the one after the step before it, or the initial one
 * for the first step, which is the last one in time of a sequence that runs backward. */
static void copy_state(const job *j, int64_t t, int64_t sequence, int64_t direction,
                       int64_t length) {
  const bool backward = direction == 1 || j->backward;
  const int64_t before = backward ? t + 1 : t - 1;
  const laci_buf *initial = laci_operand(j->eval, INITIAL_H), *y = j->eval->in[STATES];
  laci_buf *to = j->eval->out[0];
  const int64_t at = ((t * j->batch + sequence) * j->directions + direction) * j->hidden;
  if (before >= 0 && before < length) {
    const int64_t from = j->batch_first
                             ? (sequence * j->time + before) * j->directions + direction
                             : (before * j->directions + direction) * j->batch + sequence;
    laci_copy_elements(to, at, y, from * j->hidden, j->hidden);
  } else if (initial) {
    const int64_t from =
        j->batch_first ? sequence * j->directions + direction : direction * j->batch + sequence;
    laci_copy_elements(to, at, initial, from * j->hidden, j->hidden);
  }
}

static lac_status eval(laci_eval *eval) {
  job j = read_sizes(eval->node, &eval->in[STATES]->shape);
  j.eval = eval;
  const laci_buf *initial = laci_operand(eval, INITIAL_H), *lengths = laci_operand(eval, LENGTHS);
  if ((initial && (!initial->f || initial->count != j.directions * j.batch * j.hidden)) ||
      (lengths && (!lengths->i || lengths->count != j.batch)) || !eval->in[STATES]->f)
    return laci_node_fail(eval->node, eval->err, LAC_BAD_SHAPE,
                          "initial states or lengths do not fit the states");
  for (int64_t sequence = 0; sequence < j.batch; sequence++) {
    int64_t length = lengths ? laci_buf_get_i(lengths, sequence) : j.time;
    if (length > j.time) length = j.time;
    for (int64_t t = 0; t < length; t++)
      for (int64_t direction = 0; direction < j.directions; direction++)
        copy_state(&j, t, sequence, direction, length);
  }
  return LAC_OK;
}

const laci_op laci_op_recurrent_states = {.name = "RecurrentStates",
                                          .domain = "lacuna",
                                          .role = LACI_ROLE_PASS_THROUGH,
                                          .infer = infer,
                                          .eval = eval,
                                          .couple = laci_couple_nothing};
