/* SPDX-License-Identifier: Apache-2.0
 * Element-wise evaluation with broadcasting, and integer arithmetic on contents that hold symbols.
 *
 * A symbol stands for a size not known yet. An operation returns it unchanged only where the other
 * operand is neutral (x * 1). Otherwise the result is a fresh symbol, of which nothing is known.
 * See laci_neutral in op_in.h. */
#include "graph/ops/shared/op_in.h"
#include "graph/ops/shared/walk_in.h"
#include "tensor/buf.h"

static lac_status fail_operand_type(const laci_eval *eval, const laci_buf *operand) {
  return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "does not take elements of type %s",
                        lac_dtype_name(operand->dtype));
}

enum { FEW_RUNS = 64, LONG_RUN = 1 << 13 };

/* An operation on two operands, run by run (walk_in.h). Operands of equal shape are one run, and
 * others may be few. So runs are divided into parts where there are too few of them for all
 * threads. */
typedef struct binary_job {
  const laci_binary *op;
  laci_walk walk;
  int64_t n_parts, part; /* n_parts: number of parts of a run; part: elements of each part */
  const laci_buf *a, *b;
  laci_buf *out;
} binary_job;

typedef struct strided {
  const double *at;
  int64_t step;
} strided;

static inline void compute_binary_elements(const laci_binary *op, strided x, strided y, double *out,
                                           int64_t n) {
  const double *a = x.at, *b = y.at;
  for (int64_t i = 0; i < n; i++, a += x.step, b += y.step) {
    /* op->basic does not change in the loop: the compiler moves the switch out of it */
    switch (op->basic) {
      case LACI_BASIC_ADD: out[i] = *a + *b; break;
      case LACI_BASIC_SUB: out[i] = *a - *b; break;
      case LACI_BASIC_MUL: out[i] = *a * *b; break;
      case LACI_BASIC_DIV: out[i] = *a / *b; break;
      default: out[i] = op->f(*a, *b); break;
    }
  }
}

static void compute_part_of_float_run(const binary_job *job, const laci_walk *walk, int64_t run,
                                      int64_t begin, int64_t end) {
  int64_t to = run * walk->run, a_step = walk->inner[0], b_step = walk->inner[1];
  const double *a = job->a->f + walk->at[0] + begin * a_step;
  const double *b = job->b->f + walk->at[1] + begin * b_step;
  if (job->out->f) {
    compute_binary_elements(job->op, (strided){a, a_step}, (strided){b, b_step},
                            job->out->f + to + begin, end - begin);
  } else {
    for (int64_t i = begin; i < end; i++, a += a_step, b += b_step) {
      job->out->i[to + i] = job->op->test(*a, *b);
    }
  }
}

static void compute_binary_float_parts(int64_t begin, int64_t end, void *context) {
  const binary_job *job = context;
  laci_walk walk = job->walk;
  laci_walk_seek_run(&walk, begin / job->n_parts);
  for (int64_t at = begin; at < end; at++) {
    int64_t number = at % job->n_parts, from = number * job->part, to = from + job->part;
    if (number == 0 && at > begin) laci_walk_next(&walk);
    compute_part_of_float_run(job, &walk, at / job->n_parts, from, to < walk.run ? to : walk.run);
  }
}

/** Computes one integer result, as an element of type bool or of the operands' type. */
static inline int64_t compute_integer_result(const binary_job *job, int64_t a, int64_t b) {
  if (job->op->u && job->a->dtype == LAC_DTYPE_U64) {
    return (int64_t)job->op->u((uint64_t)a, (uint64_t)b);
  }
  return laci_int_wrap(job->out->dtype, job->op->i(a, b));
}

static void compute_integer_runs(int64_t begin, int64_t end, void *context) {
  const binary_job *job = context;
  laci_walk walk = job->walk;
  laci_walk_seek_run(&walk, begin);
  for (int64_t run = begin; run < end; run++, laci_walk_next(&walk)) {
    const int64_t *a = job->a->i + walk.at[0], *b = job->b->i + walk.at[1];
    for (int64_t i = 0; i < walk.run; i++) {
      job->out->i[run * walk.run + i] =
          compute_integer_result(job, a[i * walk.inner[0]], b[i * walk.inner[1]]);
    }
  }
}

/** Returns the result of an operation where a or b is a symbol. */
static int64_t compute_symbol_result(const laci_eval *eval, laci_neutral neutral, int64_t a,
                                     int64_t b) {
  bool either = neutral == LACI_NEUTRAL_ZERO || neutral == LACI_NEUTRAL_ONE;
  bool zero = neutral == LACI_NEUTRAL_ZERO || neutral == LACI_NEUTRAL_ZERO_RIGHT;
  if (neutral != LACI_NEUTRAL_NONE) {
    int64_t unit = zero ? 0 : 1;
    if (b == unit) return a;
    if (either && a == unit) return b;
  }
  return eval->new_symbol(eval);
}

static void compute_integers_with_symbols(const laci_eval *eval, binary_job *job) {
  laci_walk *walk = &job->walk;
  laci_walk_seek_run(walk, 0);
  for (int64_t run = 0; run < walk->n_runs; run++, laci_walk_next(walk)) {
    for (int64_t i = 0; i < walk->run; i++) {
      int64_t a = job->a->i[walk->at[0] + i * walk->inner[0]];
      int64_t b = job->b->i[walk->at[1] + i * walk->inner[1]];
      job->out->i[run * walk->run + i] = laci_is_symbol(a) || laci_is_symbol(b)
                                             ? compute_symbol_result(eval, job->op->neutral, a, b)
                                             : compute_integer_result(job, a, b);
    }
  }
}

static lac_status compute_binary(laci_eval *eval, const laci_binary *op, const laci_buf *a,
                                 const laci_buf *b) {
  laci_buf *out = eval->out[0];
  if (!a->f != !b->f) {
    return laci_node_fail(eval->node, eval->err, LAC_UNSUPPORTED, "operands of types %s and %s",
                          lac_dtype_name(a->dtype), lac_dtype_name(b->dtype));
  }
  if (a->f ? (out->f ? !op->f : !op->test) : (!op->i || !out->i)) return fail_operand_type(eval, a);
  binary_job job = {.op = op, .a = a, .b = b, .out = out};
  laci_walk_begin(&job.walk, &out->shape);
  laci_walk_add_broadcast(&job.walk, &a->shape);
  laci_walk_add_broadcast(&job.walk, &b->shape);
  laci_walk_merge_axes(&job.walk);
  bool cut = job.walk.n_runs < FEW_RUNS && job.walk.run > LONG_RUN;
  job.n_parts = cut ? (job.walk.run + LONG_RUN - 1) / LONG_RUN : 1;
  job.part = cut ? LONG_RUN : job.walk.run;
  if (a->f)
    laci_eval_parallel(eval, job.walk.n_runs * job.n_parts, compute_binary_float_parts, &job);
  else if (eval->new_symbol) compute_integers_with_symbols(eval, &job);
  else laci_eval_parallel(eval, job.walk.n_runs, compute_integer_runs, &job);
  return LAC_OK;
}

lac_status laci_eval_binary(laci_eval *eval, const laci_binary *binary) {
  return compute_binary(eval, binary, eval->in[0], eval->in[1]);
}

lac_status laci_eval_binary_over_inputs(laci_eval *eval, const laci_binary *binary) {
  laci_buf *out = eval->out[0];
  if (!eval->in[0]->f != !out->f) return fail_operand_type(eval, eval->in[0]);
  int64_t strides[LACI_MAX_RANK];
  laci_walk spread;
  laci_walk_begin(&spread, &out->shape);
  laci_walk_add_broadcast(&spread, &eval->in[0]->shape);
  memcpy(strides, spread.stride[0], sizeof strides);
  laci_copy_strided_to_rows(eval, eval->in[0], &out->shape, strides, 0, out);
  for (int port = 1; port < eval->n_in; port++) {
    if (!eval->in[port]) continue;
    lac_status st = compute_binary(eval, binary, out, eval->in[port]);
    if (st) return st;
  }
  return LAC_OK;
}

typedef struct unary_job {
  const laci_eval *eval;
  const laci_unary *op;
  const void *context;
  const laci_buf *in;
  laci_buf *out;
} unary_job;

static inline int64_t compute_unary_integer(const unary_job *job, int64_t x) {
  if (job->op->u && job->in->dtype == LAC_DTYPE_U64) {
    return (int64_t)job->op->u((uint64_t)x, job->context);
  }
  return laci_int_wrap(job->out->dtype, job->op->i(x, job->context));
}

static void compute_unary_range(int64_t begin, int64_t end, void *context) {
  const unary_job *job = context;
  const laci_buf *in = job->in;
  laci_buf *out = job->out;
  if (in->f && out->f) {
    for (int64_t at = begin; at < end; at++) out->f[at] = job->op->f(in->f[at], job->context);
  } else if (in->f) {
    for (int64_t at = begin; at < end; at++) out->i[at] = job->op->test(in->f[at], job->context);
  } else {
    for (int64_t at = begin; at < end; at++) {
      out->i[at] = laci_eval_is_symbol(job->eval, in->i[at])
                       ? job->eval->new_symbol(job->eval)
                       : compute_unary_integer(job, in->i[at]);
    }
  }
}

lac_status laci_eval_unary(laci_eval *eval, const laci_unary *unary, const void *context) {
  const laci_buf *in = eval->in[0];
  laci_buf *out = eval->out[0];
  if (in->f ? (out->f ? !unary->f : !unary->test) : (!unary->i || !out->i))
    return fail_operand_type(eval, in);
  unary_job job = {.eval = eval, .op = unary, .context = context, .in = in, .out = out};
  laci_eval_parallel(eval, in->count, compute_unary_range, &job);
  return LAC_OK;
}
