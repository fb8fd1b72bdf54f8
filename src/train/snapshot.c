/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes the sections of a snapshot (snapshot.h): numbers, options, weights, statistics,
 * their averages, masks (as bits), and one section for each slot of the optimizer. All sections are
 * checked before any buffer of the caller is changed. */
#include "train/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

enum { MOST_SECTIONS = 7 + LACI_OPTIMIZER_MAX_SLOTS };

/** The content of a checkpoint's section "run": the numbers of the run's state. */
typedef struct numbers {
  int64_t step, epoch;
  uint64_t seed;
  double best_top1;
  int64_t best_step;
  uint64_t structure;
  int64_t optimizer_steps;
  char optimizer[32];
} numbers;

_Static_assert(sizeof(numbers) == 88, "as the file has it");

uint64_t laci_parameters_hash(const laci_parameter *parameters, int n) {
  uint64_t hash = 0;
  for (int k = 0; k < n; k++) {
    const laci_parameter *p = &parameters[k];
    int64_t place[3] = {p->offset, p->count, p->is_vector};
    hash = laci_hash64(p->name, strlen(p->name) + 1, hash);
    hash = laci_hash64(place, sizeof place, hash);
  }
  return hash;
}

static size_t bytes_for_bits(int64_t n) { return (size_t)((n + 7) / 8); }

static void pack_bits(const uint8_t *masks, int64_t n, uint8_t *bits) {
  for (int64_t k = 0; k < n; k++) bits[k / 8] |= (uint8_t)((masks[k] != 0) << (k % 8));
}

static void unpack_bits(const uint8_t *bits, int64_t n, uint8_t *masks) {
  for (int64_t k = 0; k < n; k++) masks[k] = bits[k / 8] >> (k % 8) & 1;
}

static const char *format_slot_section_name(int slot, char name[16]) {
  (void)snprintf(name, 16, "slot%d", slot);
  return name;
}

lac_status laci_snapshot_write_checkpoint(const char *folder, const laci_snapshot *s, int keep,
                                          lac_error *err) {
  numbers run = {.step = s->step,
                 .epoch = s->epoch,
                 .seed = s->seed,
                 .best_top1 = s->best_top1,
                 .best_step = s->best_step,
                 .structure = s->structure,
                 .optimizer_steps = laci_optimizer_steps(s->optimizer)};
  laci_optimizer_kind kind = laci_optimizer_kind_of(s->optimizer);
  (void)snprintf(run.optimizer, sizeof run.optimizer, "%s", laci_optimizer_kind_name(kind));
  const size_t weights_bytes = (size_t)s->n_weights * sizeof(float);
  laci_section sections[MOST_SECTIONS] = {
      {"run", &run, sizeof run},
      {"options", s->options, strlen(s->options) + 1},
      {"weights", s->weights, weights_bytes},
      {"statistics", s->statistics, (size_t)s->n_statistics * sizeof(float)},
  };
  char names[LACI_OPTIMIZER_MAX_SLOTS][16];
  uint8_t *bits = NULL;
  int n = 4;
  for (int k = 0; k < laci_optimizer_count_slots(s->optimizer); k++) {
    sections[n++] = (laci_section){format_slot_section_name(k, names[k]),
                                   laci_optimizer_slot(s->optimizer, k), weights_bytes};
  }
  if (s->average) {
    sections[n++] = (laci_section){"average", s->average, weights_bytes};
    sections[n++] = (laci_section){"average statistics", s->average_statistics,
                                   (size_t)s->n_statistics * sizeof(float)};
  }
  if (s->masks) {
    bits = laci_alloc(bytes_for_bits(s->n_weights), 1);
    if (!bits) return laci_fail_memory(err, "the masks of a checkpoint");
    pack_bits(s->masks, s->n_weights, bits);
    sections[n++] = (laci_section){"masks", bits, bytes_for_bits(s->n_weights)};
  }
  lac_status st = laci_checkpoint_write(folder, s->step, sections, n, keep, err);
  laci_free(bits);
  return st;
}

/* ---- Reading ---- */

/** Pointers to the sections of an open checkpoint. */
typedef struct found {
  numbers run;
  laci_section options, weights, statistics, average, average_statistics, masks,
      slots[LACI_OPTIMIZER_MAX_SLOTS];
} found;

/** Finds a section that must have size_bytes bytes. */
static lac_status find_section(const laci_checkpoint *c, const char *name, size_t size_bytes,
                               laci_section *section, lac_error *err) {
  lac_status st = laci_checkpoint_find_section(c, name, section, err);
  if (st || section->size_bytes == size_bytes) return st;
  return laci_fail(err, LAC_BAD_FILE, "%s: '%s' has %zu bytes, but this network wants %zu",
                   laci_checkpoint_path(c), name, section->size_bytes, size_bytes);
}

static lac_status read_and_check_run_numbers(const laci_checkpoint *c, const laci_snapshot *s,
                                             numbers *run, lac_error *err) {
  laci_section section;
  const char *path = laci_checkpoint_path(c);
  const char *optimizer = laci_optimizer_kind_name(laci_optimizer_kind_of(s->optimizer));
  lac_status st = find_section(c, "run", sizeof *run, &section, err);
  if (st) return st;
  memcpy(run, section.bytes, sizeof *run);
  run->optimizer[sizeof run->optimizer - 1] = '\0';
  if (run->step != laci_checkpoint_step(c) || run->epoch < 0 || run->optimizer_steps < 0 ||
      run->optimizer_steps == INT64_MAX) {
    return laci_fail(err, LAC_BAD_FILE, "%s: step %" PRId64 " of a checkpoint of step %" PRId64,
                     path, run->step, laci_checkpoint_step(c));
  }
  if (run->structure != s->structure) {
    return laci_fail(err, LAC_BAD_FILE, "%s: the checkpoint of another network", path);
  }
  if (strcmp(run->optimizer, optimizer) != 0) {
    return laci_fail(err, LAC_BAD_FILE, "%s: made by the optimizer %s, wanted %s", path,
                     run->optimizer, optimizer);
  }
  return LAC_OK;
}

/** Finds the sections of the moving averages. A run with averages can only continue from a
 * checkpoint that has them, and a run without averages only from one that has none. */
static lac_status find_averages(const laci_checkpoint *c, const laci_snapshot *s, found *f,
                                lac_error *err) {
  const bool has = laci_checkpoint_find_section(c, "average", &f->average, NULL) == LAC_OK;
  if (has != (s->average != NULL)) {
    return laci_fail(err, LAC_BAD_FILE,
                     has ? "%s: it keeps an average of the weights, but this training keeps none"
                         : "%s: it keeps no average of the weights, but this training wants one",
                     laci_checkpoint_path(c));
  }
  if (!has) return LAC_OK;
  const size_t n_weights = (size_t)s->n_weights, n_statistics = (size_t)s->n_statistics;
  lac_status st = find_section(c, "average", n_weights * sizeof(float), &f->average, err);
  if (st) return st;
  return find_section(c, "average statistics", n_statistics * sizeof(float), &f->average_statistics,
                      err);
}

static bool is_zero_terminated(const laci_section *s) {
  return s->size_bytes > 0 && ((const char *)s->bytes)[s->size_bytes - 1] == '\0';
}

static lac_status find_all_sections(const laci_checkpoint *c, const laci_snapshot *s, found *f,
                                    lac_error *err) {
  const size_t weights_bytes = (size_t)s->n_weights * sizeof(float);
  lac_status st = read_and_check_run_numbers(c, s, &f->run, err);
  if (!st) st = laci_checkpoint_find_section(c, "options", &f->options, err);
  if (!st && !is_zero_terminated(&f->options)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: its options are no text", laci_checkpoint_path(c));
  }
  if (!st) st = find_section(c, "weights", weights_bytes, &f->weights, err);
  if (!st) {
    st =
        find_section(c, "statistics", (size_t)s->n_statistics * sizeof(float), &f->statistics, err);
  }
  for (int k = 0; k < laci_optimizer_count_slots(s->optimizer) && !st; k++) {
    char name[16];
    st = find_section(c, format_slot_section_name(k, name), weights_bytes, &f->slots[k], err);
  }
  if (!st) st = find_averages(c, s, f, err);
  if (st || laci_checkpoint_find_section(c, "masks", &f->masks, NULL)) return st;
  if (!s->masks) {
    return laci_fail(err, LAC_BAD_FILE, "%s: it has masks, but this training is dense",
                     laci_checkpoint_path(c));
  }
  return find_section(c, "masks", bytes_for_bits(s->n_weights), &f->masks, err);
}

/** Copies the floats of a section. memcpy must not be called with NULL, even for no bytes. */
static void copy_floats(float *to, const laci_section *from) {
  if (from->size_bytes) memcpy(to, from->bytes, from->size_bytes);
}

lac_status laci_snapshot_read_checkpoint(const laci_checkpoint *checkpoint, laci_snapshot *s,
                                         lac_error *err) {
  found f = {0};
  lac_status st = find_all_sections(checkpoint, s, &f, err);
  if (st) return st;
  s->step = f.run.step;
  s->epoch = f.run.epoch;
  s->seed = f.run.seed;
  s->best_top1 = f.run.best_top1;
  s->best_step = f.run.best_step;
  s->options = f.options.bytes;
  copy_floats(s->weights, &f.weights);
  copy_floats(s->statistics, &f.statistics);
  if (s->average) copy_floats(s->average, &f.average);
  if (s->average) copy_floats(s->average_statistics, &f.average_statistics);
  for (int k = 0; k < laci_optimizer_count_slots(s->optimizer); k++) {
    copy_floats(laci_optimizer_slot(s->optimizer, k), &f.slots[k]);
  }
  laci_optimizer_set_steps(s->optimizer, f.run.optimizer_steps);
  if (!s->masks) return LAC_OK;
  if (f.masks.bytes) unpack_bits(f.masks.bytes, s->n_weights, s->masks);
  else memset(s->masks, 1, (size_t)s->n_weights);
  return LAC_OK;
}
