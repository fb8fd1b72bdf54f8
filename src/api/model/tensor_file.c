/* SPDX-License-Identifier: Apache-2.0
 * lacuna/tensor_file.h: files of named tensors, opened by data/torch_file.h and by
 * safetensors/safetensors.h, and measured by sparse/mask.h. */
#include "lacuna/tensor_file.h"

#include <inttypes.h>
#include <string.h>

#include "api/model/model_in.h"
#include "api/model/structs.h"
#include "api/model/tensor_file_in.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/torch_file.h"
#include "report/json.h"
#include "safetensors/safetensors.h"
#include "sparse/mask.h"

struct lac_tensor_file {
  char *path;
  laci_safetensors *tensors;
};

lac_status laci_tensor_file_detect_format(const char *path, laci_tensor_file_signs *signs,
                                          lac_error *err) {
  static const char *const names[] = {".pt", ".pth", ".bin", ".tar", ".ckpt"};
  uint8_t head[16] = {0};
  laci_reader *reader;
  *signs = (laci_tensor_file_signs){0};
  lac_status st = laci_reader_open(path, &reader, err);
  if (st) return st;
  const size_t size = laci_reader_size(reader), n = size < sizeof head ? size : sizeof head;
  if (n) st = laci_reader_copy_range(reader, 0, n, head, err);
  laci_reader_close(reader);
  if (st) return st;
  signs->safetensors =
      laci_ends_with(path, ".safetensors") || laci_safetensors_has_signature(head, n);
  signs->torch_head = laci_torch_file_begins(head, n);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    signs->torch_name = signs->torch_name || laci_ends_with(path, names[k]);
  return LAC_OK;
}

static bool is_torch(const laci_tensor_file_signs *signs) {
  return signs->torch_name && signs->torch_head;
}

bool lac_tensor_file_is(const char *path) {
  laci_tensor_file_signs signs;
  return path && !laci_tensor_file_detect_format(path, &signs, NULL) &&
         (signs.safetensors || is_torch(&signs));
}

static lac_status open_tensors(lac_tensor_file *file, lac_error *err) {
  laci_tensor_file_signs signs;
  lac_status st = laci_tensor_file_detect_format(file->path, &signs, err);
  if (st) return st;
  if (is_torch(&signs)) return laci_torch_file_open(file->path, &file->tensors, err);
  if (signs.safetensors) return laci_safetensors_open(file->path, &file->tensors, err);
  return laci_fail(err, LAC_BAD_FILE,
                   "%s: no file of tensors: wanted .safetensors, or .pt, .pth or .bin of PyTorch",
                   file->path);
}

lac_status lac_tensor_file_open(const char *path, lac_context *context, lac_tensor_file **file,
                                lac_error *err) {
  if (file) *file = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"path", path}, {"file", file});
  if (st) return st;
  lac_tensor_file *made = laci_alloc(1, sizeof *made);
  if (made) made->path = laci_alloc(strlen(path) + 1, 1);
  if (!made || !made->path) {
    lac_tensor_file_close(made);
    return laci_fail_memory(err, path);
  }
  memcpy(made->path, path, strlen(path));
  lac_context *before = laci_call_enter_context(context);
  st = open_tensors(made, err);
  laci_call_leave_context(before);
  if (st) lac_tensor_file_close(made);
  else *file = made;
  return st;
}

void lac_tensor_file_close(lac_tensor_file *file) {
  if (!file) return;
  laci_safetensors_close(file->tensors);
  laci_free(file->path);
  laci_free(file);
}

int lac_tensor_file_count(const lac_tensor_file *file) {
  int n = 0;
  if (file) (void)laci_safetensors_list_tensors(file->tensors, &n);
  return n;
}

/* ---- A tensor ---- */

static lac_status find_tensor(const lac_tensor_file *file, int at, const laci_safetensor **found,
                              lac_error *err) {
  int n;
  lac_status st = LACI_CHECK_GIVEN(err, {"file", file});
  if (st) return st;
  const laci_safetensor *list = laci_safetensors_list_tensors(file->tensors, &n);
  if (at < 0 || at >= n) {
    return laci_fail(err, LAC_NOT_FOUND, "%s: tensor %d of %d, counted from 0", file->path, at, n);
  }
  *found = &list[at];
  return LAC_OK;
}

static lac_file_tensor describe_tensor(const laci_safetensor *of) {
  lac_file_tensor tensor = LAC_SIZED(lac_file_tensor);
  tensor.name = of->name, tensor.type = of->type, tensor.is_float = of->is_float;
  tensor.rank = of->rank, tensor.n_elements = of->count;
  tensor.n_zeros = -1, tensor.pattern_axis = -1;
  memcpy(tensor.shape, of->shape, sizeof tensor.shape);
  return tensor;
}

lac_status lac_tensor_file_get(const lac_tensor_file *file, int at, lac_file_tensor *tensor,
                               lac_error *err) {
  const laci_safetensor *found = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"tensor", tensor});
  if (!st) st = laci_check_struct_file_tensor(tensor, err);
  if (!st) st = find_tensor(file, at, &found, err);
  if (st) return st;
  const lac_file_tensor made = describe_tensor(found);
  laci_give_file_tensor(&made, tensor);
  return LAC_OK;
}

lac_status lac_tensor_file_read(const lac_tensor_file *file, int at, float *to, size_t count,
                                lac_error *err) {
  const laci_safetensor *found = NULL;
  lac_status st = find_tensor(file, at, &found, err);
  if (!st && count > 0) st = LACI_CHECK_GIVEN(err, {"to", to});
  if (st) return st;
  if (!found->is_float) {
    return laci_fail(err, LAC_UNSUPPORTED, "%s: %s is of type %s, wanted F32, F16, BF16 or F64",
                     file->path, found->name, found->type);
  }
  if ((uint64_t)found->count != count) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %s has %" PRId64 " elements, not %zu", file->path,
                     found->name, found->count, count);
  }
  return laci_safetensors_read_floats(file->tensors, found, to, err);
}

/* ---- What it holds ---- */

/** The tensor's elements as a weight whose input channels are along an axis. */
static laci_weight_view make_view_along_axis(const lac_file_tensor *tensor, const float *values,
                                             int axis) {
  laci_weight_view view = {.name = tensor->name,
                           .dtype = LAC_DTYPE_F32,
                           .bytes = (const uint8_t *)values,
                           .outer = axis == 1 ? tensor->shape[0] : 1,
                           .columns = tensor->shape[axis]};
  view.inner = tensor->n_elements / (view.outer * view.columns);
  view.run = view.columns;
  return view;
}

static lac_status measure_tensor(lac_file_tensor *tensor, const float *values, laci_pattern pattern,
                                 lac_error *err) {
  const uint8_t *bytes = (const uint8_t *)values;
  if (laci_find_first_not_finite(LAC_DTYPE_F32, bytes, tensor->n_elements) >= 0) return LAC_OK;
  tensor->n_zeros = 0;
  for (int64_t at = 0; at < tensor->n_elements; at++) tensor->n_zeros += values[at] == 0;
  if (tensor->rank < 2 || tensor->n_zeros == tensor->n_elements) return LAC_OK;
  for (int axis = 1; axis >= 0 && tensor->pattern_axis < 0; axis--) {
    if (tensor->shape[axis] % pattern.m != 0) continue;
    laci_mask_stats stats;
    const laci_weight_view view = make_view_along_axis(tensor, values, axis);
    lac_status st = laci_mask_measure(&view, pattern, NULL, &stats, err);
    if (st) return st;
    if (stats.holds_pattern) tensor->pattern_axis = axis;
  }
  return LAC_OK;
}

lac_status lac_tensor_file_measure(const lac_tensor_file *file, int at, int n, int m,
                                   lac_file_tensor *tensor, lac_error *err) {
  const laci_safetensor *found = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"tensor", tensor});
  if (!st) st = laci_check_struct_file_tensor(tensor, err);
  if (!st) st = find_tensor(file, at, &found, err);
  if (!st && !(n >= 1 && n < m && m <= LACI_MOST_PATTERN_M)) {
    st = laci_fail(err, LAC_BAD_ARGUMENT, "pattern %d:%d: wanted 1 <= N < M <= %d", n, m,
                   LACI_MOST_PATTERN_M);
  }
  if (st) return st;
  lac_file_tensor made = describe_tensor(found);
  if (made.is_float && made.n_elements > 0) {
    float *values = laci_alloc((size_t)made.n_elements, sizeof *values);
    st = values ? laci_safetensors_read_floats(file->tensors, found, values, err)
                : laci_fail_memory(err, made.name);
    if (!st) st = measure_tensor(&made, values, (laci_pattern){n, m}, err);
    laci_free(values);
  }
  if (!st) laci_give_file_tensor(&made, tensor);
  return st;
}

lac_status lac_tensor_file_json(const lac_tensor_file *file, int n, int m, char **text,
                                lac_error *err) {
  if (text) *text = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"file", file}, {"text", text});
  if (st) return st;
  const int count = lac_tensor_file_count(file);
  lac_file_tensor *tensors = laci_alloc((size_t)count + 1, sizeof *tensors);
  if (!tensors) st = laci_fail_memory(err, file->path);
  for (int at = 0; at < count && !st; at++) {
    tensors[at] = (lac_file_tensor)LAC_SIZED(lac_file_tensor);
    st = lac_tensor_file_measure(file, at, n, m, &tensors[at], err);
  }
  const laci_tensor_list list = {file->path, n, m, tensors, count};
  if (!st) st = laci_tensor_file_json(&list, text, err);
  laci_free(tensors);
  return st;
}
