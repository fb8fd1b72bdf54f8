/* SPDX-License-Identifier: Apache-2.0
 * OpenBLAS, used with one thread for each call.
 *
 * It is loaded when it is first needed, not linked. The reason is its memory: 128 MiB of address
 * space for every thread that calls it, for the first one as soon as it is loaded; and it waits
 * forever if it does not get them. So before it is loaded, we check that memory for the buffers of
 * all threads is available, and then create the buffers at once. Without that memory, or without
 * the library, the plain implementation is used.
 *
 * There are three builds of OpenBLAS. A build with OpenMP uses as many threads as a loop of its
 * caller would, so we set one thread around every call. A process may have two OpenMP run times:
 * the one that was loaded with the library, and one whose names are global. Which of them OpenBLAS
 * calls depends on the order in which they were loaded, so we set one thread in both. A build with
 * its own threads is set to one thread once, for the process. A build without threads must not be
 * called by two threads at a time. */
#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/memory.h"
#include "kernel/linear/linear_in.h"

static const char LIBRARY[] = "libopenblas.so.0";
static const size_t BUFFER_BYTES = 128UL << 20;

enum { SERIAL = 0, OWN_THREADS = 1 }; /* results of openblas_get_parallel */
/* maximum number of buffers that are created at once; others are created when they are needed */
enum { MOST_BUFFERS = 64 };

typedef void factorize_f32(const char *triangle, const int *n, float *a, const int *lda, int *info);
typedef void factorize_f64(const char *triangle, const int *n, double *a, const int *lda,
                           int *info);

/* X(name in the library, its type) */
#define FUNCTIONS(X)                                                \
  X(openblas_get_config, __typeof__(openblas_get_config))           \
  X(openblas_get_parallel, __typeof__(openblas_get_parallel))       \
  X(openblas_set_num_threads, __typeof__(openblas_set_num_threads)) \
  X(cblas_dgemm, __typeof__(cblas_dgemm))                           \
  X(cblas_sgemm, __typeof__(cblas_sgemm))                           \
  X(cblas_ssyrk, __typeof__(cblas_ssyrk))                           \
  X(cblas_dtrsm, __typeof__(cblas_dtrsm))                           \
  X(cblas_strsm, __typeof__(cblas_strsm))                           \
  X(cblas_dtrsv, __typeof__(cblas_dtrsv))                           \
  X(cblas_strsv, __typeof__(cblas_strsv))                           \
  X(cblas_dsymv, __typeof__(cblas_dsymv))                           \
  X(dpotrf_, factorize_f64)                                         \
  X(spotrf_, factorize_f32)

static struct {
#define FIELD(name, type) type *name;
  FUNCTIONS(FIELD)
#undef FIELD
} blas;

/* An OpenMP run time that OpenBLAS may call; its functions are for the calling thread. */
typedef struct runtime {
  void (*set_threads)(int n);
  int (*max_threads)(void);
} runtime;

enum { MOST_RUNTIMES = 2 };
static runtime runtimes[MOST_RUNTIMES];
static int n_runtimes;

typedef struct call { /* the number of threads that each run time had before the call */
  int threads[MOST_RUNTIMES];
} call;

static const enum CBLAS_ORDER ROWS = CblasRowMajor;
static const enum CBLAS_UPLO LOWER = CblasLower;
static const enum CBLAS_DIAG ANY = CblasNonUnit;

static pthread_once_t looked = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char version[64];
static int parallel;
static bool loaded;

static bool find_all_functions(void *library) {
  void *found;
#define FIND(name, type)         \
  found = dlsym(library, #name); \
  if (!found) return false;      \
  memcpy(&blas.name, &found, sizeof found);
  FUNCTIONS(FIND)
#undef FIND
  return true;
}

/** Adds the run time whose names are found from a library's handle. */
static void add_openmp_runtime(void *library) {
  void *const set = library ? dlsym(library, "omp_set_num_threads") : NULL;
  void *const most = library ? dlsym(library, "omp_get_max_threads") : NULL;
  if (!set || !most) return;
  runtime found;
  memcpy(&found.set_threads, &set, sizeof set);
  memcpy(&found.max_threads, &most, sizeof most);
  if (n_runtimes && runtimes[0].set_threads == found.set_threads) return;
  runtimes[n_runtimes++] = found;
}

static void find_openmp_runtimes(void *library) {
  void *const global = dlopen(NULL, RTLD_LAZY);
  add_openmp_runtime(global);
  add_openmp_runtime(library);
  if (global) (void)dlclose(global);
}

/* Creates OpenBLAS's buffers for n threads; they are never freed. The two functions are not in its
 * headers, but in the library in all its releases. */
static void create_openblas_buffers(void *library, int n) {
  void *const take_at = dlsym(library, "blas_memory_alloc");
  void *const give_at = dlsym(library, "blas_memory_free");
  void *(*take)(int) = NULL;
  void (*give)(void *) = NULL;
  void *buffers[MOST_BUFFERS];
  if (!take_at || !give_at) return;
  memcpy(&take, &take_at, sizeof take);
  memcpy(&give, &give_at, sizeof give);
  for (int at = 0; at < n; at++) buffers[at] = take(0);
  for (int at = 0; at < n; at++) give(buffers[at]);
}

static void read_library_version(void) {
  const char *config = blas.openblas_get_config(); /* "OpenBLAS 0.3.21 NO_LAPACKE ..." */
  const char *number = strchr(config, ' ');
  const int length = number ? (int)(number - config + 1 + (long)strcspn(number + 1, " ")) : 0;
  (void)snprintf(version, sizeof version, "%.*s", number ? length : 8,
                 number ? config : "OpenBLAS");
}

/* Loads the library. Returns NULL if it can be called, or else a text that says why not. */
static const char *load_library(void) {
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  const int n = processors < 1 ? 1 : processors < MOST_BUFFERS ? (int)processors : MOST_BUFFERS;
  /* Two more buffers for the library's code and data, and one that another thread of ours may
   * allocate meanwhile. */
  if (!laci_memory_is_available((size_t)(n + 3) * BUFFER_BYTES)) return "not enough memory";
  void *library = laci_linear_open_openblas(LIBRARY);
  if (!library) return dlerror();
  if (!find_all_functions(library)) return "a function is missing";
  if (strstr(blas.openblas_get_config(), "USE64BITINT"))
    return "its integers have 64 bits, wanted 32";
  read_library_version();
  parallel = blas.openblas_get_parallel();
  if (parallel == OWN_THREADS) blas.openblas_set_num_threads(1);
  find_openmp_runtimes(library);
  create_openblas_buffers(library, n);
  return NULL;
}

static void load_library_once(void) {
  const char *why = load_library();
  loaded = !why;
  if (why)
    laci_log(LAC_LOG_WARNING, "OpenBLAS: %s; calibration takes several times as long without it",
             why);
}

static call set_one_thread(void) {
  call begun = {{0}};
  if (parallel == SERIAL) pthread_mutex_lock(&lock);
  for (int at = 0; at < n_runtimes; at++) {
    begun.threads[at] = runtimes[at].max_threads();
    if (begun.threads[at] != 1) runtimes[at].set_threads(1);
  }
  return begun;
}

static void restore_threads(call begun) {
  for (int at = 0; at < n_runtimes; at++) {
    if (begun.threads[at] != 1) runtimes[at].set_threads(begun.threads[at]);
  }
  if (parallel == SERIAL) pthread_mutex_unlock(&lock);
}

static const char *backend_name(void) { return version; }

static enum CBLAS_TRANSPOSE transpose_flag(bool transposed) {
  return transposed ? CblasTrans : CblasNoTrans;
}

static void compute_product(const laci_linear_operands *p) {
  const call begun = set_one_thread();
  blas.cblas_dgemm(ROWS, transpose_flag(p->a_transposed), transpose_flag(p->b_transposed), p->m,
                   p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
  restore_threads(begun);
}

static void compute_product_f32(const laci_linear_operands_f32 *p) {
  const call begun = set_one_thread();
  blas.cblas_sgemm(ROWS, transpose_flag(p->a_transposed), transpose_flag(p->b_transposed), p->m,
                   p->n, p->k, p->alpha, p->a, p->lda, p->b, p->ldb, p->beta, p->c, p->ldc);
  restore_threads(begun);
}

/* LAPACK's columns are our rows: our lower triangle is LAPACK's upper one. */
static int cholesky(double *a, int n, int lda) {
  int info = 0;
  const call begun = set_one_thread();
  blas.dpotrf_("U", &n, a, &lda, &info);
  restore_threads(begun);
  return info;
}

static int cholesky_f32(float *a, int n, int lda) {
  int info = 0;
  const call begun = set_one_thread();
  blas.spotrf_("U", &n, a, &lda, &info);
  restore_threads(begun);
  return info;
}

static void solve_triangular(const laci_linear_solve_operands *s, enum CBLAS_TRANSPOSE transpose) {
  const call begun = set_one_thread();
  if (s->rows == 1) {
    const enum CBLAS_TRANSPOSE other = transpose == CblasTrans ? CblasNoTrans : CblasTrans;
    blas.cblas_dtrsv(ROWS, LOWER, other, ANY, s->n, s->l, s->ldl, s->b, 1);
  } else {
    blas.cblas_dtrsm(ROWS, CblasRight, LOWER, transpose, ANY, s->rows, s->n, 1, s->l, s->ldl, s->b,
                     s->ldb);
  }
  restore_threads(begun);
}

static void solve_triangular_f32(const laci_linear_solve_operands_f32 *s,
                                 enum CBLAS_TRANSPOSE transpose) {
  const call begun = set_one_thread();
  if (s->rows == 1) {
    const enum CBLAS_TRANSPOSE other = transpose == CblasTrans ? CblasNoTrans : CblasTrans;
    blas.cblas_strsv(ROWS, LOWER, other, ANY, s->n, s->l, s->ldl, s->b, 1);
  } else {
    blas.cblas_strsm(ROWS, CblasRight, LOWER, transpose, ANY, s->rows, s->n, 1, s->l, s->ldl, s->b,
                     s->ldb);
  }
  restore_threads(begun);
}

static void solve_transposed(const laci_linear_solve_operands *s) {
  solve_triangular(s, CblasTrans);
}
static void solve(const laci_linear_solve_operands *s) { solve_triangular(s, CblasNoTrans); }
static void solve_transposed_f32(const laci_linear_solve_operands_f32 *s) {
  solve_triangular_f32(s, CblasTrans);
}
static void solve_f32(const laci_linear_solve_operands_f32 *s) {
  solve_triangular_f32(s, CblasNoTrans);
}

static void symmetric_multiply(const double *a, int n, const double *x, double *y) {
  const call begun = set_one_thread();
  blas.cblas_dsymv(ROWS, LOWER, n, 1, a, n, x, 1, 0, y, 1);
  restore_threads(begun);
}

const laci_linear_backend *laci_linear_blas_backend(void) {
  static const laci_linear_backend backend = {
      .name = backend_name,
      .product = compute_product,
      .product_f32 = compute_product_f32,
      .cholesky = cholesky,
      .cholesky_f32 = cholesky_f32,
      .solve_transposed = solve_transposed,
      .solve = solve,
      .solve_transposed_f32 = solve_transposed_f32,
      .solve_f32 = solve_f32,
      .symmetric_times = symmetric_multiply,
  };
  (void)pthread_once(&looked, load_library_once);
  return loaded ? &backend : &laci_linear_plain;
}
