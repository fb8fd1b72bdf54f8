/* SPDX-License-Identifier: Apache-2.0
 * Chooses and applies N:M masks, tile by tile.
 *
 * A tile is some whole blocks, transposed: the first array holds the first column of every block,
 * the next array the second column, and so on. The rank of an element in its block is then a count
 * of comparisons between arrays, without a branch:
 *
 *     rank(c) = #{d < c : score(d) >= score(c)} + #{d > c : score(d) > score(c)},   kept = rank < n
 *
 * so of equal scores the lowest column is kept. Partial sums belong to fixed parts of the weight
 * and are added in a fixed order, so they have the same bits for any number of threads. Next:
 * score.h (what a score is). */
#include "sparse/mask.h"

#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/divide.h"
#include "base/to_int.h"
#include "cpu/pool.h"
#include "sparse/score.h"
#include "tensor/buf.h"

enum {
  TILE_ELEMENTS = 4096, /* maximum number of elements in a tile, whose scores are 32 KiB */
  TILES_A_PART = 16,
  SCAN_ELEMENTS = 1 << 18,
};

/* How a weight is cut into tiles. A segment is a range of columns in which blocks of m are aligned.
 * It is the whole weight if a run has a multiple of m columns; else it is one run of one outer
 * index. */
typedef struct weight_tiling {
  const laci_weight_view *weight;
  laci_pattern pattern;
  int64_t n_segments, segment_columns;
  int64_t full_blocks, blocks_a_tile, full_tiles; /* in one segment: number of full blocks, of
                                                     blocks in a tile, and of tiles of full
                                                     blocks */
  int partial;             /* number of columns in the partial block at the end of a segment; 0:
                              there is none */
  int64_t chunk, n_chunks; /* chunk: number of inner indices in a tile. n_chunks: number of tiles
                              for all inner indices */
  int64_t n_tiles;
} weight_tiling;

/* A tile: blocks of m columns; m is less than pattern.m in partial blocks. Its number of lanes is
 * n_blocks * width. */
typedef struct tile {
  int64_t first; /* flat index of the tile's first element in the weight */
  int64_t n_blocks, width;
  int m;
} tile;

static weight_tiling make_weight_tiling(const laci_weight_view *w, laci_pattern pattern) {
  weight_tiling c = {.weight = w, .pattern = pattern};
  if (!w->outer || !w->columns || !w->inner) return c;
  bool whole = w->run % pattern.m == 0;
  c.segment_columns = whole ? w->outer * w->columns : w->run;
  c.n_segments = whole ? 1 : w->outer * (w->columns / w->run);
  c.full_blocks = c.segment_columns / pattern.m;
  c.partial = (int)(c.segment_columns % pattern.m);
  int64_t capacity = TILE_ELEMENTS / pattern.m; /* maximum number of lanes in a tile */
  c.chunk = w->inner < capacity ? w->inner : capacity;
  c.n_chunks = laci_ceil_div(w->inner, c.chunk);
  c.blocks_a_tile = capacity / c.chunk;
  if (c.n_chunks > 1) c.blocks_a_tile = 1;
  c.full_tiles = laci_ceil_div(c.full_blocks, c.blocks_a_tile);
  c.n_tiles = c.n_segments * (c.full_tiles + (c.partial > 0)) * c.n_chunks;
  return c;
}

static tile locate_tile(const weight_tiling *c, int64_t index) {
  int64_t a_segment = c->full_tiles + (c->partial > 0);
  int64_t chunk = index % c->n_chunks, rest = index / c->n_chunks;
  int64_t in_segment = rest % a_segment, segment = rest / a_segment;
  tile t = {.n_blocks = 1, .m = c->partial};
  int64_t block = c->full_blocks;
  if (in_segment < c->full_tiles) {
    block = in_segment * c->blocks_a_tile;
    t.m = c->pattern.m;
    t.n_blocks =
        c->full_blocks - block < c->blocks_a_tile ? c->full_blocks - block : c->blocks_a_tile;
  }
  int64_t column = segment * c->segment_columns + block * c->pattern.m;
  int64_t inner_at = chunk * c->chunk, inner_left = c->weight->inner - inner_at;
  t.width = inner_left < c->chunk ? inner_left : c->chunk;
  t.first = column * c->weight->inner + inner_at;
  return t;
}

/* Scratch memory for one tile. Arrays have a row of lanes for each column of the blocks. */
typedef struct scratch {
  double raw[TILE_ELEMENTS];     /* scores, in the order of the weight */
  double score[TILE_ELEMENTS];   /* [m][lanes] scores of each column of the blocks */
  int64_t rank[TILE_ELEMENTS];   /* [lanes] rank of one column's elements in their blocks */
  int64_t filled[TILE_ELEMENTS]; /* [lanes] number of elements that are not zero in each block */
  int64_t n_zeros;
} scratch;

/* A function that reads a range of elements of a weight. Columns of a block are `inner` elements
 * apart. If a tile has all inner indices, it is one range; else each column is a range. */
typedef void element_job(const laci_weight_view *weight, int64_t first, int64_t n, double *out);

static void for_each_element_range(const weight_tiling *c, const tile *t, element_job *job,
                                   double *raw) {
  if (t->width == c->weight->inner) {
    job(c->weight, t->first, t->n_blocks * t->m * t->width, raw);
    return;
  }
  for (int column = 0; column < t->m; column++) {
    job(c->weight, t->first + column * c->weight->inner, t->width, raw + column * t->width);
  }
}

static void transpose_tile(const tile *t, scratch *b) {
  const int64_t lanes = t->n_blocks * t->width;
  for (int64_t block = 0; block < t->n_blocks; block++) {
    for (int column = 0; column < t->m; column++) {
      const double *from = b->raw + (block * t->m + column) * t->width;
      double *to = b->score + column * lanes + block * t->width;
      for (int64_t i = 0; i < t->width; i++) to[i] = from[i];
    }
  }
}

static void count_nonzeros(const tile *t, scratch *b) {
  const int64_t lanes = t->n_blocks * t->width;
  int64_t n_filled = 0;
  memset(b->filled, 0, (size_t)lanes * sizeof *b->filled);
  for (int column = 0; column < t->m; column++) {
    const double *distance = b->score + column * lanes;
    for (int64_t i = 0; i < lanes; i++) b->filled[i] += distance[i] != 0;
  }
  for (int64_t i = 0; i < lanes; i++) n_filled += b->filled[i];
  b->n_zeros = lanes * t->m - n_filled;
}

static void load_tile_scores(const weight_tiling *c, const tile *t, bool count, scratch *b) {
  if (c->weight->score && !count) {
    for_each_element_range(c, t, laci_scores_read, b->raw);
    transpose_tile(t, b);
    return;
  }
  for_each_element_range(c, t, laci_zero_distances_read, b->raw);
  transpose_tile(t, b);
  if (count) count_nonzeros(t, b);
  if (!c->weight->n_scales && !c->weight->squared && !c->weight->grid) return;
  for_each_element_range(c, t, laci_distances_to_scores, b->raw);
  transpose_tile(t, b);
}

static void rank_column_scores(const tile *t, int column, scratch *b) {
  const int64_t lanes = t->n_blocks * t->width;
  const double *mine = b->score + column * lanes;
  memset(b->rank, 0, (size_t)lanes * sizeof *b->rank);
  for (int d = 0; d < column; d++) {
    const double *other = b->score + d * lanes;
    for (int64_t i = 0; i < lanes; i++) b->rank[i] += other[i] >= mine[i];
  }
  for (int d = column + 1; d < t->m; d++) {
    const double *other = b->score + d * lanes;
    for (int64_t i = 0; i < lanes; i++) b->rank[i] += other[i] > mine[i];
  }
}

typedef struct job {
  const weight_tiling *cut;
  uint8_t *mask;          /* the mask, if one is chosen */
  laci_mask_stats *parts; /* [n_parts] statistics of each part, if a weight is measured */
  atomic_bool no_memory;
} job;

static void choose_tile(const weight_tiling *c, const tile *t, scratch *b, uint8_t *mask) {
  load_tile_scores(c, t, false, b);
  for (int column = 0; column < t->m; column++) {
    rank_column_scores(t, column, b);
    for (int64_t block = 0; block < t->n_blocks; block++) {
      uint8_t *out = mask + t->first + (block * t->m + column) * c->weight->inner;
      const int64_t *rank = b->rank + block * t->width;
      for (int64_t i = 0; i < t->width; i++) out[i] = rank[i] < c->pattern.n;
    }
  }
}

static void measure_tile(const weight_tiling *c, const tile *t, scratch *b,
                         laci_mask_stats *stats) {
  const int64_t lanes = t->n_blocks * t->width;
  double kept = 0, total = 0;
  load_tile_scores(c, t, true, b);
  for (int column = 0; column < t->m; column++) {
    const double *score = b->score + column * lanes;
    rank_column_scores(t, column, b);
    for (int64_t i = 0; i < lanes; i++) {
      kept += b->rank[i] < c->pattern.n ? score[i] : 0;
      total += score[i];
    }
  }
  for (int64_t i = 0; i < lanes; i++) {
    if (b->filled[i] > c->pattern.n) stats->holds_pattern = false;
  }
  stats->n_elements += lanes * t->m;
  stats->n_zeros += b->n_zeros;
  stats->kept += kept;
  stats->total += total;
}

static void process_tiles_of_parts(int64_t begin, int64_t end, void *context) {
  job *j = context;
  scratch *b = laci_alloc(1, sizeof *b);
  if (!b) {
    atomic_store(&j->no_memory, true);
    return;
  }
  for (int64_t part = begin; part < end; part++) {
    int64_t last = (part + 1) * TILES_A_PART;
    if (last > j->cut->n_tiles) last = j->cut->n_tiles;
    if (j->parts) j->parts[part].holds_pattern = true;
    for (int64_t i = part * TILES_A_PART; i < last; i++) {
      tile t = locate_tile(j->cut, i);
      if (j->parts) measure_tile(j->cut, &t, b, &j->parts[part]);
      else choose_tile(j->cut, &t, b, j->mask);
    }
  }
  laci_free(b);
}

typedef struct scan {
  const laci_weight_view *weight;
  int64_t count;
  _Atomic int64_t first; /* lowest flat index so far of a NaN or an infinity */
} scan;

static void find_nonfinite_in_parts(int64_t begin, int64_t end, void *context) {
  scan *s = context;
  for (int64_t part = begin; part < end; part++) {
    int64_t from = part * SCAN_ELEMENTS, n = s->count - from;
    if (n > SCAN_ELEMENTS) n = SCAN_ELEMENTS;
    int64_t at = laci_find_first_not_finite(
        s->weight->dtype, s->weight->bytes + (size_t)from * lac_dtype_size(s->weight->dtype), n);
    if (at < 0) continue;
    int64_t lowest = atomic_load(&s->first);
    while (from + at < lowest && !atomic_compare_exchange_weak(&s->first, &lowest, from + at)) {}
  }
}

lac_status laci_weight_check_finite(const laci_weight_view *w, laci_pool *pool, lac_error *err) {
  if (!laci_dtype_is_float(w->dtype)) return LAC_OK;
  scan s = {.weight = w, .count = w->outer * w->columns * w->inner, .first = INT64_MAX};
  laci_pool_for(pool, laci_ceil_div(s.count, SCAN_ELEMENTS), 1, find_nonfinite_in_parts, &s);
  int64_t first = atomic_load(&s.first);
  return first == INT64_MAX ? LAC_OK : laci_fail_not_finite(w, first, err);
}

/* Runs the job on all parts of the weight. A task of a thread has several parts, and allocates its
 * scratch memory once. */
static lac_status run_mask_job(job *j, laci_pool *pool, lac_error *err) {
  int64_t n_parts = laci_ceil_div(j->cut->n_tiles, TILES_A_PART);
  int64_t visits = 8 * (int64_t)laci_pool_threads(pool), grain = laci_ceil_div(n_parts, visits);
  laci_pool_for(pool, n_parts, grain > 0 ? grain : 1, process_tiles_of_parts, j);
  return atomic_load(&j->no_memory) ? laci_fail_memory(err, j->cut->weight->name) : LAC_OK;
}

lac_status laci_mask_choose(const laci_weight_view *weight, laci_pattern pattern, laci_pool *pool,
                            uint8_t *mask, lac_error *err) {
  lac_status st = laci_weight_check(weight, pattern, err);
  if (!st) st = laci_weight_check_finite(weight, pool, err);
  if (st) return st;
  weight_tiling c = make_weight_tiling(weight, pattern);
  job j = {.cut = &c, .mask = mask};
  return run_mask_job(&j, pool, err);
}

lac_status laci_mask_measure(const laci_weight_view *weight, laci_pattern pattern, laci_pool *pool,
                             laci_mask_stats *stats, lac_error *err) {
  *stats = (laci_mask_stats){.holds_pattern = true};
  lac_status st = laci_weight_check(weight, pattern, err);
  if (!st) st = laci_weight_check_finite(weight, pool, err);
  if (st) return st;
  weight_tiling c = make_weight_tiling(weight, pattern);
  int64_t n_parts = laci_ceil_div(c.n_tiles, TILES_A_PART);
  job j = {.cut = &c, .parts = laci_alloc((size_t)n_parts, sizeof *j.parts)};
  if (!j.parts) return laci_fail_memory(err, weight->name);
  st = run_mask_job(&j, pool, err);
  for (int64_t part = 0; !st && part < n_parts; part++) {
    stats->n_elements += j.parts[part].n_elements;
    stats->n_zeros += j.parts[part].n_zeros;
    stats->holds_pattern &= j.parts[part].holds_pattern;
    stats->kept += j.parts[part].kept;
    stats->total += j.parts[part].total;
  }
  laci_free(j.parts);
  return st;
}

void laci_mask_from_zeros(const laci_weight_view *weight, uint8_t *mask) {
  enum { AT_ONCE = 512 };
  double distance[AT_ONCE];
  const int64_t count = weight->outer * weight->columns * weight->inner;
  for (int64_t first = 0; first < count; first += AT_ONCE) {
    int64_t n = count - first < AT_ONCE ? count - first : AT_ONCE;
    laci_zero_distances_read(weight, first, n, distance);
    for (int64_t e = 0; e < n; e++) mask[first + e] = distance[e] != 0;
  }
}

/* Elements are zeroed without a branch: about half of them are pruned, in an order that a processor
 * cannot predict. */
#define AND_LOOP(type)                                                    \
  for (int64_t e = 0; e < count; e++) {                                   \
    type element;                                                         \
    memcpy(&element, bytes + (size_t)e * sizeof element, sizeof element); \
    element &= (type)(mask[e] ? ~(type)0 : 0);                            \
    memcpy(bytes + (size_t)e * sizeof element, &element, sizeof element); \
  }

static void zero_masked_elements(size_t size, int64_t count, const uint8_t *mask, uint8_t *bytes) {
  switch (size) {
    case 1: AND_LOOP(uint8_t) break;
    case 2: AND_LOOP(uint16_t) break;
    case 4: AND_LOOP(uint32_t) break;
    default: AND_LOOP(uint64_t) break;
  }
}

/* Zero points are integers of the element's own type, and floats have none (laci_weight_check
 * ensures this). */
void laci_mask_apply(const laci_weight_view *w, const uint8_t *mask, uint8_t *bytes) {
  const int64_t count = w->outer * w->columns * w->inner;
  const size_t size = lac_dtype_size(w->dtype);
  if (!w->n_scales || !w->zero || laci_dtype_is_float(w->dtype)) {
    zero_masked_elements(size, count, mask, bytes);
    return;
  }
  for (int64_t e = 0; e < count; e++) {
    if (mask[e]) continue;
    int64_t value = laci_clamp_to_int64(w->zero[laci_scale_index_of(w, e)]);
    for (size_t byte = 0; byte < size; byte++) {
      bytes[(size_t)e * size + byte] = (uint8_t)((uint64_t)value >> (8 * byte));
    }
  }
}
