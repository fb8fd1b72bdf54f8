/* SPDX-License-Identifier: Apache-2.0
 * Makes cuts (search_cut.h) from slices. First, slices of one weight and one range of rows are
 * combined to a *field*, which knows all copies of the class in a block. Then slices with equal
 * blocks are stacked. All memory is in the cuts' arena. */
#include "permute/search_cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "permute/search_rows.h"
#include "sparse/score.h"

/* A field: all slices (search.h) that have the same rows of the same weight. Its arrays are indexed
 * by column of the weight. */
typedef struct field {
  const laci_slice *first; /* the first of these slices: it has the weight, the rows and the held
                              columns */
  int n_copies;
  const laci_slice **copies;
  int32_t *copy_at, *place_at; /* [columns] a weight may read the channels several times (copies).
                                  For each column: the number of its copy, and its place in that
                                  copy; -1: the column is in no copy */
  bool mixes_copies;           /* true: one N:M block contains columns of two copies */
} field;

/* A stack: slices (search.h) whose blocks contain the same channels, so that their rows can be
 * searched as one table. */
typedef struct stack {
  int32_t *block_of; /* [n_channels] block of each place; blocks are numbered in the order of their
                        first places */
  int n_blocks, n_members;
  const laci_slice **members; /* [n_members] the slices, with space for all slices of the problem */
  const field **fields;       /* [n_members] the field of each slice */
} stack;

typedef struct builder {
  laci_cuts *cuts;
  const laci_problem *problem;
  lac_error *err;
  field *fields;
  stack *stacks;
  int n_fields, n_stacks;
  int32_t *number; /* [n_numbers] working memory of number_blocks_of_places: the number of each
                      block of a weight; zeros between calls */
  int64_t n_numbers;
} builder;

static void *alloc_in_arena(builder *b, int64_t n, size_t size) {
  return laci_arena_alloc(&b->cuts->arena, (size_t)n, size);
}

static lac_status fail_no_memory(const builder *b) {
  return laci_fail_memory(b->err, b->problem->name);
}

/* Returns the number of the block that contains the column; blocks are numbered through all runs of
 * the weight. */
static int64_t block_of_column(const laci_weight_view *w, int m, int64_t column) {
  return column / w->run * ((w->run + m - 1) / m) + column % w->run / m;
}

static int64_t first_column_of_block(const laci_weight_view *w, int m, int64_t column) {
  return column - column % w->run % m;
}

static int count_columns_in_block(const laci_weight_view *w, int m, int64_t first) {
  int64_t left = w->run - first % w->run;
  return left < m ? (int)left : m;
}

static lac_status check_slice(const builder *b, const laci_slice *s) {
  lac_status st = laci_weight_check(&s->weight, b->problem->pattern, b->err);
  if (st) return st;
  if (s->outer_begin < 0 || s->outer_begin > s->outer_end || s->outer_end > s->weight.outer ||
      s->weight.columns > INT32_MAX) {
    return laci_fail(b->err, LAC_BAD_ARGUMENT, "%s: rows %lld to %lld of %lld", s->weight.name,
                     (long long)s->outer_begin, (long long)s->outer_end,
                     (long long)s->weight.outer);
  }
  for (int j = 0; j < b->problem->n_channels; j++) {
    if (s->column[j] < 0 || s->column[j] >= s->weight.columns) {
      return laci_fail(b->err, LAC_BAD_ARGUMENT, "%s: place %d at column %d of %lld",
                       s->weight.name, j, (int)s->column[j], (long long)s->weight.columns);
    }
  }
  for (int64_t p = 0; s->original_column && p < s->weight.columns; p++) {
    if (s->original_column[p] < 0 || s->original_column[p] >= s->weight.columns) {
      return laci_fail(b->err, LAC_BAD_ARGUMENT, "%s: column %lld holds column %d of %lld",
                       s->weight.name, (long long)p, (int)s->original_column[p],
                       (long long)s->weight.columns);
    }
  }
  return LAC_OK;
}

static bool have_same_rows(const laci_slice *a, const laci_slice *b) {
  return a->weight.bytes == b->weight.bytes && a->outer_begin == b->outer_begin &&
         a->outer_end == b->outer_end && a->weight.columns == b->weight.columns &&
         a->weight.inner == b->weight.inner;
}

static lac_status append_weight_field(builder *b, const laci_slice *s, field **out) {
  field *f = &b->fields[b->n_fields];
  *f = (field){.first = s};
  f->copies = alloc_in_arena(b, b->problem->n_slices, sizeof(const laci_slice *));
  f->copy_at = alloc_in_arena(b, s->weight.columns, sizeof *f->copy_at);
  f->place_at = alloc_in_arena(b, s->weight.columns, sizeof *f->place_at);
  if (!f->copies || !f->copy_at || !f->place_at) return fail_no_memory(b);
  for (int64_t p = 0; p < s->weight.columns; p++) f->copy_at[p] = f->place_at[p] = -1;
  b->n_fields++;
  *out = f;
  return LAC_OK;
}

static lac_status add_slice_to_field(builder *b, const laci_slice *s) {
  field *f = NULL;
  for (int i = 0; i < b->n_fields && !f; i++) {
    if (have_same_rows(b->fields[i].first, s)) f = &b->fields[i];
  }
  if (!f) {
    lac_status st = append_weight_field(b, s, &f);
    if (st) return st;
  }
  for (int j = 0; j < b->problem->n_channels; j++) {
    int32_t p = s->column[j];
    if (f->place_at[p] >= 0) {
      return laci_fail(b->err, LAC_BAD_ARGUMENT, "%s: column %d is place %d and place %d",
                       s->weight.name, (int)p, (int)f->place_at[p], j);
    }
    f->place_at[p] = j;
    f->copy_at[p] = f->n_copies;
  }
  f->copies[f->n_copies++] = s;
  return LAC_OK;
}

static void mark_if_blocks_mix_copies(const builder *b, field *f) {
  const laci_weight_view *w = &f->first->weight;
  int32_t copy = -1;
  for (int64_t p = 0; p < w->columns; p++) {
    if (p % w->run % b->problem->pattern.m == 0) copy = -1;
    if (f->copy_at[p] < 0) continue;
    if (copy >= 0 && copy != f->copy_at[p]) f->mixes_copies = true;
    copy = f->copy_at[p];
  }
}

/* Sets block_of[j] to the block of place j. Blocks are numbered in the order in which they first
 * appear. Returns the number of blocks; -1: no memory. */
static int number_blocks_of_places(builder *b, const laci_slice *s, int32_t *block_of) {
  const int m = b->problem->pattern.m;
  int64_t n = s->weight.columns ? block_of_column(&s->weight, m, s->weight.columns - 1) + 1 : 0;
  int n_seen = 0;
  if (n > b->n_numbers) {
    laci_free(b->number);
    b->number = laci_alloc((size_t)n, sizeof *b->number);
    b->n_numbers = b->number ? n : 0;
    if (!b->number) return -1;
  }
  for (int j = 0; j < b->problem->n_channels; j++) {
    int32_t *number =
        &b->number[block_of_column(&s->weight, m, s->column[j])]; /* 0: no place of this block was
                                                                     found yet */
    if (!*number) *number = ++n_seen;
    block_of[j] = *number - 1;
  }
  for (int j = 0; j < b->problem->n_channels; j++)
    b->number[block_of_column(&s->weight, m, s->column[j])] = 0;
  return n_seen;
}

static lac_status add_slice_to_stack(builder *b, const field *f, const laci_slice *s) {
  const int n = b->problem->n_channels;
  int32_t *block_of = alloc_in_arena(b, n, sizeof *block_of);
  int n_blocks = block_of ? number_blocks_of_places(b, s, block_of) : -1;
  if (n_blocks < 0) return fail_no_memory(b);
  stack *found = NULL;
  for (int i = 0; i < b->n_stacks && !found; i++) {
    if (!memcmp(b->stacks[i].block_of, block_of, (size_t)n * sizeof *block_of))
      found = &b->stacks[i];
  }
  if (!found) {
    found = &b->stacks[b->n_stacks];
    *found = (stack){.block_of = block_of, .n_blocks = n_blocks};
    found->members = alloc_in_arena(b, b->problem->n_slices, sizeof(const laci_slice *));
    found->fields = alloc_in_arena(b, b->problem->n_slices, sizeof(const field *));
    if (!found->members || !found->fields) return fail_no_memory(b);
    b->n_stacks++;
  }
  found->members[found->n_members] = s;
  found->fields[found->n_members++] = f;
  return LAC_OK;
}

/* A column to read: its index in the weight (source), and its index in the cut. */
typedef struct link {
  int64_t source;
  int32_t column;
} link;

static int compare_links_by_source(const void *a, const void *b) {
  const link *x = a, *y = b;
  if (x->source != y->source) return x->source < y->source ? -1 : 1;
  return (x->column > y->column) - (x->column < y->column);
}

static lac_status fill_cut_part(builder *b, const laci_slice *s, link *links, int n,
                                laci_cut_part *part) {
  int64_t *source = alloc_in_arena(b, n, sizeof *source);
  int32_t *column = alloc_in_arena(b, n, sizeof *column);
  if (!source || !column) return fail_no_memory(b);
  qsort(links, (size_t)n, sizeof *links, compare_links_by_source);
  for (int i = 0; i < n; i++) {
    source[i] = links[i].source;
    column[i] = links[i].column;
  }
  part->weight = &s->weight;
  part->outer_begin = s->outer_begin;
  part->n_rows = (s->outer_end - s->outer_begin) * s->weight.inner;
  part->n_read = n;
  part->source = source;
  part->column = column;
  return LAC_OK;
}

static int64_t find_source_column(const laci_slice *s, int64_t p) {
  return s->original_column ? s->original_column[p] : p;
}

static int min_int(int a, int b) { return a < b ? a : b; }

/* Lists the columns of a slice that share a block with the class but do not belong to it. The
 * search leaves them in place. held[block] becomes their number in each block. links, if not NULL,
 * gets where each of them is read from. member: number of the slice in the stack. fixed_begin:
 * first fixed column of each block in the cut. Returns the number of these columns. */
static int list_fixed_columns(const builder *b, const stack *k, int member,
                              const int32_t *fixed_begin, int32_t *held, link *links) {
  const int m = b->problem->pattern.m;
  const laci_slice *s = k->members[member];
  const field *f = k->fields[member];
  int n = 0;
  memset(held, 0, (size_t)k->n_blocks * sizeof *held);
  int next_block = 0; /* each block is handled at its first place; blocks are numbered in that
                         order */
  for (int j = 0; j < b->problem->n_channels; j++) {
    if (k->block_of[j] != next_block) continue;
    int64_t first = first_column_of_block(&s->weight, m, s->column[j]);
    for (int i = 0; i < count_columns_in_block(&s->weight, m, first); i++) {
      if (f->place_at[first + i] >= 0) continue;
      if (links) {
        links[n] =
            (link){find_source_column(s, first + i), fixed_begin[next_block] + held[next_block]};
      }
      held[next_block]++;
      n++;
    }
    next_block++;
  }
  return n;
}

/* Fills the entries of all blocks of a stacked cut (table of columns): first the places of each
 * block, then its fixed columns. */
static lac_status fill_stacked_blocks(builder *b, const stack *k, const int32_t *n_fixed,
                                      laci_cut *cut) {
  const int n = b->problem->n_channels;
  int32_t *begin = alloc_in_arena(b, k->n_blocks + 1, sizeof *begin);
  int32_t *used = alloc_in_arena(b, k->n_blocks, sizeof *used);
  laci_entry *entries = alloc_in_arena(b, n + cut->n_fixed, sizeof *entries);
  if (!begin || !used || !entries) return fail_no_memory(b);
  for (int j = 0; j < n; j++) begin[k->block_of[j] + 1]++;
  for (int g = 0; g < k->n_blocks; g++) begin[g + 1] += begin[g] + n_fixed[g];
  for (int j = 0; j < n; j++) {
    int g = k->block_of[j];
    entries[begin[g] + used[g]++] = (laci_entry){.place = j, .fixed = -1};
  }
  int32_t column = n;
  for (int g = 0; g < k->n_blocks; g++) {
    for (int i = 0; i < n_fixed[g]; i++) {
      entries[begin[g] + used[g]++] = (laci_entry){.place = -1, .fixed = column++};
    }
  }
  cut->n_blocks = k->n_blocks;
  cut->block_begin = begin;
  cut->entries = entries;
  return LAC_OK;
}

static lac_status fill_stacked_part(builder *b, const stack *k, int member,
                                    const int32_t *fixed_begin, const laci_cut *cut,
                                    laci_cut_part *part) {
  const int n = b->problem->n_channels;
  link *links = laci_alloc((size_t)cut->n_columns, sizeof *links);
  int32_t *held = laci_alloc((size_t)k->n_blocks, sizeof *held);
  lac_status st = LAC_OK;
  if (!links || !held) {
    st = fail_no_memory(b);
    goto out;
  }
  for (int q = 0; q < n; q++) links[q] = (link){k->members[member]->column[q], q};
  int n_held = list_fixed_columns(b, k, member, fixed_begin, held, links + n);
  st = fill_cut_part(b, k->members[member], links, n + n_held, part);
  for (int j = 0; j < n; j++)
    held[k->block_of[j]]++; /* from here on, held counts all columns of a block */
  for (int g = 0; g < k->n_blocks; g++) part->n_kept += min_int(b->problem->pattern.n, held[g]);
out:
  laci_free(held);
  laci_free(links);
  return st;
}

static lac_status fill_cut_from_stack(builder *b, const stack *k, laci_cut *cut) {
  const int n = b->problem->n_channels;
  int32_t *map = alloc_in_arena(b, n, sizeof *map),
          *fixed_begin = alloc_in_arena(b, k->n_blocks, sizeof *fixed_begin);
  int32_t *n_fixed = alloc_in_arena(b, k->n_blocks, sizeof *n_fixed),
          *held = alloc_in_arena(b, k->n_blocks, sizeof *held);
  cut->parts = alloc_in_arena(b, k->n_members, sizeof *cut->parts);
  if (!map || !fixed_begin || !n_fixed || !held || !cut->parts) return fail_no_memory(b);
  for (int q = 0; q < n; q++) map[q] = q;
  for (int i = 0; i < k->n_members; i++) { /* capacity for the largest number of fixed columns that
                                              any slice has */
    list_fixed_columns(b, k, i, NULL, held, NULL);
    for (int g = 0; g < k->n_blocks; g++) n_fixed[g] = n_fixed[g] > held[g] ? n_fixed[g] : held[g];
  }
  for (int g = 0; g < k->n_blocks; g++) {
    fixed_begin[g] = n + cut->n_fixed;
    cut->n_fixed += n_fixed[g];
  }
  cut->stacked = true;
  cut->n_columns = n + cut->n_fixed;
  cut->n_copies = 1;
  cut->map = map;
  lac_status st = fill_stacked_blocks(b, k, n_fixed, cut);
  cut->n_parts = k->n_members;
  for (int i = 0; !st && i < k->n_members; i++) {
    st = fill_stacked_part(b, k, i, fixed_begin, cut, &cut->parts[i]);
    cut->n_rows += cut->parts[i].n_rows;
  }
  return st;
}

/* Writes the block entries of a weight whose blocks contain several copies of the class (channels
 * that are reordered together). Fixed columns are numbered after those of the class. Returns the
 * number of entries. entries NULL: only counts them. */
static int write_field_entries(const builder *b, const field *f, laci_cut *cut, laci_entry *entries,
                               int32_t *begin, link *links) {
  const int m = b->problem->pattern.m;
  const laci_weight_view *w = &f->first->weight;
  int n = 0;
  cut->n_blocks = cut->n_fixed = 0;
  for (int64_t first = 0; first < w->columns; first += count_columns_in_block(w, m, first)) {
    bool touched = false;
    for (int i = 0; i < count_columns_in_block(w, m, first); i++)
      touched |= f->place_at[first + i] >= 0;
    if (!touched) continue;
    for (int i = 0; i < count_columns_in_block(w, m, first); i++) {
      int64_t p = first + i;
      int32_t fixed =
          f->place_at[p] >= 0 ? -1 : f->n_copies * b->problem->n_channels + cut->n_fixed++;
      if (entries) entries[n] = (laci_entry){f->place_at[p], f->copy_at[p], fixed};
      if (links && fixed >= 0) links[fixed] = (link){find_source_column(f->first, p), fixed};
      n++;
    }
    cut->n_blocks++;
    if (begin) begin[cut->n_blocks] = n;
  }
  return n;
}

static lac_status fill_cut_from_field(builder *b, const field *f, laci_cut *cut) {
  const int n = b->problem->n_channels, n_moving = f->n_copies * n;
  const int n_entries = write_field_entries(b, f, cut, NULL, NULL, NULL);
  int32_t *map = alloc_in_arena(b, n_moving, sizeof *map),
          *begin = alloc_in_arena(b, cut->n_blocks + 1, sizeof *begin);
  laci_entry *entries = alloc_in_arena(b, n_entries, sizeof *entries);
  link *links = alloc_in_arena(b, n_moving + cut->n_fixed, sizeof *links);
  cut->parts = alloc_in_arena(b, 1, sizeof *cut->parts);
  if (!map || !begin || !entries || !links || !cut->parts) return fail_no_memory(b);
  write_field_entries(b, f, cut, entries, begin, links);
  for (int copy = 0; copy < f->n_copies; copy++) {
    for (int q = 0; q < n; q++) {
      int32_t column = copy * n + q;
      map[column] = column;
      links[column] = (link){f->copies[copy]->column[q], column};
    }
  }
  cut->n_columns = n_moving + cut->n_fixed;
  cut->n_copies = f->n_copies;
  cut->map = map;
  cut->block_begin = begin;
  cut->entries = entries;
  cut->n_parts = 1;
  lac_status st = fill_cut_part(b, f->first, links, cut->n_columns, &cut->parts[0]);
  cut->n_rows = cut->parts[0].n_rows;
  for (int g = 0; g < cut->n_blocks; g++) {
    cut->parts[0].n_kept += min_int(b->problem->pattern.n, begin[g + 1] - begin[g]);
  }
  return st;
}

/* Sorts the cuts (tables of columns) by number of elements, the largest first. Cuts of equal size
 * stay in the order of their first slices. */
static void sort_cuts_by_size(laci_cuts *cuts) {
  for (int i = 1; i < cuts->n_cuts; i++) {
    laci_cut moving = cuts->cuts[i];
    double weight = (double)moving.n_rows * moving.n_columns;
    int at = i;
    while (at > 0 && (double)cuts->cuts[at - 1].n_rows * cuts->cuts[at - 1].n_columns < weight) {
      cuts->cuts[at] = cuts->cuts[at - 1];
      at--;
    }
    cuts->cuts[at] = moving;
  }
}

static lac_status build_cuts(builder *b) {
  lac_status st = LAC_OK;
  for (int i = 0; !st && i < b->problem->n_slices; i++) {
    st = check_slice(b, &b->problem->slices[i]);
    if (!st) st = add_slice_to_field(b, &b->problem->slices[i]);
  }
  for (int i = 0; !st && i < b->n_fields; i++) {
    field *f = &b->fields[i];
    mark_if_blocks_mix_copies(b, f);
    for (int copy = 0; !st && !f->mixes_copies && copy < f->n_copies; copy++) {
      st = add_slice_to_stack(b, f, f->copies[copy]);
    }
  }
  laci_cuts *cuts = b->cuts;
  for (int i = 0; !st && i < b->n_stacks; i++) {
    st = fill_cut_from_stack(b, &b->stacks[i], &cuts->cuts[cuts->n_cuts++]);
  }
  for (int i = 0; !st && i < b->n_fields; i++) {
    if (b->fields[i].mixes_copies)
      st = fill_cut_from_field(b, &b->fields[i], &cuts->cuts[cuts->n_cuts++]);
  }
  for (int i = 0; !st && i < cuts->n_cuts; i++) laci_cut_number_tiles(&cuts->cuts[i]);
  if (!st) sort_cuts_by_size(cuts);
  return st;
}

lac_status laci_cuts_init(laci_cuts *cuts, const laci_problem *problem, lac_error *err) {
  *cuts = (laci_cuts){
      .problem = problem, .n_channels = problem->n_channels, .pattern = problem->pattern};
  builder b = {.cuts = cuts, .problem = problem, .err = err};
  if (problem->n_channels < 0 || problem->n_slices < 0) {
    return laci_fail(err, LAC_BAD_ARGUMENT, "%s: %d channels in %d weights", problem->name,
                     problem->n_channels, problem->n_slices);
  }
  b.fields = alloc_in_arena(&b, problem->n_slices, sizeof *b.fields);
  b.stacks = alloc_in_arena(&b, problem->n_slices, sizeof *b.stacks);
  cuts->cuts = alloc_in_arena(&b, 2 * (int64_t)problem->n_slices, sizeof *cuts->cuts);
  if (!b.fields || !b.stacks || !cuts->cuts) return fail_no_memory(&b);
  lac_status st = problem->n_channels ? build_cuts(&b) : LAC_OK;
  laci_free(b.number);
  return st;
}

void laci_cuts_clear(laci_cuts *cuts) { laci_arena_clear(&cuts->arena); }
