/* SPDX-License-Identifier: Apache-2.0
 * A hash table from names to numbers: open addressing, at most half full, never shrinks. User:
 * graph.c (values by name, names of nodes). */
#include "graph/names.h"

#include <string.h>

#include "base/memory.h"

static uint64_t hash_name(const char *name) {
  /* FNV-1a, then mixed, because names differ mostly in their last characters */
  uint64_t hash = 0xcbf29ce484222325U;
  for (; *name; name++) hash = (hash ^ (uint8_t)*name) * 0x100000001b3U;
  hash ^= hash >> 32;
  return hash * 0x9e3779b97f4a7c15U;
}

static size_t find_slot_of_name(const laci_name_table *table, const char *name, uint64_t hash) {
  size_t mask = table->n_slots - 1;
  for (size_t at = (hash >> 20) & mask;; at = (at + 1) & mask) {
    const laci_name_slot *slot = &table->slots[at];
    if (!slot->name || (slot->hash == hash && strcmp(slot->name, name) == 0)) return at;
  }
}

int laci_name_find(const laci_name_table *table, const char *name) {
  if (!table->n_slots) return -1;
  const laci_name_slot *slot = &table->slots[find_slot_of_name(table, name, hash_name(name))];
  return slot->name ? slot->id : -1;
}

static bool reserve_slot(laci_name_table *table) {
  if (table->n * 2 < table->n_slots) return true;
  laci_name_table wider = {.n = table->n, .n_slots = table->n_slots ? table->n_slots * 2 : 64};
  wider.slots = laci_alloc(wider.n_slots, sizeof *wider.slots);
  if (!wider.slots) return false;
  for (size_t at = 0; at < table->n_slots; at++) {
    const laci_name_slot *slot = &table->slots[at];
    if (slot->name) wider.slots[find_slot_of_name(&wider, slot->name, slot->hash)] = *slot;
  }
  laci_free(table->slots);
  *table = wider;
  return true;
}

bool laci_name_add(laci_name_table *table, const char *name, int id) {
  if (!reserve_slot(table)) return false;
  uint64_t hash = hash_name(name);
  table->slots[find_slot_of_name(table, name, hash)] =
      (laci_name_slot){.name = name, .hash = hash, .id = id};
  table->n++;
  return true;
}

void laci_name_table_clear(laci_name_table *table) {
  laci_free(table->slots);
  *table = (laci_name_table){0};
}
