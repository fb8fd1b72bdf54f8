/* SPDX-License-Identifier: Apache-2.0
 * A part of a product of byte_pairs.h. Sums of a block are stored as [pixel][8 rows]. Four pixels
 * of four rows are 16 bytes of a result, which two packing instructions bring together. */
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/sparse/byte_pairs.h"
#include "kernel/sparse/int8x4.h"
#include "kernel/sparse/int8x4_results_in.h"

#define INLINE static inline __attribute__((always_inline))

enum {
  LANES = LACI_SPARSE_LANES,
  INT8X4 = LACI_INT8X4_CHANNELS,
  ROWS = LACI_BYTE_PAIRS_ROWS,
  VECTOR = LACI_BYTE_PAIRS_BYTES,
  COPY = LACI_BYTE_PAIRS_COPY,
  PIXELS = 8,      /* number of pixels whose sums are in registers */
  FEW = 4,         /* number of pixels that become bytes together */
  MOST_TILES = 16, /* number of tiles whose pixels are computed together */
  MOST_PIXELS = MOST_TILES * LANES,
  SUMS = (MOST_PIXELS + 1) * ROWS, /* and those of pixels that fill up the last four */
};
typedef __m256i vector;

INLINE vector load(const void *at) { return _mm256_loadu_si256(at); }

/* ---- The copy of x ---- */

/* What stands next to each other in the copy, of eight int8x4 of x from `at` on: a has the first
 * four bytes of each, b the other four. */
INLINE void make_copies(const laci_byte_pairs_weights *w, const float *at, vector *a, vector *b) {
  const vector bytes = load(at), low = _mm256_set1_epi16(UINT8_MAX);
  if (w->copy == LACI_BYTE_PAIRS_WORDS) {
    *a = _mm256_and_si256(bytes, low);
    *b = _mm256_srli_epi16(bytes, 8);
  } else {
    *a = bytes;
    *b = load(at + w->pair_stride);
  }
}

INLINE void store_copies(vector a, vector b, float *to) {
  const vector low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
  _mm256_storeu_si256((void *)to, _mm256_permute2x128_si256(low, high, 0x20));
  _mm256_storeu_si256((void *)(to + ROWS), _mm256_permute2x128_si256(low, high, 0x31));
}

void laci_byte_pairs_copy_x(const laci_byte_pairs_weights *w, const float *x, int64_t n,
                            int64_t begin, int64_t end, void *copy) {
  const int64_t next = w->copy == LACI_BYTE_PAIRS_WORDS ? 0 : w->pair_stride;
  const int64_t whole = n - next < end ? n - next : end;
  float *to = copy;
  int64_t at = begin;
  vector a, b;
  for (; at + ROWS <= whole; at += ROWS) {
    make_copies(w, x + at, &a, &b);
    store_copies(a, b, to + 2 * at);
  }
  for (; at < end; at++) {
    float last[2 * ROWS] = {0}, made[2 * ROWS];
    memcpy(last, x + at, sizeof *x);
    if (at + next < n) memcpy(last + ROWS, x + at + next, sizeof *x);
    make_copies(&(laci_byte_pairs_weights){.copy = w->copy, .pair_stride = ROWS}, last, &a, &b);
    store_copies(a, b, made);
    memcpy(to + 2 * at, made, 2 * sizeof *made);
  }
}

/* ---- Sums ---- */

INLINE vector broadcast_int8x4(const char *x) {
  int32_t int8x4;
  memcpy(&int8x4, x, sizeof int8x4);
  return _mm256_set1_epi32(int8x4);
}

INLINE vector broadcast_eight_columns(const char *x) {
  int64_t columns;
  memcpy(&columns, x, sizeof columns);
  return _mm256_set1_epi64x(columns);
}

INLINE vector add_words(vector sums, vector words) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
}

enum { WORDS = -1 }; /* a `unit`: the copy has words of 16 bits */

/* Adds the steps of a block to the sums of n pixels. x: what each of them reads; unit: bytes of x
 * for each float of an offset. Both n and unit are known where this is compiled. */
INLINE void add_steps(const laci_byte_pairs_weights *w, const laci_byte_pairs_block *b,
                      const char *const *x, int64_t unit, int n, vector *sums) {
  const int64_t *offset = w->offset + b->offset_first;
  const int8_t *of = w->vectors + b->vector_first * VECTOR;
  const char *from[PIXELS];
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) from[i] = x[i];
  for (int64_t at = 0; at < b->n_selected; at++, of += 2 * VECTOR) {
    const vector order = load(of), weight = load(of + VECTOR);
    const int64_t columns = *offset++ * unit;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const vector kept = _mm256_shuffle_epi8(broadcast_eight_columns(from[i] + columns), order);
      sums[i] = add_words(sums[i], _mm256_maddubs_epi16(kept, weight));
    }
  }
  for (int64_t at = 0; at < b->n_widened; at++, of += 2 * VECTOR) {
    const vector order = load(of), weight = load(of + VECTOR);
    const int64_t columns = *offset++ * unit;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const vector kept = _mm256_shuffle_epi8(broadcast_int8x4(from[i] + columns), order);
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(kept, weight));
    }
  }
  for (int64_t at = 0; at < b->n_doubles; at++, of += 2 * VECTOR, offset += 2) {
    const vector first = load(of), second = load(of + VECTOR);
    const int64_t columns[] = {offset[0] * unit, offset[1] * unit};
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const vector a = _mm256_maddubs_epi16(broadcast_int8x4(from[i] + columns[0]), first);
      const vector c = _mm256_maddubs_epi16(broadcast_int8x4(from[i] + columns[1]), second);
      sums[i] = add_words(sums[i], _mm256_add_epi16(a, c));
    }
  }
  for (int64_t at = 0; at < b->n_singles; at++, of += VECTOR) {
    const vector weight = load(of);
    const int64_t columns = *offset++ * unit;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const vector int8x4 = broadcast_int8x4(from[i] + columns);
      sums[i] = add_words(sums[i], _mm256_maddubs_epi16(int8x4, weight));
    }
  }
}

/* Adds the whole steps of a block, which has no others. x: the pixels in the copy. */
INLINE void add_whole_steps(const laci_byte_pairs_weights *w, const laci_byte_pairs_block *b,
                            const char *const *x, int n, vector *sums) {
  const int64_t *offset = w->offset + b->offset_first;
  const int8_t *of = w->vectors + b->vector_first * VECTOR;
  const char *from[PIXELS];
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) from[i] = x[i];
  for (int64_t at = 0; at < b->n_whole; at++, of += 2 * VECTOR) {
    const vector even = load(of), odd = load(of + VECTOR);
    const int64_t columns = *offset++ * COPY;
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) {
      const char *words = from[i] + columns;
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(broadcast_int8x4(words), even));
      sums[i] = _mm256_add_epi32(sums[i], _mm256_madd_epi16(broadcast_int8x4(words + INT8X4), odd));
    }
  }
}

/* The pixels of some tiles that are results. */
typedef struct pixel_list {
  int n;       /* number of pixels, a multiple of four or 1 */
  bool copied; /* x is the copy */
  const char *x[MOST_PIXELS];
  int32_t place[MOST_PIXELS]; /* where the sums of each are, in [tile][lane][8 rows] */
} pixel_list;

/* The sums of a block for the pixels of a list. */
typedef struct block_sums {
  const laci_byte_pairs_weights *w;
  const laci_byte_pairs_block *block;
  const pixel_list *pixels;
  vector bias;   /* those of its rows */
  int32_t *sums; /* [tile][lane][8 rows] */
} block_sums;

INLINE void compute_pixels(const block_sums *b, int first, int64_t unit, int n) {
  vector of[PIXELS];
#pragma GCC unroll 8
  for (int i = 0; i < n; i++) of[i] = b->bias;
  if (unit == WORDS) add_whole_steps(b->w, b->block, b->pixels->x + first, n, of);
  else add_steps(b->w, b->block, b->pixels->x + first, unit, n, of);
#pragma GCC unroll 8
  for (int i = 0; i < n; i++)
    _mm256_storeu_si256((void *)(b->sums + b->pixels->place[first + i]), of[i]);
}

INLINE void compute_all_pixels(const block_sums *b, int64_t unit) {
  const int n = b->pixels->n;
  int at = 0;
  for (; at + PIXELS <= n; at += PIXELS) compute_pixels(b, at, unit, PIXELS);
  if (n - at == FEW) compute_pixels(b, at, unit, FEW);
  else if (at < n) compute_pixels(b, at, unit, 1);
}

static void compute_sums(const block_sums *b) {
  if (b->w->copy == LACI_BYTE_PAIRS_WORDS) compute_all_pixels(b, WORDS);
  else if (b->pixels->copied) compute_all_pixels(b, COPY);
  else compute_all_pixels(b, sizeof(float));
}

/* ---- Results ---- */

/* What the results of a block's rows need to become bytes. */
typedef struct rounding {
  __m256 scale, rest;
  __m256 most; /* a number above it would exceed 32 bits as an integer */
  vector zero; /* the zero point, as 16-bit words */
  vector low, high;
  vector residual_zero;
  __m256 residual_scale;
  __m256 middle_most;
  vector middle_low;
  __m256 middle_scale;
  addition adding;
  bool plain;        /* no result exceeds 32 bits, and bytes have no other bounds than 0 and 255 */
  bool stores_bytes; /* false: functions follow the sums, or results are floats */
} rounding;

/* What is known of the results where the code that rounds them is compiled. */
typedef struct known {
  addition adding;
  bool plain;
} known;

/* Copies the values of n rows into a vector; those of other rows are 0. */
static __m256 load_rows(const float *of, int64_t n) {
  float rows[ROWS] = {0};
  if (of) memcpy(rows, of, (size_t)n * sizeof *of);
  return _mm256_loadu_ps(rows);
}

/* Returns `x` for n rows, and 0 for the others: nothing is added to rows that do not exist. */
static __m256 set_rows(float x, int64_t n) {
  float rows[ROWS] = {0};
  for (int64_t row = 0; row < n; row++) rows[row] = x;
  return _mm256_loadu_ps(rows);
}

static rounding prepare_rounding(const laci_sparse_operands *o, int64_t row, int64_t n) {
  const laci_sparse_quantized *q = o->quantized;
  const laci_sparse_middle none = {.scale = 1}, *middle = q->middle ? q->middle : &none;
  const bool functions = o->n_functions > 0 || (o->residual && o->residual_last);
  return (rounding){.scale = load_rows(q->scale + row, n),
                    .rest = load_rows(q->rest ? q->rest + row : NULL, n),
                    .most = _mm256_set1_ps((float)(q->high - q->zero)),
                    .zero = _mm256_set1_epi16((short)q->zero),
                    .low = _mm256_set1_epi8((char)q->low),
                    .high = _mm256_set1_epi8((char)q->high),
                    .residual_zero = _mm256_set1_epi32(q->residual_zero),
                    .residual_scale = set_rows(q->residual_scale, n),
                    .middle_most = _mm256_set1_ps((float)(middle->high - middle->zero)),
                    .middle_low = _mm256_set1_epi32(middle->low - middle->zero),
                    .middle_scale = set_rows(middle->scale, n),
                    .adding = find_addition(o),
                    .plain = q->low == 0 && q->high == UINT8_MAX && fit_32_bits(q, row, row + n),
                    .stores_bytes = !q->floats && !functions};
}

/* Rounds to the nearest integer. A number above `most` is `most`, and a NaN the lowest integer. */
INLINE vector round_below(__m256 most, __m256 v) {
  return _mm256_cvtps_epi32(_mm256_min_ps(most, v));
}

/* Adds the residual's values of a pixel to its results v. */
INLINE __m256 add_residual(const rounding *r, addition adding, __m256 v, vector bytes) {
  const __m256 value = _mm256_cvtepi32_ps(_mm256_sub_epi32(bytes, r->residual_zero));
  if (adding == ADD_RESIDUAL) return _mm256_fmadd_ps(value, r->residual_scale, v);
  const vector whole = _mm256_max_epi32(r->middle_low, round_below(r->middle_most, v));
  const __m256 sum = _mm256_cvtepi32_ps(whole);
  if (adding == ADD_BYTE_TO_RESIDUAL)
    return _mm256_fmadd_ps(sum, r->middle_scale, _mm256_mul_ps(value, r->residual_scale));
  return _mm256_fmadd_ps(value, r->residual_scale, _mm256_mul_ps(sum, r->middle_scale));
}

/* Returns the bytes of four pixels: of the first four rows in the lower half, [pixel][row], and of
 * the other rows in the upper half. residual: theirs. */
INLINE vector round_pixels(const rounding *r, known k, const int32_t *sums, vector residual) {
  vector rounded[FEW];
#pragma GCC unroll 4
  for (int i = 0; i < FEW; i++) {
    const vector sum = load(sums + (ptrdiff_t)i * ROWS);
    __m256 v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum), r->scale, r->rest);
    if (k.adding != NO_RESIDUAL) {
      const char at = (char)(i * INT8X4), none = -1;
      const vector spread = _mm256_setr_epi8(
          at, none, none, none, (char)(at + 1), none, none, none, (char)(at + 2), none, none, none,
          (char)(at + 3), none, none, none, at, none, none, none, (char)(at + 1), none, none, none,
          (char)(at + 2), none, none, none, (char)(at + 3), none, none, none);
      v = add_residual(r, k.adding, v, _mm256_shuffle_epi8(residual, spread));
    }
    rounded[i] = k.plain ? _mm256_cvtps_epi32(v) : round_below(r->most, v);
  }
  const vector first = _mm256_adds_epi16(_mm256_packs_epi32(rounded[0], rounded[1]), r->zero);
  const vector second = _mm256_adds_epi16(_mm256_packs_epi32(rounded[2], rounded[3]), r->zero);
  const vector bytes = _mm256_packus_epi16(first, second);
  return k.plain ? bytes : _mm256_min_epu8(_mm256_max_epu8(bytes, r->low), r->high);
}

INLINE __m128i mask_of_lanes(uint32_t lanes) {
  const __m128i bits = _mm_setr_epi32(1, 2, 4, 8);
  return _mm_cmpeq_epi32(_mm_and_si128(_mm_set1_epi32((int)lanes), bits), bits);
}

enum { ALL = (1 << FEW) - 1 };

INLINE __m128i load_lanes(const float *at, uint32_t lanes) {
  return lanes == ALL ? _mm_loadu_si128((const void *)at)
                      : _mm_maskload_epi32((const void *)at, mask_of_lanes(lanes));
}

INLINE void store_lanes(float *at, uint32_t lanes, __m128i words) {
  if (lanes == ALL) _mm_storeu_si128((void *)at, words);
  else _mm_maskstore_epi32((void *)at, mask_of_lanes(lanes), words);
}

/* Stores the bytes of four neighbouring lanes, of which `lanes` are results. at: offset of the
 * first lane's results in y; next: that of the second four rows', or the same as `at` if the block
 * has none. */
INLINE void store_bytes(const laci_sparse_operands *o, const rounding *r, known k, uint32_t lanes,
                        const int64_t at[2], const int32_t *sums) {
  vector residual = _mm256_setzero_si256();
  if (k.adding != NO_RESIDUAL)
    residual = _mm256_set_m128i(load_lanes(o->residual + at[1], lanes),
                                load_lanes(o->residual + at[0], lanes));
  const vector bytes = round_pixels(r, k, sums, residual);
  if (at[1] != at[0]) store_lanes(o->y + at[1], lanes, _mm256_extracti128_si256(bytes, 1));
  store_lanes(o->y + at[0], lanes, _mm256_castsi256_si128(bytes));
}

/* Stores the bytes of a tile. out: offset of its first lane's results in y; stride: that of the
 * second four rows' from there; 0: the block has none. */
INLINE void store_tile_bytes(const laci_sparse_operands *o, const rounding *in_memory, known k,
                             uint64_t lanes, const int64_t out[2], const int32_t *sums) {
  const rounding r = *in_memory; /* in registers, as y might be where it is */
  if ((lanes & LACI_SPARSE_ALL_LANES) == LACI_SPARSE_ALL_LANES) {
    for (int first = 0; first < LANES; first += FEW)
      store_bytes(o, &r, k, ALL, (const int64_t[]){out[0] + first, out[1] + first},
                  sums + (ptrdiff_t)first * ROWS);
    return;
  }
  for (int first = 0; first < LANES; first += FEW) {
    const uint32_t some = (uint32_t)(lanes >> first & ALL);
    if (some != 0)
      store_bytes(o, &r, k, some, (const int64_t[]){out[0] + first, out[1] + first},
                  sums + (ptrdiff_t)first * ROWS);
  }
}

static void store_tile(const laci_sparse_operands *o, const rounding *r, uint64_t lanes,
                       const int64_t out[2], const int32_t *sums) {
#define STORE(adding, plain) store_tile_bytes(o, r, (known){adding, plain}, lanes, out, sums)
  if (r->plain && r->adding == NO_RESIDUAL) STORE(NO_RESIDUAL, true);
  else if (r->plain && r->adding == ADD_RESIDUAL) STORE(ADD_RESIDUAL, true);
  else switch (r->adding) {
      case NO_RESIDUAL: STORE(NO_RESIDUAL, false); break;
      case ADD_RESIDUAL: STORE(ADD_RESIDUAL, false); break;
      case ADD_RESIDUAL_TO_BYTE: STORE(ADD_RESIDUAL_TO_BYTE, false); break;
      case ADD_BYTE_TO_RESIDUAL: STORE(ADD_BYTE_TO_RESIDUAL, false); break;
    }
#undef STORE
}

/* Converts the sums of a tile, [lane][8 rows], to any results. rows: a part with the block's rows
 * and the tile. */
static void finish_tile(const laci_sparse_operands *o, int64_t row_stride,
                        const laci_sparse_part *rows, const int32_t *sums) {
  const int64_t n = rows->row_last - rows->row_first;
  int32_t by_row[ROWS * LANES];
  float done[ROWS * LANES];
  for (int64_t row = 0; row < n; row++) {
    for (int lane = 0; lane < LANES; lane++)
      by_row[row * LANES + lane] = sums[(ptrdiff_t)lane * ROWS + row];
  }
  memcpy(done, by_row, (size_t)(n * LANES) * sizeof *done);
  laci_sparse_finish_avx2(o, row_stride, LACI_SPARSE_S8, rows, done);
}

/* ---- Parts of a product ---- */

static void append_pixel(pixel_list *l, const char *x, int64_t place) {
  l->x[l->n] = x;
  l->place[l->n++] = (int32_t)(place * ROWS);
}

/* Lists the pixels of a part's tiles that are results. More than one are filled up to a multiple
 * of four, by the last one once more. */
static void list_pixels(const laci_sparse_operands *o, const laci_sparse_part *part,
                        const void *copy, pixel_list *l) {
  const char *x = copy ? copy : (const void *)o->x;
  const int64_t unit = copy ? COPY : (int64_t)sizeof(float);
  l->n = 0;
  l->copied = copy != NULL;
  for (int64_t at = part->tile_first; at < part->tile_last; at++) {
    const laci_sparse_tile *tile = &part->tiles[at];
    const int64_t place = (at - part->tile_first) * LANES;
    for (uint32_t left = tile->lanes & LACI_SPARSE_ALL_LANES; left != 0; left &= left - 1) {
      const int lane = __builtin_ctz(left);
      append_pixel(l, x + (tile->in + lane) * unit, place + lane);
    }
  }
  while (l->n > 1 && l->n % FEW != 0) append_pixel(l, l->x[l->n - 1], MOST_PIXELS);
}

/* Converts the sums of a block for some tiles, [tile][lane][8 rows], to results. part: the tiles,
 * and the block's rows. */
static void finish_block(const laci_byte_pairs_weights *w, const laci_sparse_operands *o,
                         const laci_sparse_part *part, const int32_t *sums) {
  const int64_t n = part->row_last - part->row_first;
  const rounding r = prepare_rounding(o, part->row_first, n);
  const int64_t stride = n > INT8X4 ? w->row_stride : 0;
  for (int64_t at = part->tile_first; at < part->tile_last; at++, sums += LANES * ROWS) {
    const laci_sparse_tile *tile = &part->tiles[at];
    const int64_t out = tile->out + part->row_first / INT8X4 * w->row_stride;
    if (r.stores_bytes) {
      store_tile(o, &r, tile->lanes, (const int64_t[]){out, out + stride}, sums);
    } else {
      const laci_sparse_part one = {part->tiles, at, at + 1, part->row_first, part->row_last};
      finish_tile(o, w->row_stride, &one, sums);
    }
  }
}

/* Computes all blocks of a part of few tiles. */
static void multiply_tiles(const laci_byte_pairs_weights *w, const laci_sparse_operands *o,
                           const laci_sparse_part *part, const void *copy) {
  const int64_t group = part->row_first / w->rows_each;
  const laci_byte_pairs_block *block =
      &w->blocks[group * w->blocks_each + part->row_first % w->rows_each / ROWS];
  int32_t sums[SUMS] __attribute__((aligned(VECTOR)));
  pixel_list l;
  list_pixels(o, part, copy, &l);
  /* those of the other lanes */
  memset(sums, 0, (size_t)((part->tile_last - part->tile_first) * LANES * ROWS) * sizeof *sums);
  for (int64_t row = part->row_first; row < part->row_last; row += ROWS, block++) {
    const int64_t left = part->row_last - row, n = left < ROWS ? left : ROWS;
    const laci_sparse_part rows = {part->tiles, part->tile_first, part->tile_last, row, row + n};
    int32_t bias[ROWS] = {0};
    memcpy(bias, o->quantized->bias + row, (size_t)n * sizeof *bias);
    compute_sums(&(block_sums){w, block, &l, load(bias), sums});
    finish_block(w, o, &rows, sums);
  }
}

/* Returns how many tiles are computed together: what they read of x stays in half of a second-level
 * cache while block after block is computed. */
static int64_t find_tiles_together(const laci_byte_pairs_weights *w) {
  enum { HALF_CACHE = 1 << 18 };
  const int64_t bytes = w->copy == LACI_BYTE_PAIRS_WORDS ? COPY : (int64_t)sizeof(float);
  const int64_t n = HALF_CACHE / (w->int8x4_each * LANES * bytes);
  return n < 1 ? 1 : n > MOST_TILES ? MOST_TILES : n;
}

void laci_byte_pairs_multiply(const laci_byte_pairs_weights *w, const laci_sparse_operands *o,
                              const laci_sparse_part *part, const void *copy) {
  const int64_t together = find_tiles_together(w);
  laci_sparse_part tiles = *part;
  for (; tiles.tile_first < part->tile_last; tiles.tile_first += together) {
    const int64_t last = tiles.tile_first + together;
    tiles.tile_last = last < part->tile_last ? last : part->tile_last;
    multiply_tiles(w, o, &tiles, copy);
  }
}

void laci_byte_pairs_sum_lines(const laci_byte_pairs_weights *w, int64_t block,
                               const laci_byte_pairs_lines *lines, int32_t *sums) {
  const int n = lines->n == 1 ? 1 : lines->n <= FEW ? FEW : PIXELS;
  pixel_list l; /* most of it is not read: do not fill it with zeros */
  l.n = n;
  l.copied = false;
  for (int at = 0; at < n; at++) {
    const int row = at < lines->n ? at : lines->n - 1;
    l.x[at] = (const char *)lines->x + row * lines->stride;
    l.place[at] = at * ROWS;
  }
  compute_sums(&(block_sums){w, &w->blocks[block], &l, _mm256_setzero_si256(), sums});
}
