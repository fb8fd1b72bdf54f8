/* SPDX-License-Identifier: Apache-2.0
 * Products of one row with 2:4 weights (kernel/sparse/vector.h), on one core, against dense ones:
 * f32 against OpenBLAS' sgemv and oneDNN's product, bf16 and int8 against dense kernels that are
 * here. "memory": several matrices one after the other, more than the last cache holds; "cache":
 * one, again and again. All kernels are run alternately, and the least time of each counts.
 *
 *     sparse_vector_bench [--rounds N] [--blas FILE] [--only TEXT]
 *
 * FILE is a library with cblas_sgemv, by default libopenblas.so.0; without one, that column is
 * empty. */
#include <dlfcn.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/rng.h"
#include "cpu/cpu.h"
#include "cpu/openmp.h"
#include "engine/cpu/onednn/onednn.h"
#include "kernel/sparse/vector.h"
#include "large_pages.h"
#include "tensor/bf16.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MOST_COPIES = 96, STREAMS = LACI_SPARSE_STREAMS };
enum { MORE_THAN_CACHE = 160 << 20 }; /* bytes of all copies, whatever their type */

static const struct {
  int64_t rows, columns;
} shapes[] = {{4096, 11008}, {4096, 4096}, {1000, 2048}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static const char *const names[] = {"f32", "bf16", "int8"};
static const size_t bytes_of[] = {4, 2, 1};

typedef void sgemv(int order, int transposed, int rows, int columns, float alpha, const float *a,
                   int stride, const float *x, int x_step, float beta, float *y, int y_step);
typedef void dense_product(const void *w, const void *x, float *y, int64_t rows, int64_t columns);

static void die(const char *what) {
  (void)fprintf(stderr, "sparse_vector_bench: %s\n", what);
  exit(1);
}

/* ---- Dense kernels: eight rows at a time, as the sparse one ---- */

#if defined(__x86_64__)
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))
enum { AHEAD = 1024 }; /* bytes that are asked for before they are needed */

AVX512 static __m512 widen(const uint16_t *at) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}

AVX512 static void dense_bf16(const void *weights, const void *vector, float *y, int64_t rows,
                              int64_t columns) {
  const float *x = vector;
  for (int64_t row = 0; row < rows / STREAMS; row++) {
    __m512 sum[STREAMS];
    for (int s = 0; s < STREAMS; s++) sum[s] = _mm512_setzero_ps();
    for (int64_t k = 0; k < columns; k += 32) {
      const __m512 x0 = _mm512_loadu_ps(x + k), x1 = _mm512_loadu_ps(x + k + 16);
#pragma GCC unroll 8
      for (int s = 0; s < STREAMS; s++) {
        const uint16_t *w = (const uint16_t *)weights + (row + s * (rows / STREAMS)) * columns + k;
        __builtin_prefetch((const char *)w + AHEAD);
        sum[s] = _mm512_fmadd_ps(widen(w), x0, sum[s]);
        sum[s] = _mm512_fmadd_ps(widen(w + 16), x1, sum[s]);
      }
    }
    for (int s = 0; s < STREAMS; s++) {
      y[row + s * (rows / STREAMS)] = _mm512_reduce_add_ps(sum[s]);
    }
  }
}

AVX512 static __m512i load_s8(const int8_t *at) {
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

AVX512 static __m512i load_u8(const uint8_t *at) {
  return _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)at));
}

AVX512 static void dense_s8(const void *weights, const void *vector, float *y, int64_t rows,
                            int64_t columns) {
  const uint8_t *x = vector;
  for (int64_t row = 0; row < rows / STREAMS; row++) {
    __m512i sum[STREAMS];
    for (int s = 0; s < STREAMS; s++) sum[s] = _mm512_setzero_si512();
    for (int64_t k = 0; k < columns; k += 64) {
      const __m512i x0 = load_u8(x + k), x1 = load_u8(x + k + 32);
#pragma GCC unroll 8
      for (int s = 0; s < STREAMS; s++) {
        const int8_t *w = (const int8_t *)weights + (row + s * (rows / STREAMS)) * columns + k;
        __builtin_prefetch(w + AHEAD);
        const __m512i both = _mm512_add_epi32(_mm512_madd_epi16(load_s8(w), x0),
                                              _mm512_madd_epi16(load_s8(w + 32), x1));
        sum[s] = _mm512_add_epi32(sum[s], both);
      }
    }
    for (int s = 0; s < STREAMS; s++) {
      y[row + s * (rows / STREAMS)] = (float)_mm512_reduce_add_epi32(sum[s]);
    }
  }
}

VNNI static void dense_s8_vnni(const void *weights, const void *vector, float *y, int64_t rows,
                               int64_t columns) {
  const uint8_t *x = vector;
  for (int64_t row = 0; row < rows / STREAMS; row++) {
    __m512i sum[STREAMS];
    for (int s = 0; s < STREAMS; s++) sum[s] = _mm512_setzero_si512();
    for (int64_t k = 0; k < columns; k += 64) {
      const __m512i x0 = _mm512_loadu_si512(x + k);
#pragma GCC unroll 8
      for (int s = 0; s < STREAMS; s++) {
        const int8_t *w = (const int8_t *)weights + (row + s * (rows / STREAMS)) * columns + k;
        __builtin_prefetch(w + AHEAD);
        sum[s] = _mm512_dpbusd_epi32(sum[s], x0, _mm512_loadu_si512(w));
      }
    }
    for (int s = 0; s < STREAMS; s++) {
      y[row + s * (rows / STREAMS)] = (float)_mm512_reduce_add_epi32(sum[s]);
    }
  }
}
#endif

/* NULL: there is none for this processor. */
static dense_product *dense_of(laci_sparse_values values) {
#if defined(__x86_64__)
  if (!laci_cpu_has_avx512f() || values == LACI_SPARSE_F32) return NULL;
  if (values == LACI_SPARSE_BF16) return dense_bf16;
  return __builtin_cpu_supports("avx512vnni") ? dense_s8_vnni : dense_s8;
#else
  (void)values;
  return NULL;
#endif
}

/* ---- Matrices ---- */

typedef struct matrices {
  int64_t rows, columns;
  int n; /* copies */
  laci_sparse_values values;
  void *dense[MOST_COPIES];
  laci_sparse_rows sparse[MOST_COPIES];
  void *x;
  float *y, *scale;
} matrices;

static void store(matrices *m, void *to, int64_t at, float value) {
  if (m->values == LACI_SPARSE_F32) ((float *)to)[at] = value;
  if (m->values == LACI_SPARSE_BF16) ((uint16_t *)to)[at] = laci_bf16_round(value);
  if (m->values == LACI_SPARSE_S8) ((int8_t *)to)[at] = (int8_t)value;
}

/* Two of four kept by chance, as integers that all types have. */
static void make_copy(matrices *m, int copy, float *floats) {
  const int64_t n = m->rows * m->columns;
  const laci_sparse_rows_part all = {floats, 0, m->rows, 0, m->columns, m->columns, 1};
  laci_sparse_rows *w = &m->sparse[copy];
  memset(floats, 0, (size_t)n * sizeof *floats);
  for (int64_t at = 0; at < n; at += 4) {
    const uint64_t random = laci_rng_integer_below(1, (uint64_t)copy, (uint64_t)at, 1 << 20);
    const int64_t first = (int64_t)(random % 4),
                  second = (first + 1 + (int64_t)(random / 4 % 3)) % 4;
    floats[at + first] = (float)(random / 16 % 100 + 1);
    floats[at + second] = -(float)(random / 2048 % 100 + 1);
  }
  m->dense[copy] = large_pages((size_t)n, bytes_of[m->values]);
  for (int64_t at = 0; at < n; at++) store(m, m->dense[copy], at, floats[at]);
  *w = (laci_sparse_rows){
      .values = m->values, .n_rows = m->rows, .n_columns = m->columns, .pairs = true};
  w->chunk_at = large_pages((size_t)laci_sparse_rows_n_chunks(w) + 1, sizeof *w->chunk_at);
  w->row_sum = large_pages((size_t)m->rows, sizeof *w->row_sum);
  laci_sparse_rows_count_kept(w, &all);
  w->bytes = large_pages(laci_sparse_rows_set_chunk_offsets(w), 1);
  laci_sparse_rows_fill_chunks(w, &all);
}

static void matrices_init(matrices *m, int shape, laci_sparse_values values, bool cold) {
  *m = (matrices){.rows = shapes[shape].rows, .columns = shapes[shape].columns, .values = values};
  const size_t bytes = (size_t)(m->rows * m->columns) * bytes_of[values];
  m->n = cold ? (int)(MORE_THAN_CACHE / bytes) + 1 : 1;
  float *floats = large_pages((size_t)(m->rows * m->columns), sizeof *floats);
  for (int copy = 0; copy < m->n; copy++) make_copy(m, copy, floats);
  large_pages_give_back(floats, (size_t)(m->rows * m->columns), sizeof *floats);
  m->x = large_pages((size_t)m->columns, sizeof(float));
  m->y = large_pages((size_t)m->rows, sizeof *m->y);
  m->scale = large_pages((size_t)m->rows, sizeof *m->scale);
  for (int64_t row = 0; row < m->rows; row++) m->scale[row] = 1;
  for (int64_t k = 0; k < m->columns; k++) {
    const uint8_t x = (uint8_t)laci_rng_integer_below(2, 0, (uint64_t)k, 256);
    if (values == LACI_SPARSE_S8) ((uint8_t *)m->x)[k] = x;
    else ((float *)m->x)[k] = x;
  }
}

static void matrices_clear(const matrices *m) {
  for (int copy = 0; copy < m->n; copy++) {
    const laci_sparse_rows *w = &m->sparse[copy];
    const size_t n_chunks = (size_t)laci_sparse_rows_n_chunks(w);
    large_pages_give_back(m->dense[copy], (size_t)(m->rows * m->columns), bytes_of[m->values]);
    large_pages_give_back(w->bytes, (size_t)w->chunk_at[n_chunks] + LACI_SPARSE_READ_AHEAD, 1);
    large_pages_give_back(w->chunk_at, n_chunks + 1, sizeof *w->chunk_at);
    large_pages_give_back(w->row_sum, (size_t)m->rows, sizeof *w->row_sum);
  }
  large_pages_give_back(m->x, (size_t)m->columns, sizeof(float));
  large_pages_give_back(m->y, (size_t)m->rows, sizeof *m->y);
  large_pages_give_back(m->scale, (size_t)m->rows, sizeof *m->scale);
}

/* ---- oneDNN ---- */

enum { N_ARGS = 4 };

typedef struct dnn_product {
  laci_onednn *dnn;
  laci_primitive *pd[MOST_COPIES];
  laci_memory *memory[MOST_COPIES][N_ARGS];
  void *own[MOST_COPIES][N_ARGS]; /* bytes that are neither x nor y */
  size_t own_bytes[MOST_COPIES][N_ARGS];
} dnn_product;

static void dnn_bind(dnn_product *d, int copy, const matrices *m) {
  static const int args[N_ARGS] = {LACI_ARG_SRC, LACI_ARG_DST, LACI_ARG_WEIGHTS,
                                   LACI_ARG_SCRATCHPAD};
  laci_primitive *pd = d->pd[copy];
  int n = 0;
  for (; n < N_ARGS; n++) {
    const laci_layout *layout = laci_primitive_layout(pd, (laci_arg)args[n]);
    const size_t bytes = layout ? laci_layout_bytes(layout) : 0;
    if (bytes == 0) break;
    void *data = n == 0 ? m->x : n == 1 ? (void *)m->y : large_pages(bytes, 1);
    if (n > 1) {
      d->own[copy][n] = data;
      d->own_bytes[copy][n] = bytes;
    }
    if (laci_memory_create(d->dnn, layout, data, &d->memory[copy][n])) die("oneDNN's memory");
  }
  if (laci_primitive_create(pd) || laci_primitive_bind(pd, n, args, d->memory[copy])) {
    die("oneDNN's product");
  }
}

static void dnn_clear(const dnn_product *d, int n_copies) {
  if (!d->dnn) return;
  for (int copy = 0; copy < n_copies; copy++) {
    laci_primitive_destroy(d->pd[copy]);
    for (int n = 0; n < N_ARGS; n++) {
      laci_memory_destroy(d->memory[copy][n]);
      if (d->own[copy][n]) large_pages_give_back(d->own[copy][n], d->own_bytes[copy][n], 1);
    }
  }
  laci_onednn_destroy(d->dnn);
}

static void dnn_init(dnn_product *d, const matrices *m) {
  laci_layout *md[3];
  *d = (dnn_product){0};
  if (laci_onednn_create(&d->dnn, NULL)) die("oneDNN");
  if (!laci_layout_create_strided(&md[0], 2, (int64_t[]){1, m->columns}, LACI_ELEMENT_F32,
                                  (int64_t[]){m->columns, 1}) ||
      !laci_layout_create_any(&md[1], 2, (int64_t[]){m->columns, m->rows}, LACI_ELEMENT_F32) ||
      !laci_layout_create_strided(&md[2], 2, (int64_t[]){1, m->rows}, LACI_ELEMENT_F32,
                                  (int64_t[]){m->rows, 1})) {
    die("a layout");
  }
  for (int copy = 0; copy < m->n; copy++) {
    const laci_layout *const of[] = {md[0], md[1], NULL, md[2]};
    if (laci_primitive_describe_matmul(&d->pd[copy], d->dnn, of, NULL))
      die("oneDNN has no product");
    dnn_bind(d, copy, m);
  }
  for (int at = 0; at < 3; at++) laci_layout_destroy(md[at]);
}

/* ---- The table ---- */

typedef enum method { BLAS, DENSE, DNN, SPARSE, N_METHODS } method;

typedef struct bench {
  sgemv *blas; /* NULL: none */
  int rounds;
  const char *only;
} bench;

static bool run(const bench *b, const matrices *m, const dnn_product *d, method of, int copy) {
  dense_product *dense = dense_of(m->values);
  const laci_sparse_vectors v = {m->x, m->y, 1, m->columns, m->rows, NULL, m->scale, 0};
  if (of == BLAS && m->values == LACI_SPARSE_F32 && b->blas) {
    b->blas(101, 111, (int)m->rows, (int)m->columns, 1, m->dense[copy], (int)m->columns, m->x, 1, 0,
            m->y, 1);
  } else if (of == DENSE && dense) {
    dense(m->dense[copy], m->x, m->y, m->rows, m->columns);
  } else if (of == DNN && d->dnn) {
    if (laci_primitive_run(d->pd[copy], d->dnn, NULL)) die("oneDNN's run");
  } else if (of == SPARSE) {
    laci_sparse_rows_multiply_variant()(&m->sparse[copy], &v, 0,
                                        laci_sparse_rows_n_places(&m->sparse[copy]));
  } else {
    return false;
  }
  return true;
}

static void measure(const bench *b, const matrices *m, const dnn_product *d,
                    double least[N_METHODS]) {
  for (int of = 0; of < N_METHODS; of++) least[of] = 0;
  for (int round = 0; round < b->rounds * m->n; round++) {
    for (int of = 0; of < N_METHODS; of++) {
      if (m->n == 1 && !run(b, m, d, (method)of, 0)) continue; /* it is in the cache from here on */
      const double start = laci_clock_seconds();
      if (!run(b, m, d, (method)of, round % m->n)) continue;
      const double seconds = laci_clock_seconds() - start;
      if (least[of] == 0 || seconds < least[of]) least[of] = seconds;
    }
  }
}

static void show_time(double seconds, double sparse) {
  if (seconds > 0) printf(" %9.0f %6.2f", 1e6 * seconds, seconds / sparse);
  else printf(" %9s %6s", "-", "-");
}

static void show(const bench *b, int shape, laci_sparse_values values, bool cold) {
  char name[64];
  double least[N_METHODS];
  matrices m;
  dnn_product d = {0};
  (void)snprintf(name, sizeof name, "%s %lld x %lld %s", names[values],
                 (long long)shapes[shape].rows, (long long)shapes[shape].columns,
                 cold ? "memory" : "cache");
  if (b->only && !strstr(name, b->only)) return;
  matrices_init(&m, shape, values, cold);
  if (values == LACI_SPARSE_F32) dnn_init(&d, &m);
  measure(b, &m, &d, least);
  const laci_sparse_rows *w = &m.sparse[0];
  const double bytes = (double)w->chunk_at[laci_sparse_rows_n_chunks(w)];
  printf("%-26s", name);
  for (int of = 0; of < SPARSE; of++) show_time(least[of], least[SPARSE]);
  printf(" %9.0f %6.1f %6.2f\n", 1e6 * least[SPARSE], 1e-9 * bytes / least[SPARSE],
         (double)(m.rows * m.columns) * (double)bytes_of[values] / bytes);
  (void)fflush(stdout);
  dnn_clear(&d, m.n);
  matrices_clear(&m);
}

static sgemv *load_blas(const char *path) {
  sgemv *found = NULL;
  void (*set_threads)(int) = NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return NULL;
  void *symbol = dlsym(library, "cblas_sgemv"),
       *threads = dlsym(library, "openblas_set_num_threads");
  memcpy(&found, &symbol, sizeof found);
  memcpy(&set_threads, &threads, sizeof set_threads);
  if (set_threads) set_threads(1);
  return found;
}

int main(int argc, char **argv) {
  const char *blas = "libopenblas.so.0";
  bench b = {.rounds = 10};
  for (int at = 1; at < argc; at += 2) {
    if (at + 1 == argc) die("usage: see the head of bench/sparse_vector_bench.c");
    if (!strcmp(argv[at], "--rounds")) b.rounds = atoi(argv[at + 1]);
    else if (!strcmp(argv[at], "--blas")) blas = argv[at + 1];
    else if (!strcmp(argv[at], "--only")) b.only = argv[at + 1];
    else die("usage: see the head of bench/sparse_vector_bench.c");
  }
  b.blas = load_blas(blas);
  laci_onednn_limit_isa();
  (void)laci_openmp_set_threads(1);
  printf(
      "one core; microseconds, and how many times the sparse one's they are; GB/s of sparse; how "
      "many times fewer its bytes\n");
  printf("%-26s %9s %6s %9s %6s %9s %6s %9s %6s %6s\n", "", "BLAS", "", "dense", "", "oneDNN", "",
         "sparse", "GB/s", "bytes");
  for (int values = 0; values < 3; values++) {
    for (int shape = 0; shape < N_SHAPES; shape++) {
      show(&b, shape, (laci_sparse_values)values, true);
      if (shape == N_SHAPES - 1) show(&b, shape, (laci_sparse_values)values, false);
    }
  }
  return 0;
}
