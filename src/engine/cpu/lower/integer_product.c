/* SPDX-License-Identifier: Apache-2.0
 * Products of integers that are found in each run (plan/fuse_integer_product.c) as one step: bytes
 * times a constant matrix of bytes, the scales, a bias and functions. Parts are strips of columns,
 * which stay in the cache, times chunks of rows. */
#include "base/divide.h"
#include "cpu/pool.h"
#include "engine/cpu/lower/integer_product.h"
#include "engine/cpu/lower/pointwise.h"
#include "engine/cpu/onednn/onednn.h"
#include "engine/cpu/net.h"
#include "kernel/sparse/byte_pairs.h"

enum {
  STRIP = 4,             /* blocks of columns in a strip */
  UNIT = 32,             /* rows of a chunk are a multiple of this, but for the last one */
  CHUNK_BYTES = 1 << 20, /* bytes of x in a chunk: what a second-level cache holds */
  PARTS_EACH = 3,        /* number of parts for each thread, if there are as many */
};

typedef struct product_step {
  laci_byte_matrix matrix;
  laci_multiply_bytes *multiply;
  int64_t rows, blocks, n_strips, n_chunks;
  int n_functions;
  laci_pointwise functions[LACI_FUSED_MAX_POSTS];
} product_step;

/* ---- Running ---- */

typedef struct product_work {
  const product_step *s;
  laci_byte_product product;
} product_work;

static void apply_functions(const product_work *w, const laci_byte_part *part) {
  const product_step *s = w->s;
  const int64_t first = part->block * LACI_BYTE_COLUMNS, end = part->block_end * LACI_BYTE_COLUMNS;
  const int64_t n = (end < s->matrix.columns ? end : s->matrix.columns) - first;
  for (int64_t row = part->row; row < part->row_end && s->n_functions > 0; row++) {
    float *y = w->product.y + row * w->product.y_stride + first;
    for (int at = 0; at < s->n_functions; at++)
      laci_pointwise_apply_variant()(&s->functions[at], y, n);
  }
}

/** Returns the first row of a chunk; the last chunk has the rows that are left, too. */
static int64_t first_row_of_row_chunk(const product_step *s, int64_t chunk) {
  const int64_t n_units = s->rows / UNIT;
  return chunk == s->n_chunks ? s->rows : n_units * chunk / s->n_chunks * UNIT;
}

static void multiply_row_and_column_ranges(int64_t begin, int64_t end, void *context) {
  const product_work *w = context;
  const product_step *s = w->s;
  for (int64_t at = begin, next; at < end; at = next) {
    const int64_t chunk = at / s->n_strips, chunk_end = (chunk + 1) * s->n_strips;
    next = end < chunk_end ? end : chunk_end;
    const int64_t block_end = (next - chunk * s->n_strips) * STRIP;
    const laci_byte_part part = {.row = first_row_of_row_chunk(s, chunk),
                                 .row_end = first_row_of_row_chunk(s, chunk + 1),
                                 .block = at % s->n_strips * STRIP,
                                 .block_end = block_end < s->blocks ? block_end : s->blocks};
    s->multiply(&w->product, &part);
    apply_functions(w, &part);
  }
}

static lac_status run_integer_product(laci_net *net, laci_net_step *step, lac_error *err) {
  const product_step *s = step->context;
  const laci_dynamic_bytes bytes =
      laci_dynamic_bytes_at(laci_net_tensor_data(net, step->tensors[0]), s->rows, s->matrix.depth);
  product_work w = {.s = s,
                    .product = {.matrix = s->matrix,
                                .rows = {.x = bytes.x,
                                         .stride = bytes.stride,
                                         .sums = bytes.sums,
                                         .zero = (int32_t)bytes.scale->zero,
                                         .scale = bytes.scale->scale},
                                .y = laci_net_tensor_data(net, step->tensors[2]),
                                .y_stride = s->matrix.columns}};
  (void)err;
  const int64_t n = s->n_strips * s->n_chunks;
  laci_pool_for(net->pool, n, laci_ceil_div(n, (int64_t)PARTS_EACH * net->n_threads),
                multiply_row_and_column_ranges, &w);
  return LAC_OK;
}

/* ---- Lowering ---- */

static bool can_lower_integer_product(laci_net *net, const laci_fused *fused, const char **why) {
  (void)fused;
  *why = "values are bf16";
  if (net->plan.bf16) return false;
  *why = "kernels that leave out zeros are wanted";
  return net->use->which != LACI_NATIVE_USE_ALL && net->use->which != LACI_NATIVE_USE_ZEROS;
}

static int64_t count_elements_or_none(const laci_net *net, int value) {
  return value < 0 ? 0 : laci_shape_count(laci_plan_shape(&net->plan, value));
}

static const float *read_constant_or_none(laci_net *net, int value) {
  return value < 0 ? NULL : laci_plan_constant_floats(&net->plan, value);
}

static int store_packed_matrix(laci_net *net, const laci_fused *fused, laci_byte_matrix *matrix) {
  const laci_integer_product *p = fused->details;
  const laci_integer_matrix source = {.depth = p->depth,
                                      .columns = p->columns,
                                      .w = laci_plan_constant_floats(&net->plan, p->weight),
                                      .k_stride = p->columns,
                                      .column_stride = 1,
                                      .w_scale = read_constant_or_none(net, p->weight_scale),
                                      .scale = read_constant_or_none(net, p->scale),
                                      .n_w_scales = count_elements_or_none(net, p->weight_scale),
                                      .n_scales = count_elements_or_none(net, p->scale),
                                      .factor = fused->scale,
                                      .shift = fused->shift};
  if (net->plan.status || !source.w) return -1;
  return laci_net_store_byte_matrix(net, &source, p->weight, matrix);
}

/** Divides the work into strips of columns and chunks of rows: x of a chunk stays in the cache, and
 * all threads have work. */
static void choose_work_division(const laci_net *net, const laci_integer_product *p,
                                 product_step *s) {
  const int64_t most = p->rows / UNIT > 1 ? p->rows / UNIT : 1;
  const int64_t by_cache = laci_ceil_div(p->rows * laci_byte_row_stride(p->depth), CHUNK_BYTES);
  s->rows = p->rows;
  s->blocks = laci_byte_blocks(p->columns);
  s->n_strips = laci_ceil_div(s->blocks, STRIP);
  const int64_t by_threads = laci_ceil_div((int64_t)PARTS_EACH * net->n_threads, s->n_strips);
  s->n_chunks = by_cache > by_threads ? by_cache : by_threads;
  if (s->n_chunks > most) s->n_chunks = most;
}

/** Returns how many of the posts, all of which are functions, the step computes. */
static int choose_fused_functions(const laci_fused *fused, product_step *s) {
  while (s->n_functions < fused->n_posts &&
         laci_lower_to_pointwise(&fused->posts[s->n_functions].function,
                                 &s->functions[s->n_functions]))
    s->n_functions++;
  return s->n_functions;
}

static const char *describe_product(laci_net *net, const laci_fused *fused, int n_functions) {
  laci_fused shown = *fused;
  shown.node = ((const laci_integer_product *)fused->details)->node;
  shown.n_posts = n_functions;
  return laci_net_describe_fused(net, &shown);
}

static void lower_integer_product(laci_net *net, const laci_fused *fused) {
  const laci_integer_product *p = fused->details;
  const laci_shape *shape = laci_plan_shape(&net->plan, fused->output);
  product_step *s = laci_plan_alloc(&net->plan, 1, sizeof *s);
  if (!s) return;
  const int x = laci_net_find_dynamic_bytes(net, p->x);
  const int matrix = store_packed_matrix(net, fused, &s->matrix);
  laci_layout *md = laci_net_dense_layout(net, shape, LACI_ELEMENT_F32);
  int y = md ? laci_net_new_result(net, shape, LACI_ELEMENT_F32, md) : -1;
  laci_layout_destroy(md);
  laci_net_step *step = laci_net_step_add_code(net, &net->plan.graph->nodes[p->node],
                                               run_integer_product, 3, (int[]){x, matrix, y});
  if (net->plan.status || !step) return;
  choose_work_division(net, p, s);
  s->multiply = laci_multiply_bytes_fastest(p->rows, &step->kernel);
  if (s->matrix.pairs) {
    s->multiply = laci_multiply_bytes_arranged;
    step->kernel = "bytes:pairs";
    step->sparse = s->matrix.pairs->copy == LACI_BYTE_PAIRS_NEIGHBOURS;
  }
  const int n_functions = choose_fused_functions(fused, s);
  step->what = describe_product(net, fused, n_functions);
  step->context = s;
  step->shown = y;
  step->flops = 2 * p->rows * p->depth * p->columns;
  for (int at = n_functions; at < fused->n_posts; at++)
    y = laci_net_apply_function(net, fused, y, &fused->posts[at].function);
  laci_net_bind_value(net, fused->output, y);
}

const laci_implementation laci_implementations_integer_product[] = {
    {"bytes, by our kernel", LACI_FUSIBLE_SCALE | LACI_FUSIBLE_FUNCTIONS, can_lower_integer_product,
     lower_integer_product},
    {.name = NULL},
};
