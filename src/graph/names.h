/* SPDX-License-Identifier: Apache-2.0
 * A hash table from names to numbers. It does not copy the names: they must outlive the table. */
#ifndef LACI_GRAPH_NAMES_H
#define LACI_GRAPH_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct laci_name_slot {
  const char *name; /* the name; NULL: the slot is empty */
  uint64_t hash;
  int id;
} laci_name_slot;

/** A hash table from names to numbers. Zero-initialized, it is empty. */
typedef struct laci_name_table {
  laci_name_slot *slots;
  size_t n, n_slots; /* n_slots is a power of two */
} laci_name_table;

/** Returns the number of a name; -1: the table does not have it. */
int laci_name_find(const laci_name_table *table, const char *name);
/** Adds a name, which must not be in the table yet. Returns false when there is no memory. */
bool laci_name_add(laci_name_table *table, const char *name, int id);
void laci_name_table_clear(laci_name_table *table);

#endif
