/* SPDX-License-Identifier: Apache-2.0
 * Reads .npz files, zip archives whose members are .npy files. Each member's header is read first,
 * and nothing is allocated for a member whose shape does not have the size that the archive
 * claims. */
#include "data/npz.h"

#include <stdio.h>
#include <string.h>

#include "base/budget.h"
#include "base/ending.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/reader.h"
#include "data/npy.h"
#include "data/rows_in.h"
#include "data/zip.h"

static const char ending[] = ".npy";
enum { ENDING_BYTES = sizeof ending - 1 };
/* Limit of the bytes that an archive's deflated arrays take in memory, if these are counted in a
 * budget. Larger ones are decompressed in parts, as rows are read. */
static const uint64_t most_whole_bytes = (uint64_t)128 << 20;

struct laci_npz {
  laci_arena arena;
  const char *name;
  laci_reader *reader;
  laci_zip zip;
  laci_zip_member *members; /* [n] members of the zip archive */
  laci_reader **parts;  /* [n] readers of members that are decompressed in parts; NULL: others */
  uint64_t whole_bytes; /* number of bytes of the members that were decompressed as a whole */
  const char **names;   /* [n] names of the arrays: those of the members without ".npy" */
  size_t n;
};

static lac_status list_array_names(laci_npz *npz, lac_error *err) {
  npz->names = laci_alloc(npz->n, sizeof *npz->names);
  npz->parts = laci_alloc(npz->n, sizeof *npz->parts);
  if (!npz->names || !npz->parts) return laci_fail_memory(err, npz->name);
  for (size_t k = 0; k < npz->n; k++) {
    const char *name = npz->members[k].name;
    size_t n = strlen(name);
    if (n <= ENDING_BYTES || !laci_ends_with(name, ending)) {
      return laci_fail(err, LAC_BAD_FILE, "%s: %s: wanted .npy files only", npz->name, name);
    }
    npz->names[k] = laci_arena_text_n(&npz->arena, name, n - ENDING_BYTES);
    if (!npz->names[k]) return laci_fail_memory(err, npz->name);
  }
  return LAC_OK;
}

/* Opens an archive from a reader, and owns the reader even if this fails. */
static lac_status open_npz_reader(const char *name, laci_reader *reader, laci_npz **npz,
                                  lac_error *err) {
  laci_npz *made = laci_alloc(1, sizeof *made);
  if (!made) {
    laci_reader_close(reader);
    return laci_fail_memory(err, name);
  }
  made->reader = reader;
  made->name = laci_arena_text(&made->arena, name);
  made->zip = (laci_zip){reader, made->name};
  lac_status st = made->name ? LAC_OK : laci_fail_memory(err, name);
  if (!st) st = laci_zip_list(&made->zip, &made->arena, &made->members, &made->n, err);
  if (!st) st = list_array_names(made, err);
  if (st) laci_npz_close(made);
  else *npz = made;
  return st;
}

lac_status laci_npz_open(const char *path, laci_npz **npz, lac_error *err) {
  laci_reader *reader = NULL;
  *npz = NULL;
  lac_status st = laci_reader_open(path, &reader, err);
  return st ? st : open_npz_reader(path, reader, npz, err);
}

lac_status laci_npz_open_memory(const char *name, const void *bytes, size_t size_bytes,
                                laci_npz **npz, lac_error *err) {
  laci_reader *reader = NULL;
  *npz = NULL;
  lac_status st = laci_reader_open_memory(name, bytes, size_bytes, &reader, err);
  return st ? st : open_npz_reader(name, reader, npz, err);
}

void laci_npz_close(laci_npz *npz) {
  if (!npz) return;
  for (size_t k = 0; npz->parts && k < npz->n; k++) laci_reader_close(npz->parts[k]);
  laci_free(npz->parts);
  laci_free(npz->members);
  laci_free(npz->names);
  laci_reader_close(npz->reader);
  laci_arena_clear(&npz->arena);
  laci_free(npz);
}

int laci_npz_count(const laci_npz *npz) { return (int)npz->n; }
const char *laci_npz_name(const laci_npz *npz, int at) { return npz->names[at]; }

/* Reads a whole member and parses its array. */
static lac_status read_whole_array(laci_npz *npz, const laci_zip_member *m, const char *name,
                                   laci_budget *budget, laci_rows **rows, lac_error *err) {
  uint8_t *bytes = NULL;
  laci_npy array = {0};
  laci_budget own = laci_budget_with_limit(0), *counted = budget ? budget : &own;
  laci_budget_add(counted, 2 * (uint64_t)m->size_bytes, "%.200s", name);
  lac_status st = laci_budget_check(counted, "reading the samples", err);
  if (!st) st = laci_zip_read(&npz->zip, m, &bytes, err);
  if (!st) st = laci_npy_parse(name, bytes, m->size_bytes, &array, err);
  laci_free(bytes);
  if (!st) st = laci_rows_from_array(name, &array, rows, err);
  laci_npy_clear(&array);
  if (!st) npz->whole_bytes += m->size_bytes;
  return st;
}

/* Opens a deflated member so that its parts are decompressed when rows are read. */
static lac_status open_rows_in_parts(laci_npz *npz, int at, laci_rows_source *source,
                                     laci_budget *budget, laci_rows **rows, lac_error *err) {
  const laci_zip_member *m = &npz->members[at];
  lac_status st = LAC_OK;
  if (budget) {
    laci_budget_add(budget, laci_zip_member_reader_bytes(m), "parts of %.200s", source->name);
    st = laci_budget_check(budget, "reading the samples", err);
  }
  if (!st && !npz->parts[at]) st = laci_zip_open_member(&npz->zip, m, &npz->parts[at], err);
  if (st) return st;
  char size[32];
  laci_log(LAC_LOG_INFO, "%s takes %s; its samples are decompressed when they are needed",
           source->name, laci_size_text(m->size_bytes, size, sizeof size));
  source->reader = npz->parts[at];
  source->offset = 0;
  return laci_rows_open_in_file(source, rows, err);
}

/* May the member's array be held in memory as a whole? Without a budget, a quarter of the memory is
 * for the archive. */
static bool fits_as_whole(const laci_npz *npz, const laci_zip_member *m,
                          const laci_budget *budget) {
  const uint64_t most = budget ? most_whole_bytes : laci_memory_default_limit("") / 4;
  return npz->whole_bytes < most && m->size_bytes <= most - npz->whole_bytes;
}

lac_status laci_npz_open_rows(laci_npz *npz, int at, laci_budget *budget, laci_rows **rows,
                              lac_error *err) {
  const laci_zip_member *m = &npz->members[at];
  char name[512];
  laci_rows *found = NULL;
  *rows = NULL;
  (void)snprintf(name, sizeof name, "%.300s: %.200s", npz->name, npz->names[at]);
  laci_rows_source source = {
      .name = name, .reader = npz->reader, .offset = m->offset, .size_bytes = m->size_bytes};
  uint8_t *first = laci_alloc(LACI_ROWS_HEADER_BYTES, 1);
  lac_status st = first ? laci_zip_read_beginning(&npz->zip, m, LACI_ROWS_HEADER_BYTES, first,
                                                  &source.n_first, err)
                        : laci_fail_memory(err, name);
  source.first = first;
  if (!st) st = laci_rows_open_in_file(&source, &found, err);
  const bool in_parts = !st && found && m->deflated && !fits_as_whole(npz, m, budget);
  if (!st && found && !m->deflated) {
    st = laci_zip_check(&npz->zip, m, err);
    if (!st) *rows = found;
  } else if (in_parts) {
    st = open_rows_in_parts(npz, at, &source, budget, rows, err);
  } else if (!st) {
    st = read_whole_array(npz, m, name, budget, rows, err);
  }
  if (*rows != found) laci_rows_close(found);
  laci_free(first);
  return st;
}
