/* SPDX-License-Identifier: Apache-2.0
 * A table from names to numbers. Names are borrowed; they must outlive the table. */
#ifndef LACI_GRAPH_NAMES_H
#define LACI_GRAPH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct laci_name_slot {
  const char *name; /* NULL: empty */
  uint64_t hash;
  int id;
} laci_name_slot;

/** Zero-initialised is empty. */
typedef struct laci_name_table {
  laci_name_slot *slots;
  size_t n, n_slots; /* n_slots is a power of two */
} laci_name_table;

/** -1: not there. */
int laci_name_find(const laci_name_table *table, const char *name);
/** The name must not be there yet. False when there is no memory. */
bool laci_name_add(laci_name_table *table, const char *name, int id);
void laci_name_table_clear(laci_name_table *table);

#endif
