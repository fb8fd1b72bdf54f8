/* SPDX-License-Identifier: Apache-2.0
 * Where: out = condition ? x : y, all three broadcast. Axes pass channel orders through
 * (coupling.h), as in any elementwise operator. In shape arithmetic, an unknown condition gives a
 * fresh symbol, unless x and y are equal. */
#include "graph/gradient.h"
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status infer(laci_infer *infer) {
  lac_status st = laci_check_n_inputs(infer, 3, 3);
  if (st) return st;
  laci_shape *out = &infer->out[0].shape;
  infer->out[0].dtype = infer->in[1]->dtype;
  st = laci_broadcast_shapes(infer, &infer->in[0]->shape, &infer->in[1]->shape, out);
  return st ? st : laci_broadcast_shapes(infer, out, &infer->in[2]->shape, out);
}

typedef struct choice {
  const laci_eval *eval;
  laci_walk walk;
} choice;

static void select_elements_of_runs(int64_t begin, int64_t end, void *context) {
  const choice *job = context;
  const laci_buf *const *in = job->eval->in;
  laci_buf *out = job->eval->out[0];
  laci_walk walk = job->walk;
  laci_walk_seek_run(&walk, begin);
  for (int64_t run = begin; run < end; run++, laci_walk_next(&walk)) {
    for (int64_t i = 0; i < walk.run; i++) {
      int64_t at[3], to = run * walk.run + i;
      for (int k = 0; k < 3; k++) at[k] = walk.at[k] + i * walk.inner[k];
      int64_t condition = in[0]->i[at[0]];
      bool unsure = laci_eval_is_symbol(job->eval, condition) && !out->f &&
                    in[1]->i[at[1]] != in[2]->i[at[2]];
      if (unsure) out->i[to] = job->eval->new_symbol(job->eval);
      else if (condition) laci_copy_elements(out, to, in[1], at[1], 1);
      else laci_copy_elements(out, to, in[2], at[2], 1);
    }
  }
}

static lac_status eval(laci_eval *eval) {
  choice job = {.eval = eval};
  if (!eval->in[0]->i || !eval->in[1]->f != !eval->out[0]->f ||
      !eval->in[2]->f != !eval->out[0]->f) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "operands of different types");
  }
  laci_walk_begin(&job.walk, &eval->out[0]->shape);
  for (int port = 0; port < 3; port++) laci_walk_add_broadcast(&job.walk, &eval->in[port]->shape);
  laci_walk_merge_axes(&job.walk);
  laci_eval_parallel(eval, job.walk.n_runs, select_elements_of_runs, &job);
  return LAC_OK;
}

static lac_status gradient(laci_gradient_builder *b, const laci_node *node) {
  int dy = laci_gradient_of(b, node, 0), zero = laci_gradient_store_scalar(b, dy, 0);
  if (laci_gradient_is_needed(b, node, 1))
    laci_gradient_contribute_broadcast(b, node, 1,
                                       laci_gradient_add_where(b, node->inputs[0], dy, zero));
  if (laci_gradient_is_needed(b, node, 2))
    laci_gradient_contribute_broadcast(b, node, 2,
                                       laci_gradient_add_where(b, node->inputs[0], zero, dy));
  return laci_gradient_status(b);
}

const laci_op laci_op_where = {.name = "Where",
                               .role = LACI_ROLE_PASS_THROUGH,
                               .symbol_safe = true,
                               .is_fold = true,
                               .infer = infer,
                               .eval = eval,
                               .couple = laci_couple_all_inputs_broadcast,
                               .gradient = gradient};
