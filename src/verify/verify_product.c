/* SPDX-License-Identifier: Apache-2.0
 * Computes the products (Conv, Gemm, MatMul) of the verification's runs on the fast engine, one
 * node at a time.
 *
 * The plain engine runs a copy of the graph. In it, the larger products have an operator of this
 * file, with the same shape rules and another evaluation. A valid order does not change the result
 * for *any* operands. So small integers may replace the operands; they are computed from the
 * operands' content, alike in both networks. Sums of these are exact in float32 in any order, so
 * the faster engine does not weaken the verification. Weights are converted to float one slab
 * (range of elements) at a time. */
#include <math.h>
#include <string.h>

#include "base/budget.h"
#include "base/memory.h"
#include "cpu/pool.h"
#include "engine/engine.h"
#include "base/error.h"
#include "base/acquire.h"
#include "base/log.h"
#include "graph/op.h"
#include "tensor/buf.h"
#include "verify/verify_in.h"

enum {
  LEAST_PRODUCT = 1 << 20, /* nodes with fewer multiplications than this are left to the plain
                              engine */
  LONGEST = 100000, /* maximum number of terms in a sum: LACI_MAX_RANDOM_INTEGER^2 times that is
                       below 2^24 */
  AT_ONCE = 1 << 15
};
/* Variance of a product of two integers, uniformly drawn from -LACI_MAX_RANDOM_INTEGER to
 * LACI_MAX_RANDOM_INTEGER. */
static const double product_variance =
    (double)LACI_MAX_RANDOM_INTEGER * (LACI_MAX_RANDOM_INTEGER + 1) / 3.0 *
    LACI_MAX_RANDOM_INTEGER * (LACI_MAX_RANDOM_INTEGER + 1) / 3.0;

typedef struct product {
  laci_op op; /* must be the first field: a pointer to the operator is also a pointer to the
                 product */
  const laci_op *plain;
  laci_products *owner;
  int node;
} product;

/* Buffers that all products share. Fresh memory for each product would cost more time than some
 * products. */
enum buffer { BUFFER_LEFT, BUFFER_RIGHT, BUFFER_RESULT, N_BUFFERS };

struct laci_products {
  laci_graph graph; /* a copy of the struct with its own nodes; all else is the original graph's */
  const laci_graph *original;
  laci_products_options how;
  product *products; /* [n_nodes] the products; owner NULL: the plain engine computes the node */
  bool *streamed;    /* [n_stored] true: only products read the tensor, directly from the file */
  float *buffers[N_BUFFERS];
  size_t buffer_sizes[N_BUFFERS];
};

/* ---- Choosing the nodes ---- */

static bool has_operator_type(const laci_node *node, const char *type) {
  return strcmp(node->type, type) == 0;
}

/* Returns the number of terms in one sum of the product; 0 if the shape is not known. */
static int64_t count_terms_of_sum(const laci_node *node, const laci_shape *a, const laci_shape *b) {
  if (a->rank < 1 || b->rank < 1) return 0;
  if (has_operator_type(node, "Conv")) return laci_shape_count_range(b, 1, b->rank);
  if (has_operator_type(node, "Gemm"))
    return a->rank == 2 ? a->dims[laci_node_int(node, "transA", 0) == 0] : 0;
  return a->dims[a->rank - 1];
}

static bool is_supported_product(const laci_node *node) {
  bool kind = has_operator_type(node, "Conv") || has_operator_type(node, "Gemm") ||
              has_operator_type(node, "MatMul");
  if (!kind || !node->op || node->op->domain || !node->op->eval) return false;
  if (node->n_inputs < 2 || node->n_outputs != 1 || node->outputs[0] < 0) return false;
  if (node->inputs[0] < 0 || node->inputs[1] < 0) return false;
  bool scaled = laci_node_float(node, "alpha", 1) != 1 || laci_node_float(node, "beta", 1) != 1;
  return !(has_operator_type(node, "Gemm") &&
           scaled); /* the bias is added in this file, which does not multiply it by a factor */
}

/* Returns the number of multiplications in a node; 0: the fast engine cannot compute it, or sizes
 * are not known. */
static int64_t count_multiplications(const laci_graph *graph, const laci_node *node,
                                     const int64_t *sizes) {
  if (!is_supported_product(node)) return 0;
  laci_shape a, b, y;
  const laci_value *values = graph->values;
  if (!laci_shape_replace_symbols(graph, &values[node->inputs[0]].type.shape, sizes, &a) ||
      !laci_shape_replace_symbols(graph, &values[node->inputs[1]].type.shape, sizes, &b) ||
      !laci_shape_replace_symbols(graph, &values[node->outputs[0]].type.shape, sizes, &y)) {
    return 0;
  }
  if (has_operator_type(node, "MatMul") && (a.rank < 2 || b.rank < 2)) return 0;
  int64_t terms = count_terms_of_sum(node, &a, &b), cost = laci_shape_count(&y);
  if (terms <= 0 || terms > LONGEST || cost <= 0) return 0;
  return __builtin_mul_overflow(cost, terms, &cost) ? INT64_MAX : cost;
}

int64_t laci_products_count_multiplications(const laci_graph *graph,
                                            const int64_t *size_of_symbol) {
  int64_t total = 0;
  for (int n = 0; n < graph->n_nodes; n++) {
    int64_t cost = count_multiplications(graph, &graph->nodes[n], size_of_symbol);
    if (__builtin_add_overflow(total, cost, &total)) return INT64_MAX;
  }
  return total;
}

/* Number of multiplications that the plain engine computes in well under a second. */
static const int64_t quick = 1500 * 1000 * 1000;

bool laci_verify_uses_fast_engine(const laci_graph *graph, laci_verify_engine engine,
                                  const int64_t *sizes) {
  if (engine != LACI_VERIFY_AUTO) return engine == LACI_VERIFY_CPU;
  return laci_products_count_multiplications(graph, sizes) > quick;
}

/* Is the tensor only read as the right operand of products that the fast engine computes? */
static bool is_read_only_by_products(const laci_products *p, int stored) {
  const laci_stored *s = &p->original->stored[stored];
  const laci_value *v = s->value >= 0 ? &p->original->values[s->value] : NULL;
  bool narrow =
      s->dtype == LAC_DTYPE_F32 || s->dtype == LAC_DTYPE_F16 || s->dtype == LAC_DTYPE_BF16;
  if (!v || !narrow || v->is_output || s->overridable || s->shape.rank < 2) return false;
  for (int i = 0; i < v->n_readers; i++) {
    const laci_node *node = &p->original->nodes[v->readers[i]];
    if (!p->products[v->readers[i]].owner) return false;
    for (int at = 0; at < node->n_inputs; at++) {
      if ((node->inputs[at] == s->value) != (at == 1)) return false;
    }
    if (has_operator_type(node, "MatMul") && s->shape.rank != 2) return false;
  }
  return v->n_readers > 0;
}

/* ---- One product ---- */

typedef struct operands {
  const laci_eval *eval;
  const product *product;
  const float *a, *b;         /* the operands as float32. b NULL: the weight is read in slabs */
  laci_acquired_bytes held;   /* the bytes of operand b, if they are those of a stored tensor */
  laci_shape a_shape;         /* shape of operand a in the single-node network */
  bool is_matrix;             /* true: b is a matrix. All rows of a then form one matrix, too, and b
                                 is read as stored */
  bool b_transposed, b_stays; /* b_transposed: b is transposed. b_stays: b is a stored weight of the
                                 single-node network; else it is an input */
} operands;

/* Returns uninitialized memory for n floats; NULL: no memory. It belongs to `p`, and is valid until
 * the next call for the same buffer. */
static float *reserve_buffer(laci_products *p, enum buffer which, int64_t n) {
  size_t wanted = (size_t)(n > 0 ? n : 1);
  if (p->buffer_sizes[which] >= wanted) return p->buffers[which];
  laci_budget *budget = p->how.budget;
  if (budget) laci_budget_subtract(budget, p->buffer_sizes[which] * sizeof *p->buffers[which]);
  laci_free(p->buffers[which]);
  p->buffers[which] = laci_alloc(wanted, sizeof *p->buffers[which]);
  p->buffer_sizes[which] = p->buffers[which] ? wanted : 0;
  if (budget) laci_budget_add_unnamed(budget, p->buffer_sizes[which] * sizeof *p->buffers[which]);
  return p->buffers[which];
}

static uint64_t random_key_of_operand(const product *p, int port) {
  return p->owner->how.seed * 0x9E3779B97F4A7C15u + (uint64_t)p->node * 4 + (uint64_t)port;
}

typedef struct conversion {
  const double *from;
  float *to;
  uint64_t key;
  bool whole;
} conversion;

static float random_integer_for_value(uint64_t key, double x) {
  uint64_t bits;
  if (!isfinite(x)) return (float)x; /* NaN and infinities must stay where they are */
  if (x == 0) x = 0;                 /* -0 and 0 get the same integer */
  memcpy(&bits, &x, sizeof bits);
  return (float)laci_random_integer(key, bits, LACI_MAX_RANDOM_INTEGER);
}

static void convert_to_integers(int64_t begin, int64_t end, void *context) {
  const conversion *c = context;
  for (int64_t i = begin; i < end; i++) {
    c->to[i] = c->whole ? random_integer_for_value(c->key, c->from[i]) : (float)c->from[i];
  }
}

static lac_status read_operand(const product *p, int port, const laci_buf *buf, const float **to,
                               lac_error *err) {
  float *numbers = reserve_buffer(p->owner, port == 0 ? BUFFER_LEFT : BUFFER_RIGHT, buf->count);
  *to = numbers;
  if (!numbers) return laci_fail_memory(err, "an operand of the verification");
  conversion c = {.from = buf->f,
                  .to = numbers,
                  .key = random_key_of_operand(p, port),
                  .whole = p->owner->how.integers};
  laci_pool_for(p->owner->how.pool, buf->count, AT_ONCE, convert_to_integers, &c);
  return LAC_OK;
}

/* Adds a product with a weight matrix to the graph. If necessary, a Transpose before it transposes
 * the weight. This costs nothing: the weight is used only once, so the kernel reads it as it is
 * stored. */
static lac_status add_matrix_product(const operands *o, laci_graph *graph, lac_error *err) {
  const laci_node *from = o->eval->node;
  int b = laci_graph_intern_value(graph, "b"), id;
  int transposed = o->b_transposed ? laci_graph_intern_value(graph, "transposed") : b;
  int inputs[] = {laci_graph_intern_value(graph, "a"), transposed},
      y = laci_graph_intern_value(graph, "y");
  if (b < 0 || transposed < 0 || inputs[0] < 0 || y < 0) return laci_fail_memory(err, "a product");
  laci_node transpose = {.name = from->name,
                         .type = "Transpose",
                         .domain = "",
                         .version = from->version,
                         .n_inputs = 1,
                         .n_outputs = 1,
                         .inputs = &b,
                         .outputs = &transposed};
  laci_node node = {.name = from->name,
                    .type = "MatMul",
                    .domain = "",
                    .version = from->version,
                    .n_inputs = 2,
                    .n_outputs = 1,
                    .inputs = inputs,
                    .outputs = &y};
  lac_status st = o->b_transposed ? laci_graph_add_node(graph, &transpose, &id, err) : LAC_OK;
  return st ? st : laci_graph_add_node(graph, &node, &id, err);
}

static lac_status add_copy_of_product(const operands *o, laci_graph *graph, lac_error *err) {
  const laci_node *from = o->eval->node;
  int inputs[] = {laci_graph_intern_value(graph, "a"), laci_graph_intern_value(graph, "b")};
  int output = laci_graph_intern_value(graph, "y"), id;
  if (inputs[0] < 0 || inputs[1] < 0 || output < 0) return laci_fail_memory(err, "a product");
  laci_node node = {.name = from->name,
                    .type = from->type,
                    .domain = from->domain,
                    .version = from->version,
                    .n_inputs = 2,
                    .n_outputs = 1,
                    .inputs = inputs,
                    .outputs = &output,
                    .n_attrs = from->n_attrs,
                    .attrs = from->attrs};
  return laci_graph_add_node(graph, &node, &id, err);
}

/* Makes a graph of the node alone. Its weight is a stored tensor, or an input. */
static lac_status make_single_node_graph(const operands *o, const laci_shape *b_shape,
                                         const float *b, laci_graph **graph, lac_error *err) {
  laci_type a_type = {LAC_DTYPE_F32, o->a_shape}, b_type = {LAC_DTYPE_F32, *b_shape};
  laci_stored stored = {.name = "b",
                        .dtype = LAC_DTYPE_F32,
                        .shape = *b_shape,
                        .bytes = (const uint8_t *)b,
                        .size_bytes = (size_t)laci_shape_count(b_shape) * sizeof *b};
  int id;
  lac_status st = laci_graph_create(graph, err);
  if (!st) st = laci_graph_add_input(*graph, "a", &a_type, err);
  if (!st && o->b_stays) st = laci_graph_add_stored(*graph, &stored, &id, err);
  if (!st && !o->b_stays) st = laci_graph_add_input(*graph, "b", &b_type, err);
  if (!st)
    st = o->is_matrix ? add_matrix_product(o, *graph, err) : add_copy_of_product(o, *graph, err);
  if (!st) st = laci_graph_add_output(*graph, "y", err);
  return st ? st : laci_graph_finish(*graph, err);
}

/* Computes a product that the fast engine declines: by the operator's plain evaluation, on the same
 * operands. */
static lac_status multiply_by_plain_evaluation(const operands *o, const laci_shape *b_shape,
                                               const float *b, const laci_shape *y_shape, float *y,
                                               lac_error *err) {
  laci_buf *in[2] = {NULL, NULL}, *out = NULL;
  const laci_eval *eval = o->eval;
  lac_status st = laci_buf_create(LAC_DTYPE_F32, &eval->in[0]->shape, &in[0], err);
  if (!st) st = laci_buf_create(LAC_DTYPE_F32, b_shape, &in[1], err);
  if (!st) st = laci_buf_create(LAC_DTYPE_F32, y_shape, &out, err);
  for (int64_t i = 0; !st && i < in[0]->count; i++) in[0]->f[i] = (double)o->a[i];
  for (int64_t i = 0; !st && i < in[1]->count; i++) in[1]->f[i] = (double)b[i];
  laci_eval small = *eval;
  small.n_in = 2;
  small.in = (const laci_buf *const *)in;
  small.out = &out;
  small.err = err;
  if (!st) st = o->product->plain->eval(&small);
  for (int64_t i = 0; !st && i < out->count; i++) y[i] = (float)out->f[i];
  laci_buf_destroy(in[0]);
  laci_buf_destroy(in[1]);
  laci_buf_destroy(out);
  return st;
}

static lac_status multiply_on_fast_engine(const operands *o, const laci_shape *b_shape,
                                          const float *b, const laci_shape *y_shape, float *y,
                                          lac_error *err) {
  laci_graph *graph = NULL;
  laci_engine *engine = NULL;
  lac_error why = {0};
  laci_budget budget = laci_budget_with_limit(UINT64_MAX);
  laci_engine_options options = {.threads = laci_pool_threads(o->product->owner->how.pool),
                                 .bf16 = o->product->owner->how.integers,
                                 .budget = &budget};
  if (o->product->owner->how.budget) budget = *o->product->owner->how.budget;
  lac_status st = make_single_node_graph(o, b_shape, b, &graph, err);
  if (!st) st = laci_engine_create(graph, &options, &engine, &why);
  if (st == LAC_UNSUPPORTED && options.bf16) {
    options.bf16 = false;
    st = laci_engine_create(graph, &options, &engine, &why);
  }
  if (!st) {
    st = laci_engine_run(engine, (const void *const[]){o->a, b}, (void *const[]){y}, err);
  } else if (why.status == LAC_UNSUPPORTED) {
    laci_log(LAC_LOG_DEBUG, "verification: %s by the plain engine: %s", o->eval->node->name,
             why.text);
    st = multiply_by_plain_evaluation(o, b_shape, b, y_shape, y, err);
  } else if (why.status && err) {
    *err = why;
  }
  laci_engine_destroy(engine);
  laci_graph_destroy(graph);
  return st;
}

/* ---- A node ---- */

/* A result [outer][channels][inner]. A slab of the weights gives n of its channels, from channel
 * `first` on. */
typedef struct result {
  laci_buf *y;
  int64_t outer, channels, inner;
  double unit;
  bool whole;
} result;

typedef struct store_job {
  const result *r;
  const float *slab;
  int64_t first, n;
} store_job;

/* Copies n results to double. They are rounded, in case a kernel computed with fractions; adding 0
 * makes 0 of -0. */
static void store_result_run(const result *r, const float *from, double *to, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    to[i] = r->whole ? rint((double)from[i]) * r->unit + 0.0 : (double)from[i];
  }
}

static void store_result_rows(int64_t begin, int64_t end, void *context) {
  const store_job *l = context;
  const result *r = l->r;
  for (int64_t row = begin; row < end; row++) { /* rows of [outer][n], each with `inner` results */
    int64_t place = row / l->n * r->channels + l->first + row % l->n;
    store_result_run(r, l->slab + row * r->inner, r->y->f + place * r->inner, r->inner);
  }
}

static void store_result_range(int64_t begin, int64_t end, void *context) {
  const store_job *l = context;
  store_result_run(l->r, l->slab + begin, l->r->y->f + begin, end - begin);
}

static void store_slab_of_result(const operands *o, const result *r, const float *slab,
                                 int64_t first, int64_t n) {
  laci_pool *pool = o->product->owner->how.pool;
  store_job l = {.r = r, .slab = slab, .first = first, .n = n};
  if (n == r->channels) laci_pool_for(pool, r->y->count, AT_ONCE, store_result_range, &l);
  else laci_pool_for(pool, r->outer * n, 1 + AT_ONCE / (r->inner + 1), store_result_rows, &l);
}

/* Are output channels the first axis of the weights? Then these can be read in slabs. */
static bool can_read_weight_in_slabs(const laci_node *node) {
  if (has_operator_type(node, "Conv")) return laci_node_int(node, "group", 1) == 1;
  return has_operator_type(node, "Gemm") && laci_node_int(node, "transB", 0) != 0;
}

static result make_result_layout(const operands *o) {
  const laci_node *node = o->eval->node;
  laci_buf *y = o->eval->out[0];
  int axis = has_operator_type(node, "Conv") ? 1 : y->shape.rank - 1;
  int64_t terms = count_terms_of_sum(node, &o->eval->in[0]->shape, &o->eval->in[1]->shape);
  double size = sqrt(product_variance * (double)terms);
  return (result){.y = y,
                  .outer = laci_shape_count_range(&y->shape, 0, axis > 0 ? axis : 0),
                  .channels = axis >= 0 ? y->shape.dims[axis] : 1,
                  .inner = laci_shape_count_range(&y->shape, axis + 1, y->shape.rank),
                  .unit = exp2(-ceil(log2(size))), /* scales results to a size of about 1 */
                  .whole = o->product->owner->how.integers};
}

/* Computes the product for one slab of the weights: n output channels, from channel `first` on. */
static lac_status compute_slab(const operands *o, const result *r, int64_t first, int64_t n,
                               lac_error *err) {
  const laci_products_options *how = &o->product->owner->how;
  laci_shape b_shape = o->eval->in[1]->shape, y_shape = r->y->shape;
  int64_t a_row = laci_shape_count(&b_shape) / (b_shape.rank > 0 ? b_shape.dims[0] : 1);
  bool part = n < r->channels;
  lac_status st = LAC_OK;
  if (part) b_shape.dims[0] = n;
  if (part) y_shape.dims[has_operator_type(o->eval->node, "Conv") ? 1 : y_shape.rank - 1] = n;
  const float *weights = o->b;
  laci_products *owner = o->product->owner;
  if (!weights) {
    int stored = owner->original->values[o->eval->node->inputs[1]].stored;
    laci_slab slab = {
        .bytes = o->held.bytes, .first = part ? first * a_row : 0, .n = laci_shape_count(&b_shape)};
    weights = how->integers ? NULL : laci_parameters_view_floats(how, stored, &slab);
    if (!weights) {
      float *b = reserve_buffer(owner, BUFFER_RIGHT, slab.n);
      st = b ? laci_parameters_read_floats(how, stored, &slab, b, err)
             : laci_fail_memory(err, "weights of the verification");
      weights = b;
    }
  }
  if (st) return st;
  float *y = reserve_buffer(owner, BUFFER_RESULT, laci_shape_count(&y_shape));
  st = y ? multiply_on_fast_engine(o, &b_shape, weights, &y_shape, y, err)
         : laci_fail_memory(err, "a result of the verification");
  if (!st) store_slab_of_result(o, r, y, first, n);
  return st;
}

/* The third operand, which is added to the result: one number for each channel (Conv), or broadcast
 * (Gemm). */
typedef struct summand {
  const result *r;
  const laci_buf *c;
  uint64_t key;
  bool conv;
} summand;

static double read_summand_at(const summand *s, int64_t at) {
  const result *r = s->r;
  int rank = s->c->shape.rank;
  int64_t columns = s->conv ? s->c->count : rank > 0 ? s->c->shape.dims[rank - 1] : 1;
  int64_t row = s->conv || s->c->count == columns ? 0 : at / r->channels;
  double x = s->c->f[row * columns + (columns == 1 ? 0 : at % r->channels)];
  if (!r->whole || !isfinite(x)) return x;
  uint64_t bits;
  if (x == 0) x = 0;
  memcpy(&bits, &x, sizeof bits);
  return laci_random_integer(s->key, bits, LACI_MAX_RANDOM_SUMMAND) * r->unit;
}

static void add_summand_to_results(int64_t begin, int64_t end, void *context) {
  const summand *s = context;
  for (int64_t at = begin; at < end; at++) {
    double x = read_summand_at(s, at), *to = s->r->y->f + at * s->r->inner;
    for (int64_t i = 0; i < s->r->inner; i++) to[i] += x;
  }
}

static void add_bias(const operands *o, const result *r) {
  const laci_eval *eval = o->eval;
  const laci_buf *c = eval->n_in > 2 ? eval->in[2] : NULL;
  if (!c || !c->f || c->count == 0) return;
  summand s = {.r = r,
               .c = c,
               .key = random_key_of_operand(o->product, 2),
               .conv = has_operator_type(eval->node, "Conv")};
  laci_pool_for(o->product->owner->how.pool, r->outer * r->channels, 1 + AT_ONCE / (r->inner + 1),
                add_summand_to_results, &s);
}

static void detect_matrix_operands(operands *o) {
  const laci_node *node = o->eval->node;
  const laci_shape *a = &o->eval->in[0]->shape, *b = &o->eval->in[1]->shape;
  bool gemm = has_operator_type(node, "Gemm");
  o->a_shape = *a;
  o->is_matrix = b->rank == 2 && (gemm ? laci_node_int(node, "transA", 0) == 0
                                       : has_operator_type(node, "MatMul") && a->rank >= 2);
  o->b_transposed = gemm && laci_node_int(node, "transB", 0) != 0;
  if (!o->is_matrix) return;
  int64_t rows = laci_shape_count_range(a, 0, a->rank - 1);
  o->a_shape = laci_shape_of(2, (int64_t[]){rows, a->dims[a->rank - 1]});
}

static lac_status evaluate_product(laci_eval *eval) {
  const product *p = (const product *)(const void *)eval->node->op;
  const laci_node *node = eval->node;
  operands o = {.eval = eval, .product = p};
  int stored = p->owner->original->values[node->inputs[1]].stored;
  bool streamed = stored >= 0 && p->owner->streamed[stored];
  if (!eval->in[0]->f || (!streamed && !eval->in[1]->f)) return p->plain->eval(eval);
  detect_matrix_operands(&o);
  o.b_stays = !o.is_matrix && (streamed || !has_operator_type(node, "MatMul"));
  lac_status st = read_operand(p, 0, eval->in[0], &o.a, eval->err);
  if (!st && !streamed) st = read_operand(p, 1, eval->in[1], &o.b, eval->err);
  if (!st && streamed && !p->owner->how.integers) {
    const laci_graph *graph = p->owner->original;
    st = laci_stored_acquire(graph, &graph->stored[stored], &o.held, eval->err);
  }
  result r = make_result_layout(&o);
  int64_t count = laci_shape_count(&eval->in[1]->shape), n = r.channels;
  if (streamed && count > LACI_SLAB && can_read_weight_in_slabs(node)) {
    n = LACI_SLAB / (count / r.channels);
    n = n < 1 ? 1 : n > r.channels ? r.channels : n;
  }
  for (int64_t first = 0; first < r.channels && !st; first += n) {
    st = compute_slab(&o, &r, first, r.channels - first < n ? r.channels - first : n, eval->err);
  }
  if (!st) add_bias(&o, &r);
  laci_bytes_release(&o.held);
  return st;
}

/* ---- All products ---- */

lac_status laci_products_create(const laci_graph *graph, const laci_products_options *options,
                                laci_products **products, lac_error *err) {
  *products = NULL;
  size_t n_nodes = (size_t)graph->n_nodes;
  laci_products *p = laci_alloc(1, sizeof *p);
  if (!p) return laci_fail_memory(err, "the verification's products");
  *p = (laci_products){.graph = *graph, .original = graph, .how = *options};
  p->graph.nodes = laci_alloc(n_nodes, sizeof *p->graph.nodes);
  p->products = laci_alloc(n_nodes, sizeof *p->products);
  p->streamed = laci_alloc((size_t)graph->n_stored, sizeof *p->streamed);
  if (!p->graph.nodes || !p->products || !p->streamed) {
    laci_products_destroy(p);
    return laci_fail_memory(err, "the verification's products");
  }
  for (int n = 0; n < graph->n_nodes; n++) {
    const laci_node *node = &graph->nodes[n];
    p->graph.nodes[n] = *node;
    int64_t cost = count_multiplications(graph, node, options->size_of_symbol);
    if (cost < (options->all ? 1 : LEAST_PRODUCT)) continue;
    p->products[n] = (product){.op = *node->op, .plain = node->op, .owner = p, .node = n};
    p->products[n].op.eval = evaluate_product;
    p->graph.nodes[n].op = &p->products[n].op;
  }
  for (int s = 0; s < graph->n_stored; s++) p->streamed[s] = is_read_only_by_products(p, s);
  *products = p;
  return LAC_OK;
}

void laci_products_destroy(laci_products *products) {
  if (!products) return;
  laci_free(products->graph.nodes);
  laci_free(products->products);
  laci_free(products->streamed);
  for (int which = 0; which < N_BUFFERS; which++) laci_free(products->buffers[which]);
  laci_free(products);
}

const laci_graph *laci_products_get_graph(const laci_products *products) {
  return &products->graph;
}

bool laci_products_has_node(const laci_products *products, int node) {
  return products->products[node].owner != NULL;
}

bool laci_products_is_streamed(const laci_products *products, int stored) {
  return products->streamed[stored];
}
