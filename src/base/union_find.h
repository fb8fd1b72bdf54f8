/* SPDX-License-Identifier: Apache-2.0
 * Union-find: a forest whose trees are sets. Each element has a parent; a root is its own. */
#ifndef LACI_BASE_UNION_FIND_H
#define LACI_BASE_UNION_FIND_H

#include <stdint.h>

/** Returns the root of the element's tree, and halves the path to it. */
static inline int64_t laci_find_root(int64_t *parent, int64_t element) {
  while (parent[element] != element) element = parent[element] = parent[parent[element]];
  return element;
}

/** Unites the trees of two elements; the lower one of the two roots becomes the root. */
static inline void laci_unite(int64_t *parent, int64_t one, int64_t other) {
  const int64_t a = laci_find_root(parent, one), b = laci_find_root(parent, other);
  if (a < b) parent[b] = a;
  else parent[a] = b;
}

#endif
