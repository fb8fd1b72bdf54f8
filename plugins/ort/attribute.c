/* SPDX-License-Identifier: Apache-2.0
 * Reads attributes of nodes. */
#include "attribute.h"

#include <stdlib.h>
#include <string.h>

#include "options.h"

lac_status laci_ort_attribute_read(const laci_ort *ort, const ort_attribute *attribute, int type,
                                   void **elements, size_t *n_bytes, lac_error *err) {
  size_t n = 0, again = 0;
  *elements = NULL;
  *n_bytes = 0;
  /* With a buffer of 0 bytes the call fails, and sets n to the size that it needs. */
  ort_status *failed = ort->read_attribute(attribute, type, &again, 0, &n);
  if (failed && !n) return laci_ort_take_failure(ort, failed, "an attribute", err);
  if (failed) ort->release_status(failed);
  if (n > (size_t)INT32_MAX)
    return laci_ort_fail(err, LAC_UNSUPPORTED, "an attribute has %zu bytes", n);
  char *bytes = calloc(n + 1, 1);
  if (!bytes) return laci_ort_fail_memory(err);
  lac_status st = LAC_OK;
  if (n)
    st = laci_ort_take_failure(ort, ort->read_attribute(attribute, type, bytes, n, &again),
                               "an attribute", err);
  if (st) {
    free(bytes);
    return st;
  }
  *elements = bytes;
  *n_bytes = n;
  return LAC_OK;
}

/** Is the attribute a string with the name `wanted`? */
static lac_status is_string_named(const laci_ort *ort, const ort_attribute *attribute,
                                  const char *wanted, bool *is, lac_error *err) {
  const char *name = NULL;
  int type = 0;
  lac_status st = laci_ort_take_failure(ort, ort->attribute_name(attribute, &name), wanted, err);
  if (!st) st = laci_ort_take_failure(ort, ort->attribute_type(attribute, &type), wanted, err);
  *is = !st && name && type == LAC_ORT_STRING && strcmp(name, wanted) == 0;
  return st;
}

lac_status laci_ort_read_text_attribute(laci_ort_graph *graph, const laci_ort_node *node,
                                        const char *name, char **text, size_t *n_bytes,
                                        lac_error *err) {
  const laci_ort *ort = graph->ort;
  size_t n = 0;
  *text = NULL;
  lac_status st = laci_ort_take_failure(ort, ort->n_attributes(node->node, &n), node->name, err);
  if (st || !n) return st;
  const ort_attribute **all = laci_ort_allocate(&graph->arena, n, sizeof(void *));
  if (!all) return laci_ort_fail_memory(err);
  st = laci_ort_take_failure(ort, ort->attributes(node->node, all, n), node->name, err);
  for (size_t k = 0; !st && !*text && k < n; k++) {
    bool is = false;
    void *bytes = NULL;
    st = is_string_named(ort, all[k], name, &is, err);
    if (!st && is) st = laci_ort_attribute_read(ort, all[k], LAC_ORT_STRING, &bytes, n_bytes, err);
    *text = bytes;
  }
  return st;
}

lac_status laci_ort_is_packed_node(laci_ort_graph *graph, const laci_ort_node *node, bool *is,
                                   lac_error *err) {
  char *source = NULL;
  size_t n = 0;
  *is = false;
  if (strcmp(node->op, "EPContext") != 0) return LAC_OK;
  lac_status st = laci_ort_read_text_attribute(graph, node, "source", &source, &n, err);
  *is = source && strcmp(source, LAC_ORT_PROVIDER) == 0;
  free(source);
  return st;
}
