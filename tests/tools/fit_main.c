/* SPDX-License-Identifier: Apache-2.0
 * What the room calibrate makes of one layer, so that NumPy can be asked for its opinion.
 *
 *     fit_main FOLDER SCORE CHANNELS N M POSITIONS DAMPING ENERGY
 *
 * Reads weight.npy [rows, columns], h.npy [columns, columns] and, where it is there, k.npy from
 * FOLDER, all float64; writes mask.npy (u8), left.npy (what the score leaves), solved.npy
 * and saliency.npy there, and prints the errors of both weights. DAMPING 0: the usual one. ENERGY:
 * laci_fit_compute_error. See tests/interop/test_scores.py. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "calibrate/fit.h"
#include "cpu/pool.h"
#include "data/npy.h"

enum { PATH_BYTES = 4096 };

static void path_of(char path[PATH_BYTES], const char *folder, const char *name) {
  (void)snprintf(path, PATH_BYTES, "%s/%s.npy", folder, name);
}

static lac_status read_matrix(const char *folder, const char *name, laci_npy *array,
                              lac_error *err) {
  char path[PATH_BYTES];
  path_of(path, folder, name);
  lac_status st = laci_npy_read(path, array, err);
  if (st) return st;
  if (array->type.dtype == LAC_DTYPE_F64 && array->type.shape.rank == 2) return LAC_OK;
  return laci_fail(err, LAC_BAD_FILE, "%s: wanted two axes of float64", path);
}

static lac_status write_like(const char *folder, const char *name, const laci_npy *like,
                             const void *bytes, bool is_mask, lac_error *err) {
  char path[PATH_BYTES];
  laci_type type = like->type;
  path_of(path, folder, name);
  if (is_mask) type.dtype = LAC_DTYPE_U8;
  return laci_npy_write(path, &type, bytes, true, err);
}

typedef struct outputs {
  uint8_t *mask;
  double *weight, *solved, *saliency;
} outputs;

static lac_status run_fit(const laci_fit *fit, const laci_score *score, double energy, outputs *out,
                          lac_error *err) {
  laci_pool *pool = NULL;
  double before = 0, after = 0;
  lac_status st = laci_pool_create(0, &pool, err);
  if (!st) st = laci_fit_choose_mask(fit, score, pool, out->mask, out->weight, err);
  if (!st) st = laci_fit_solve_weights(fit, out->mask, pool, out->solved, err);
  if (!st) st = laci_fit_compute_saliency(fit, score, pool, out->saliency, err);
  if (!st) st = laci_fit_compute_error(fit, out->weight, energy, pool, &before, err);
  if (!st) st = laci_fit_compute_error(fit, out->solved, energy, pool, &after, err);
  if (!st) (void)printf("%.17g %.17g\n", before, after);
  laci_pool_destroy(pool);
  return st;
}

static lac_status run(char **args, lac_error *err) {
  const char *folder = args[0];
  const laci_score *score = laci_score_find(args[1]);
  laci_npy weight = {0}, h = {0}, k = {0};
  outputs out = {0};
  if (!score) return laci_fail(err, LAC_BAD_ARGUMENT, "%s: no such score", args[1]);
  lac_status st = read_matrix(folder, "weight", &weight, err);
  if (!st) st = read_matrix(folder, "h", &h, err);
  if (!st) st = read_matrix(folder, "k", &k, err);
  if (st == LAC_NOT_FOUND) st = LAC_OK;
  if (st) goto done;
  laci_fit fit = {.name = folder,
                  .rows = (int)weight.type.shape.dims[0],
                  .columns = (int)weight.type.shape.dims[1],
                  .channels = (int)strtol(args[2], NULL, 10)};
  fit.pattern.n = (int)strtol(args[3], NULL, 10);
  fit.pattern.m = (int)strtol(args[4], NULL, 10);
  fit.positions = strtod(args[5], NULL);
  fit.damping = strtod(args[6], NULL);
  fit.weight = (const double *)(const void *)weight.bytes;
  fit.h = (const double *)(const void *)h.bytes;
  fit.k = (const double *)(const void *)k.bytes;
  const size_t count = (size_t)fit.rows * (size_t)fit.columns;
  out.mask = laci_alloc(count, 1);
  out.weight = laci_alloc(count, sizeof *out.weight);
  out.solved = laci_alloc(count, sizeof *out.solved);
  out.saliency = laci_alloc(count, sizeof *out.saliency);
  if (!out.mask || !out.weight || !out.solved || !out.saliency) st = laci_fail_memory(err, folder);
  if (!st) st = run_fit(&fit, score, strtod(args[7], NULL), &out, err);
  if (!st) st = write_like(folder, "mask", &weight, out.mask, true, err);
  if (!st) st = write_like(folder, "left", &weight, out.weight, false, err);
  if (!st) st = write_like(folder, "solved", &weight, out.solved, false, err);
  if (!st) st = write_like(folder, "saliency", &weight, out.saliency, false, err);
done:
  laci_free(out.mask);
  laci_free(out.weight);
  laci_free(out.solved);
  laci_free(out.saliency);
  laci_npy_clear(&weight);
  laci_npy_clear(&h);
  laci_npy_clear(&k);
  return st;
}

int main(int argc, char **argv) {
  lac_error err = {0};
  if (argc != 9) {
    (void)fprintf(stderr, "usage: fit_main FOLDER SCORE CHANNELS N M POSITIONS DAMPING ENERGY\n");
    return 2;
  }
  const lac_status st = run(argv + 1, &err);
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  return st ? 1 : 0;
}
