/* SPDX-License-Identifier: Apache-2.0
 * Reads the network that an earlier command exported, and checks the sparse network before it is
 * written. */
#include "export.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "base/plural.h"
#include "table.h"

bool export_is_from_existing_model(const arguments *args) {
  return args->verb == VERB_train && args->sparse && args->export_dir;
}

static lac_status join_export_path(const char *dir, const char *inside, char path[PATH_MAX],
                                   lac_error *err) {
  const char *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
  int n = snprintf(path, PATH_MAX, "%s%s%smodel.onnx", dir, slash, inside);
  if (n >= 0 && n < PATH_MAX) return LAC_OK;
  return laci_fail(err, LAC_IO, "--export-dir %s: the name is too long", dir);
}

lac_status export_target_path(const arguments *args, char path[PATH_MAX], lac_error *err) {
  return join_export_path(args->export_dir, export_is_from_existing_model(args) ? "sparse/" : "",
                          path, err);
}

lac_status export_source_path(const arguments *args, char path[PATH_MAX], lac_error *err) {
  lac_status st = join_export_path(args->export_dir, "", path, err);
  if (st || access(path, F_OK) == 0) return st;
  return laci_fail(err, LAC_NOT_FOUND,
                   "%s: it is not there; train without --sparse writes it, and --sparse then "
                   "goes on from it",
                   path);
}

static bool has_same_shape(const lac_tensor *a, const lac_tensor *b) {
  return a->rank == b->rank && a->dtype == b->dtype &&
         memcmp(a->shape, b->shape, (size_t)a->rank * sizeof a->shape[0]) == 0;
}

static lac_status check_same_tensors(const char *path, const char *arch, const lac_model *fresh,
                                     const lac_model *found, lac_error *err) {
  int n = lac_model_tensor_count(fresh), n_found = lac_model_tensor_count(found);
  char text[2][TABLE_SHAPE_BYTES];
  lac_tensor wanted = LAC_SIZED(lac_tensor), tensor = LAC_SIZED(lac_tensor);
  for (int k = 0; k < n; k++) {
    lac_status st = lac_model_tensor(fresh, k, &wanted, err);
    if (st) return st;
    if (lac_model_find_tensor(found, wanted.name, &tensor, NULL)) {
      return laci_fail(err, LAC_BAD_SHAPE, "%s: it is no %s for these data: it has no %s", path,
                       arch, wanted.name);
    }
    if (has_same_shape(&wanted, &tensor)) continue;
    return laci_fail(
        err, LAC_BAD_SHAPE, "%s: it is no %s for these data: its %s is %s %s, wanted %s %s", path,
        arch, wanted.name, lac_dtype_name(tensor.dtype),
        table_shape_text(tensor.rank, tensor.shape, text[0]), lac_dtype_name(wanted.dtype),
        table_shape_text(wanted.rank, wanted.shape, text[1]));
  }
  if (n == n_found) return LAC_OK;
  return laci_fail(err, LAC_BAD_SHAPE, "%s: it is no %s: it has %d tensors, wanted %d", path, arch,
                   n_found, n);
}

lac_status export_load_matching_model(const char *path, const char *arch, const lac_model *fresh,
                                      lac_model **model, lac_error *err) {
  *model = NULL;
  lac_status st = lac_model_load(path, NULL, model, err);
  return st ? st : check_same_tensors(path, arch, fresh, *model, err);
}

static bool is_tensor_masked(const lac_mask *mask, const char *name) {
  for (int k = 0; k < lac_mask_count(mask); k++) {
    if (strcmp(lac_mask_name(mask, k), name) == 0) return true;
  }
  return false;
}

lac_status export_check_masks(const lac_model *model, const lac_mask *mask,
                              const lac_options *options, lac_report **report, lac_error *err) {
  lac_status st = lac_check(model, NULL, options, report, err);
  const char *first = NULL;
  int n_dense = 0, n_eligible = 0;
  for (int k = 0; !st && k < (*report)->n_layers; k++) {
    const lac_layer *layer = &(*report)->layers[k];
    n_eligible += layer->eligible;
    if (!layer->eligible || layer->holds_pattern) continue;
    if (is_tensor_masked(mask, layer->weight)) {
      st = laci_fail(err, LAC_BAD_VALUE, "%s: it was pruned, but does not hold %s after training",
                     layer->name, (*report)->pattern);
    }
    if (n_dense++ == 0) first = layer->name;
  }
  if (!st && n_dense) {
    laci_log(LAC_LOG_WARNING,
             "%d of %d layer%s that should hold %s do not, the first is %s: others held it from "
             "the start, and these were trained as they were",
             n_dense, n_eligible, laci_plural(n_eligible), (*report)->pattern, first);
  }
  return st;
}
