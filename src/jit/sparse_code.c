/* SPDX-License-Identifier: Apache-2.0
 * Makes and runs the code of sparse_code.h. */
#include "jit/sparse_code.h"

#include <assert.h>
#include <string.h>

#include "base/divide.h"
#include "base/error.h"
#include "base/memory.h"
#include "jit/cache.h"
#include "jit/sparse_in.h"

enum {
  LANES = LACI_SPARSE_LANES,
  READ_AFTER = 3, /* number of floats after the last weight that may be read: code may read four
                     weights at once */
  NEAR_TILES = 8, /* number of tiles whose results, for a group's rows, fit in the first-level
                     cache */
  FLOATS_OF_LINE = LACI_SPARSE_LINE / sizeof(float),
  MOST_DISTANCE = 1 << 28, /* limit of an operand's size, in floats: half of what a 32-bit
                              displacement reaches */
};

struct laci_sparse_code {
  laci_code_cache *cache;
  laci_pool *pool; /* the options' pool, whose threads make the code */
  laci_sparse_plan plan;
  size_t *entry; /* [n_code_blocks + 1] where the code of each code block begins in the cache; the
                    last: where all code ends */
  float *weight; /* [terms] the weights, in the order in which the code reads them; memory of the
                    cache */
  int64_t row_stride;
  laci_sparse_values values;
  laci_sparse_prefetch prefetch;
  laci_sparse_cut cut;
  laci_sparse_one_lane one_lane;
  bool functions; /* the last code block of a group leaves sums, not results, and compiled code
                     computes the results: functions may follow, or it is ARM */
};

static const uint32_t bits[LANES] = {1,       1 << 1,  1 << 2,  1 << 3, 1 << 4,  1 << 5,
                                     1 << 6,  1 << 7,  1 << 8,  1 << 9, 1 << 10, 1 << 11,
                                     1 << 12, 1 << 13, 1 << 14, 1 << 15};

static const uint16_t pairing[2 * LANES] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                            21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31};

/* Operands of vpshufb, which give the index of the source byte for each byte: LANE of the four
 * bytes of a lane, SIXTEEN of four lanes; VECTOR repeats sixteen indices for all 64 bytes. */
#define LANE(first, a, b, c, d) (first) + (a), (first) + (b), (first) + (c), (first) + (d)
#define SIXTEEN(a, b, c, d) \
  LANE(0, a, b, c, d), LANE(4, a, b, c, d), LANE(8, a, b, c, d), LANE(12, a, b, c, d)
#define VECTOR(...) \
  { __VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__ }

static const laci_int8x4_constants int8x4_constants = {
    .orders = {VECTOR(SIXTEEN(0, 1, 2, 3)), VECTOR(SIXTEEN(0, 1, 3, 2)),
               VECTOR(SIXTEEN(3, 0, 2, 1)), VECTOR(SIXTEEN(2, 3, 0, 1))},
    .together = VECTOR(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
    .masks = {0x3333333333333333, 0x5555555555555555, 0x9999999999999999, 0x6666666666666666,
              0xAAAAAAAAAAAAAAAA, 0xCCCCCCCCCCCCCCCC},
    .byte = 0xFF,
};

/* Properties of the code for an instruction set. */
typedef struct code_of_isa {
  int rows, terms;                /* maximum number of rows in a group, and of terms in a code block
                                     (laci_sparse_cut) */
  size_t least_bytes, term_bytes; /* bytes of code for a term: the minimum, and the usual number */
} code_of_isa;

static const code_of_isa codes[] = {
    [LACI_JIT_AVX2] = {6, 600, 15, 24},        [LACI_JIT_AVX512] = {30, 2400, 6, 10},
    [LACI_JIT_AVX512BF16] = {24, 2400, 6, 10}, [LACI_JIT_AVX512VNNI] = {24, 2400, 6, 14},
    [LACI_JIT_NEON] = {6, 600, 15, 24},
};

/* Returns about how many cycles a run takes if each convolution group's rows are cut into
 * groups_each groups, and the tiles into n_chunks chunks. Work that threads do at the same time
 * counts once. */
static double estimate_cycles_of_cut(const laci_sparse_product *p, int64_t n_tiles,
                                     int64_t groups_each, int64_t n_chunks, int n_threads) {
  const double column = 1, around = 60; /* cycles of a tile in addition to its terms: for each
                                           column, and for loading and storing a code block's
                                           sums */
  const double streamed = 12.0 / 8;     /* cycles of a term until its code and weight arrive from
                                           memory */
  const int64_t groups = p->n_rows / p->rows_together * groups_each;
  const int64_t items = laci_ceil_div(groups * n_chunks, n_threads);
  const double each = laci_sparse_values_per_word(p->values); /* number of columns that a term
                                                                 multiplies in most cases: 1 for
                                                                 floats, 2 for bf16, 4 for int8 */
  const double terms = (double)p->row_begin[p->n_rows] / (double)groups / each;
  const double columns = (double)(p->n_columns * p->rows_together) / (double)p->n_rows / each;
  const double tile = (terms + columns * column) / 2 + around;
  const double tiles = (double)laci_ceil_div(n_tiles, n_chunks) * tile;
  return (double)items * (tiles > terms * streamed ? tiles : terms * streamed);
}

/* Chooses the number of chunks and groups, all about equally large, so that all threads have about
 * the same work. */
static void choose_groups_and_chunks(const laci_sparse_product *p, int64_t n_tiles, int n_threads,
                                     laci_sparse_cut *cut) {
  const int64_t least_groups = laci_ceil_div(p->rows_together, cut->rows);
  const int64_t least_chunks = laci_ceil_div(n_tiles, cut->chunk_tiles);
  int64_t n_groups = least_groups, n_chunks = least_chunks;
  double best = estimate_cycles_of_cut(p, n_tiles, n_groups, n_chunks, n_threads);
  for (int64_t chunks = least_chunks; chunks < least_chunks + n_threads; chunks++) {
    for (int64_t groups = least_groups; groups < least_groups + n_threads; groups++) {
      const double cost = estimate_cycles_of_cut(p, n_tiles, groups, chunks, n_threads);
      if (groups > p->rows_together || chunks > n_tiles || cost >= best) continue;
      best = cost;
      n_groups = groups;
      n_chunks = chunks;
    }
  }
  const int64_t unit = laci_sparse_values_per_word(p->values);
  cut->rows = (int)(laci_ceil_div(p->rows_together, n_groups * unit) * unit);
  cut->chunk_tiles = (int)laci_ceil_div(n_tiles, n_chunks);
}

/* Returns how many floats ahead of a tile to prefetch, which is one tile; 0 if x is read more than
 * once, or is small: it is in the cache already. */
static int64_t find_prefetch_distance(const laci_sparse_extent *extent, double reuse) {
  enum { CACHE_FLOATS = (2 << 20) / sizeof(float) };
  const laci_sparse_tile *tiles = extent->tiles;
  if (reuse > 1 || extent->n_x < CACHE_FLOATS || extent->n_tiles < 2) return 0;
  return tiles[1].in - tiles[0].in;
}

/* Is it faster to compute one-lane tiles by compiled code? It takes two thirds of the time that
 * generated code takes for sixteen lanes (Zen 4). */
static bool is_one_lane_faster(const laci_sparse_extent *extent, laci_jit_isa isa,
                               const laci_sparse_cut *cut) {
  enum { LEAST_ROWS = 8 };
  return isa == LACI_JIT_AVX512 && extent->n_tiles > 1 && cut->rows >= LEAST_ROWS &&
         laci_sparse_is_one_lane(&extent->tiles[extent->n_tiles - 1]);
}

/* Chooses the chunk so that what code blocks read of it stays in a core's second-level cache. In a
 * larger window, several taps read the same lines, so more tiles fit; and its code is larger. */
laci_sparse_cut laci_sparse_choose_cut(const laci_sparse_product *p, laci_jit_isa isa,
                                       const laci_sparse_extent *extent) {
  enum { CACHE_FLOATS = (256 << 10) / sizeof(float), LEAST_TILES = 16, MOST_TILES = 128 };
  const int64_t n_tiles = extent->n_tiles;
  const double each = (double)extent->n_x / (double)n_tiles; /* floats of x for each tile */
  const double columns = (double)p->n_columns / laci_sparse_values_per_word(p->values);
  const double reuse = columns * LANES / each;
  const double fit = (reuse > 1 ? reuse : 1) * CACHE_FLOATS / each;
  const int64_t tiles = fit < LEAST_TILES ? LEAST_TILES : fit > MOST_TILES ? MOST_TILES : (int)fit;
  laci_sparse_cut cut = {.rows = codes[isa].rows, .terms = codes[isa].terms};
  cut.chunk_tiles = (int)(n_tiles < tiles ? n_tiles : tiles);
  cut.columns_first = each > (double)(p->n_rows * LANES);
  cut.x_prefetch_distance = find_prefetch_distance(extent, reuse);
  choose_groups_and_chunks(p, n_tiles, extent->n_threads, &cut);
  cut.one_lane = is_one_lane_faster(extent, isa, &cut);
  return cut;
}

static lac_status check_product_has_code(const laci_sparse_product *p, laci_jit_isa isa,
                                         lac_error *err) {
  if (p->neighbour && isa != LACI_JIT_AVX512) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "a sparse product's code: rows of pixels without zeros between them");
  }
  bool near = p->row_stride <= MOST_DISTANCE / LACI_SPARSE_MOST_ROWS;
  for (int64_t at = 0; near && at < p->n_columns; at++) near = p->column_at[at] <= MOST_DISTANCE;
  if (near) return LAC_OK;
  return laci_fail(err, LAC_UNSUPPORTED, "a sparse product's code: operands of more than %d floats",
                   MOST_DISTANCE);
}

/* Returns how many cache lines each tile prefetches. The tiles of a chunk together fetch the whole
 * next code block, and some more, since code blocks differ in size. */
static laci_sparse_prefetch count_prefetch_lines(const laci_sparse_code *code,
                                                 const laci_sparse_options *o) {
  const laci_sparse_plan *plan = &code->plan;
  const int64_t terms = plan->n_terms / plan->n_code_blocks;
  const int64_t term_bytes = (int64_t)codes[o->isa].term_bytes, around_bytes = 512;
  const int64_t tile_bytes = (int64_t)LACI_SPARSE_LINE * o->cut.chunk_tiles;
  return (laci_sparse_prefetch){
      .n_code_lines = (int)laci_ceil_div(terms * term_bytes + around_bytes, tile_bytes),
      .n_weight_lines = (int)laci_ceil_div(terms * 9 / 2, tile_bytes)};
}

static void write_code_block(const laci_sparse_product *p, const laci_sparse_options *options,
                             const laci_sparse_code *code, const laci_sparse_group *group,
                             int64_t at) {
  laci_code *to = laci_code_cache_get_writable(code->cache);
  const bool reads_first = group->row_first % p->rows_together == 0;
  const laci_sparse_frame frame = {p->row_stride,  laci_sparse_values_per_word(p->values),
                                   code->prefetch, reads_first ? code->cut.x_prefetch_distance : 0,
                                   options->after, &code->plan.int8x8};
  const laci_sparse_plan *plan = &code->plan;
  const laci_sparse_columns *columns = &plan->code_blocks[at];
  const int64_t first = group->column_first + columns->column_first;
  static laci_sparse_write *const write[] = {[LACI_JIT_AVX2] = laci_sparse_write_avx2,
                                             [LACI_JIT_AVX512] = laci_sparse_write_avx512,
                                             [LACI_JIT_AVX512BF16] = laci_sparse_write_avx512bf16,
                                             [LACI_JIT_AVX512VNNI] = laci_sparse_write_avx512vnni,
                                             [LACI_JIT_NEON] = laci_sparse_write_neon};
  write[options->isa](
      to, &frame,
      &(laci_code_block){.rows = plan->rows + group->rows_at + columns->column_first,
                         .column_at = p->column_at + first,
                         .neighbour = p->neighbour ? p->neighbour + first : NULL,
                         .n_columns = columns->column_last - columns->column_first,
                         .n_rows = group->n_rows,
                         .first = at == group->block_first,
                         .last = at == group->block_last - 1 && !code->functions});
}

static lac_status generate_code_blocks(const laci_sparse_product *p,
                                       const laci_sparse_options *options, laci_sparse_code *code,
                                       lac_error *err) {
  laci_code *to = laci_code_cache_get_writable(code->cache);
  const laci_sparse_plan *plan = &code->plan;
  void *weight;
  assert((p->values == LACI_SPARSE_BF16) == (options->isa == LACI_JIT_AVX512BF16));
  assert((p->values == LACI_SPARSE_S8) == (options->isa == LACI_JIT_AVX512VNNI));
  assert(!options->cut.one_lane || options->isa == LACI_JIT_AVX512);
  code->row_stride = p->row_stride;
  code->values = p->values;
  lac_status st = check_product_has_code(p, options->isa, err);
  if (!st) st = laci_sparse_plan_init(p, code->cut, code->pool, &code->plan, err);
  const size_t n_terms = st ? 0 : (size_t)plan->n_terms;
  const size_t after = code->cut.one_lane ? LACI_ONE_LANE_PADDING : READ_AFTER;
  const size_t weight_bytes = (n_terms + after) * sizeof *code->weight;
  if (!st) st = laci_code_cache_alloc_data(code->cache, weight_bytes, &weight, err);
  if (st) return st;
  code->weight = weight;
  code->prefetch = count_prefetch_lines(code, options);
  if (code->cut.one_lane && !laci_sparse_one_lane_init(p, &code->one_lane)) {
    return laci_fail_memory(err, "a sparse product's code");
  }
  code->entry = laci_alloc((size_t)plan->n_code_blocks + 1, sizeof *code->entry);
  if (!code->entry) return laci_fail_memory(err, "a sparse product's code");
  laci_code_prepare_memory(to, n_terms * codes[options->isa].least_bytes, code->pool);
  for (int64_t at = 0; at < plan->n_groups; at++) {
    const laci_sparse_group *group = &plan->groups[at];
    for (int64_t code_block = group->block_first; code_block < group->block_last; code_block++) {
      laci_code_align(to, LACI_SPARSE_LINE);
      code->entry[code_block] = to->n;
      write_code_block(p, options, code, group, code_block);
    }
  }
  code->entry[plan->n_code_blocks] = to->n;
  return laci_code_status(to, "a sparse product's code", err);
}

lac_status laci_sparse_code_create(const laci_sparse_product *p, const laci_sparse_options *options,
                                   laci_code_cache *cache, laci_sparse_code **code,
                                   lac_error *err) {
  *code = laci_alloc(1, sizeof **code);
  if (!*code) return laci_fail_memory(err, "a sparse product's code");
  (*code)->cache = cache;
  (*code)->cut = options->cut;
  (*code)->pool = options->pool;
  (*code)->functions = options->after.functions || options->isa == LACI_JIT_NEON;
  lac_status st = generate_code_blocks(p, options, *code, err);
  if (!st) return LAC_OK;
  laci_sparse_code_destroy(*code);
  *code = NULL;
  return st;
}

void laci_sparse_code_destroy(laci_sparse_code *code) {
  if (!code) return;
  laci_sparse_plan_clear(&code->plan);
  laci_sparse_one_lane_clear(&code->one_lane);
  laci_free(code->entry);
  laci_free(code);
}

void laci_sparse_code_set_weights(laci_sparse_code *code, const float *weight) {
  laci_sparse_plan_order_weights(&code->plan, weight, code->pool, code->weight);
}

lac_status laci_sparse_code_order_places(const laci_sparse_code *code,
                                         const laci_sparse_places *from, laci_sparse_places *to,
                                         lac_error *err) {
  return laci_sparse_plan_order_places(&code->plan, from, code->pool, to, err);
}

float *laci_sparse_code_weights(laci_sparse_code *code) { return code->weight; }

/* Returns how many floats hold the sums of a group's rows, for a chunk. */
static size_t sum_floats_per_group(const laci_sparse_code *code) {
  return (size_t)code->cut.chunk_tiles * (size_t)code->cut.rows * LANES;
}

/* Returns how many floats hold all sums that are kept at once: with columns_first, those of all
 * groups. */
static size_t count_sum_floats(const laci_sparse_code *code) {
  return (code->cut.columns_first ? (size_t)code->plan.n_groups : 1) * sum_floats_per_group(code);
}

/* Returns the bytes of a thread's scratch: for all sums, and for the inputs of a one-lane tile. */
static size_t scratch_per_thread(const laci_sparse_code *code) {
  const size_t columns = (size_t)laci_ceil_div(code->one_lane.n, LANES) * LANES;
  return (count_sum_floats(code) + columns) * sizeof(float);
}

size_t laci_sparse_code_scratch_bytes(const laci_sparse_code *code, int n_threads) {
  return scratch_per_thread(code) * (size_t)n_threads;
}

typedef struct job {
  const laci_sparse_code *code;
  const laci_sparse_operands *o;
  const laci_sparse_tile *tiles;
  int64_t n_tiles, n_items, n_parts;
  char *scratch;
} job;

/* Runs the last code block for a part's tiles, a few at a time, and finishes their sums while these
 * are in the cache. If it is the only code block, no earlier sums are read, and all tiles can share
 * the same scratch. */
static void run_last_block_and_finish(const job *j, laci_code_block_run *run,
                                      laci_sparse_code_arguments call, laci_sparse_part part,
                                      bool only_block) {
  const int64_t last = part.tile_last, n_rows = part.row_last - part.row_first;
  for (; part.tile_first < last; part.tile_first += NEAR_TILES) {
    const int64_t left = last - part.tile_first, n = left < NEAR_TILES ? left : NEAR_TILES;
    part.tile_last = part.tile_first + n;
    call.tiles = part.tiles + part.tile_first;
    call.tiles_end = call.tiles + n;
    run(&call);
    laci_sparse_finish_variant()(j->o, j->code->row_stride, j->code->values, &part, call.sums);
    call.ahead_code += n * j->code->prefetch.n_code_lines * LACI_SPARSE_LINE;
    call.ahead_weight += n * j->code->prefetch.n_weight_lines * FLOATS_OF_LINE;
    if (!only_block) call.sums += n * n_rows * LANES;
  }
}

/* The inputs of a chunk's one-lane tile; each thread has its own. */
typedef struct one_lane_x {
  float *x;      /* [columns] the input of each column */
  int64_t chunk; /* the chunk whose inputs these are; -1: none yet */
} one_lane_x;

/* A code block and the chunk of tiles over which it is to run. */
typedef struct position {
  const laci_sparse_group *group; /* NULL: none */
  int64_t chunk, code_block;
  float *sums;
  one_lane_x *one_lane;
} position;

static void set_quantized_arguments(const laci_sparse_quantized *q, int64_t row,
                                    laci_sparse_code_arguments *call) {
  call->int8x4 = &int8x4_constants;
  call->bias = (const float *)(const void *)(q->bias + row); /* integers, of which the code only
                                                                broadcasts the bits */
  call->scale = q->scale + row;
  call->rest = q->rest ? q->rest + row : NULL;
  call->zero_words = (uint32_t)q->zero * 0x10001U;
  call->low_bytes = q->low * 0x1010101U;
  call->most = (float)(q->high - q->zero);
  call->residual_zero = q->residual_zero;
  call->residual_scale = q->residual_scale;
}

/* Runs the code over the chunk's first n tiles, and prefetches the code block next_code_block. */
static void run_generated_code(const job *j, const position *t, int64_t next_code_block,
                               int64_t n) {
  const laci_sparse_code *code = j->code;
  const laci_sparse_operands *o = j->o;
  const int64_t row = t->group->row_first, first = t->chunk * code->cut.chunk_tiles;
  const int64_t row_at = row / laci_sparse_values_per_word(code->values) * code->row_stride;
  void *at = laci_code_cache_find_function(code->cache, code->entry[t->code_block]);
  laci_code_block_run *run;
  laci_sparse_code_arguments call = {
      .x = o->x,
      .weight = code->weight + code->plan.code_blocks[t->code_block].weight_first,
      .bias = o->bias ? o->bias + row : NULL,
      .y = o->y + row_at,
      .sums = t->sums,
      .tiles = j->tiles + first,
      .tiles_end = j->tiles + first + n,
      .ahead_code = laci_code_cache_find_function(code->cache, code->entry[next_code_block]),
      .ahead_weight = code->weight + code->plan.code_blocks[next_code_block].weight_first,
      .low = o->low,
      .high = o->high,
      .bits = bits,
      .all_lanes = LACI_SPARSE_ALL_LANES,
      .pairing = pairing,
      .odd_words = 0xAAAAAAAA};
  if (o->residual) call.residual = o->residual + row_at;
  if (o->quantized) set_quantized_arguments(o->quantized, row, &call);
  memcpy(&run, &at, sizeof run);
  if (code->functions && t->code_block == t->group->block_last - 1) {
    const laci_sparse_part part = {j->tiles, first, first + n, row, row + t->group->n_rows};
    run_last_block_and_finish(j, run, call, part, t->code_block == t->group->block_first);
  } else {
    run(&call);
  }
}

/* Computes the one-lane tile that follows the chunk's first n tiles. It prefetches as much as a
 * tile does in generated code. */
static void run_one_lane_tile(const job *j, const position *t, int64_t next_code_block, int64_t n) {
  const laci_sparse_code *code = j->code;
  const laci_sparse_group *group = t->group;
  const laci_sparse_columns *code_block = &code->plan.code_blocks[t->code_block];
  const int64_t tile = t->chunk * code->cut.chunk_tiles + n;
  const char *code_after = laci_code_cache_find_function(code->cache, code->entry[next_code_block]);
  const float *weight_after = code->weight + code->plan.code_blocks[next_code_block].weight_first;
  const int64_t lines = code->prefetch.n_code_lines, weight_lines = code->prefetch.n_weight_lines;
  if (t->one_lane->chunk != t->chunk) {
    laci_sparse_gather_one_lane_inputs(&code->one_lane, &j->tiles[tile], j->o->x, t->one_lane->x);
    t->one_lane->chunk = t->chunk;
  }
  laci_sparse_run_one_lane(&(laci_sparse_one_lane_run){
      .o = j->o,
      .columns = {.n = code_block->column_last - code_block->column_first,
                  .rows = code->plan.rows + group->rows_at + code_block->column_first,
                  .weight = code->weight + code_block->weight_first,
                  .x = t->one_lane->x + group->column_first + code_block->column_first,
                  .next = {{code_after + n * lines * LACI_SPARSE_LINE, lines},
                           {weight_after + n * weight_lines * FLOATS_OF_LINE, weight_lines}}},
      .part = {j->tiles, tile, tile + 1, group->row_first, group->row_first + group->n_rows},
      .row_stride = code->row_stride,
      .sums = t->sums + n * group->n_rows * LANES,
      .first = t->code_block == group->block_first,
      .last = t->code_block == group->block_last - 1});
}

/* Returns the number of tiles of a chunk. */
static int64_t count_tiles_of_chunk(const job *j, int64_t chunk) {
  const int64_t most = j->code->cut.chunk_tiles, left = j->n_tiles - chunk * most;
  return left < most ? left : most;
}

/* Is the chunk's last tile computed separately, as a one-lane tile? */
static bool has_one_lane_tile_at_end(const job *j, const position *t) {
  enum { LEAST_ROWS = LACI_ONE_LANE_ROWS / LANES };
  const int64_t last = t->chunk * j->code->cut.chunk_tiles + count_tiles_of_chunk(j, t->chunk) - 1;
  return j->code->one_lane.n && t->group->n_rows >= LEAST_ROWS &&
         laci_sparse_is_one_lane(&j->tiles[last]);
}

static void run_code_block_over_chunk(const job *j, const position *t, int64_t next_code_block) {
  const bool one_lane = has_one_lane_tile_at_end(j, t);
  const int64_t n = count_tiles_of_chunk(j, t->chunk) - (one_lane ? 1 : 0);
  if (one_lane) run_one_lane_tile(j, t, next_code_block, n);
  if (n) run_generated_code(j, t, next_code_block, n);
}

static void prefetch_memory(const void *from, size_t bytes) {
  for (size_t at = 0; at < bytes; at += LACI_SPARSE_LINE) {
    __builtin_prefetch((const char *)from + at, 0, 2); /* into the second-level cache */
  }
}

/* Prefetches a thread's first code block, since no earlier one has done so. The weights take at
 * most half as much memory as the code. */
static void prefetch_first_code_block(const laci_sparse_code *code, int64_t code_block) {
  const size_t bytes = code->entry[code_block + 1] - code->entry[code_block];
  prefetch_memory(laci_code_cache_find_function(code->cache, code->entry[code_block]), bytes);
  prefetch_memory(code->weight + code->plan.code_blocks[code_block].weight_first, bytes / 2);
}

/* Runs the pending code block, which prefetches the code of the next one; then the next one becomes
 * the pending one. */
static void run_pending_code_block(const job *j, position *pending, position next) {
  if (pending->group)
    run_code_block_over_chunk(j, pending, next.group ? next.code_block : pending->code_block);
  else prefetch_first_code_block(j->code, next.code_block);
  *pending = next;
}

/* Runs groups [first, last) over a chunk, group by group. of: the chunk and its scratch. */
static void run_row_groups_in_order(const job *j, position *pending, int64_t first, int64_t last,
                                    position of) {
  for (int64_t at = first; at < last; at++) {
    of.group = &j->code->plan.groups[at];
    for (of.code_block = of.group->block_first; of.code_block < of.group->block_last;
         of.code_block++) {
      run_pending_code_block(j, pending, of);
    }
  }
}

/* Runs groups [first, last) over a chunk, columns by columns, so that what a code block reads of x
 * is still in the cache when the next group reads it. */
static void run_row_groups_columns_first(const job *j, position *pending, int64_t first,
                                         int64_t last, position of) {
  float *sums = of.sums;
  bool more = true;
  for (int64_t step = 0; more; step++) {
    more = false;
    for (int64_t at = first; at < last; at++) {
      of.group = &j->code->plan.groups[at];
      of.code_block = of.group->block_first + step;
      if (of.code_block >= of.group->block_last) continue;
      more = true;
      of.sums = sums + (size_t)(at - first) * sum_floats_per_group(j->code);
      run_pending_code_block(j, pending, of);
    }
  }
}

/* Runs items [begin, end), which are in the order (chunk, group): consecutive items of a thread
 * share tiles. */
static void run_row_group_items(int64_t begin, int64_t end, void *context) {
  const job *j = context;
  const int64_t n_groups = j->code->plan.n_groups;
  for (int64_t part = begin; part < end; part++) {
    const int64_t last = (part + 1) * j->n_items / j->n_parts;
    float *sums = (float *)(void *)(j->scratch + (size_t)part * scratch_per_thread(j->code));
    one_lane_x one_lane = {sums + count_sum_floats(j->code), -1};
    position pending = {.group = NULL};
    for (int64_t item = part * j->n_items / j->n_parts, next; item < last; item = next) {
      const int64_t chunk = item / n_groups, after = (chunk + 1) * n_groups;
      const position of = {.chunk = chunk, .sums = sums, .one_lane = &one_lane};
      next = after < last ? after : last;
      if (j->code->cut.columns_first) {
        run_row_groups_columns_first(j, &pending, item % n_groups, next - chunk * n_groups, of);
      } else {
        run_row_groups_in_order(j, &pending, item % n_groups, next - chunk * n_groups, of);
      }
    }
    run_pending_code_block(j, &pending, (position){.group = NULL});
  }
}

void laci_sparse_code_run(const laci_sparse_code *code, const laci_sparse_operands *o,
                          const laci_sparse_tile *tiles, int64_t n_tiles, laci_pool *pool,
                          void *scratch) {
  const int64_t chunk = code->cut.chunk_tiles;
  job j = {.code = code, .o = o, .tiles = tiles, .n_tiles = n_tiles, .scratch = scratch};
  assert(code->functions || (o->n_functions == 0 && !o->residual_last));
  j.n_items = (n_tiles + chunk - 1) / chunk * code->plan.n_groups;
  j.n_parts = laci_pool_threads(pool) < j.n_items ? laci_pool_threads(pool) : j.n_items;
  laci_pool_for(pool, j.n_parts, 1, run_row_group_items, &j);
}
