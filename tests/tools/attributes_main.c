/* SPDX-License-Identifier: Apache-2.0
 * Prints the table of attributes, a line an attribute, "Conv group int", and a line an operator
 * that has none, "Relu" or "com.microsoft.Gelu": what tests/interop holds to onnx.defs and to ONNX
 * Runtime's own list. */
#include <stdio.h>

#include "graph/op.h"

static const char *const kinds[] = {
    [LACI_ATTR_INT] = "INT",       [LACI_ATTR_FLOAT] = "FLOAT",   [LACI_ATTR_TEXT] = "STRING",
    [LACI_ATTR_INTS] = "INTS",     [LACI_ATTR_FLOATS] = "FLOATS", [LACI_ATTR_TEXTS] = "STRINGS",
    [LACI_ATTR_TENSOR] = "TENSOR", [LACI_ATTR_OTHER] = "OTHER"};

int main(void) {
  int n;
  const laci_op *const *ops = laci_op_all(&n);
  for (int at = 0; at < n; at++) {
    const laci_attr_type *type = ops[at]->attributes;
    const char *domain = ops[at]->domain ? ops[at]->domain : "", *dot = *domain ? "." : "";
    if (!type) printf("%s%s%s\n", domain, dot, ops[at]->name);
    for (; type && type->name; type++)
      printf("%s%s%s %s %s\n", domain, dot, ops[at]->name, type->name, kinds[type->kind]);
  }
  return 0;
}
