/* SPDX-License-Identifier: Apache-2.0
 * The table of operators, made from ops/ops.def, and finding one by name.
 * A binary search over an index that is sorted by (name, domain) once; next: ops/ops.def, and
 * ops/microsoft/ops.def for ONNX Runtime's own, ops/internal/ops.def for those that only gradients
 * use. */
#include "graph/op.h"

#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "graph/ops.h"
#include "tensor/buf.h"
#include "tensor/narrow.h"

static const laci_op *const all_ops[] = {
#define LAC_OP(name) &laci_op_##name,
#include "graph/ops/ops.def"
#include "graph/ops/microsoft/ops.def"
#include "graph/ops/internal/ops.def" /* last: laci_op_all leaves them out */
#undef LAC_OP
};

#define LAC_OP(name) +1
enum {
  N_OPS = sizeof all_ops / sizeof all_ops[0],
  N_INTERNAL = 0
#include "graph/ops/internal/ops.def"
};
#undef LAC_OP

static const laci_op *by_name[N_OPS];
static once_flag sort_once = ONCE_FLAG_INIT;

static const char *normalize_domain(const char *domain) {
  return domain && strcmp(domain, "ai.onnx") != 0 ? domain : "";
}

static int compare_op_to_name(const laci_op *op, const char *name, const char *domain) {
  int order = strcmp(op->name, name);
  return order ? order : strcmp(normalize_domain(op->domain), normalize_domain(domain));
}

static int compare_ops(const void *a, const void *b) {
  const laci_op *const *left = a, *const *right = b;
  return compare_op_to_name(*left, (*right)->name, (*right)->domain);
}

static void sort_ops(void) {
  memcpy(by_name, all_ops, sizeof by_name);
  qsort(by_name, N_OPS, sizeof by_name[0], compare_ops);
}

/* Is it an operator of the standard that ONNX Runtime writes under its own domain? It does so for
 * types that the operator does not have in the file's opset; the operator is the same. */
static bool is_standard_op_of_microsoft(const char *name, const char *domain) {
  return domain && strcmp(domain, "com.microsoft") == 0 &&
         (strcmp(name, "QuantizeLinear") == 0 || strcmp(name, "DequantizeLinear") == 0);
}

const laci_op *laci_op_find(const char *name, const char *domain) {
  call_once(&sort_once, sort_ops);
  if (is_standard_op_of_microsoft(name, domain)) domain = NULL;
  size_t low = 0, high = N_OPS;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    int order = compare_op_to_name(by_name[middle], name, domain);
    if (order == 0) return by_name[middle];
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

bool laci_op_differs_between_versions(const char *type, int version, int other) {
  static const struct {
    const char *type;
    int version;
  } changes[] = {
#define LAC_CHANGE(type, version) {#type, version},
#include "graph/op_changes.def"
#undef LAC_CHANGE
  };
  for (size_t at = 0; at < sizeof changes / sizeof *changes; at++) {
    const int change = changes[at].version;
    if ((version < change) != (other < change) && strcmp(changes[at].type, type) == 0) return true;
  }
  return false;
}

const laci_op *const *laci_op_all(int *n) {
  *n = N_OPS - N_INTERNAL;
  return all_ops;
}

static void round_outputs_in_range(int64_t begin, int64_t end, void *context) {
  const laci_buf *out = context;
  for (int64_t k = begin; k < end; k++) out->f[k] = laci_float_round_finite(out->dtype, out->f[k]);
}

/* Does the node say that its outputs are not rounded? Graphs that this library makes can. */
static bool has_no_rounding(const laci_node *node) {
  return strcmp(laci_node_text(node, "round_mode", ""), LACI_ROUND_MODE_NONE) == 0;
}

void laci_eval_round_outputs_to_types(const laci_eval *eval, bool narrow_alone) {
  if (has_no_rounding(eval->node)) return;
  for (int at = 0; at < eval->n_out; at++) {
    laci_buf *out = eval->out[at];
    if (!out || !out->f || out->dtype == LAC_DTYPE_F64) continue;
    if (!narrow_alone || laci_dtype_is_narrow(out->dtype))
      laci_eval_parallel(eval, out->count, round_outputs_in_range, out);
  }
}

bool laci_op_is_elementwise(const laci_op *op) {
  static const laci_op *const others[] = {
      &laci_op_relu, &laci_op_clip,   &laci_op_floor,    &laci_op_ceil,    &laci_op_round,
      &laci_op_sign, &laci_op_shrink, &laci_op_identity, &laci_op_add,     &laci_op_sub,
      &laci_op_mul,  &laci_op_div,    &laci_op_pow,      &laci_op_min,     &laci_op_max,
      &laci_op_sum,  &laci_op_mean,   &laci_op_prelu,    &laci_op_ms_gelu, &laci_op_ms_quick_gelu,
  };
  for (size_t at = 0; at < sizeof others / sizeof *others; at++) {
    if (op == others[at]) return true;
  }
  return op->slope && !op->domain;
}
