/* SPDX-License-Identifier: Apache-2.0
 * The part that all data sets share. Next: cifar.c, folder.c, digits.c, the kinds; classes.c, who
 * is which class. */
#include "data/dataset.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset_in.h"

enum { MAX_LINES_BYTES = 1 << 20 };

lac_status laci_dataset_open(const char *folder, const laci_dataset_options *options,
                             laci_dataset **set, lac_error *err) {
  *set = NULL;
  laci_dataset *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, folder);
  made->folder = laci_arena_text(&made->arena, folder);
  lac_status st = LAC_OK;
  if (!made->folder) st = laci_fail_memory(err, folder);
  else if (laci_cifar_is_there(folder)) st = laci_cifar_open(made, options, err);
  else if (laci_digits_is_there(folder)) st = laci_digits_open(made, options, err);
  else st = laci_folder_open(made, options, err);
  if (st) laci_dataset_close(made);
  else *set = made;
  return st;
}

lac_status laci_dataset_open_digits(const char *name, const uint8_t *bytes, size_t size_bytes,
                                    laci_dataset_part part, laci_dataset **set, lac_error *err) {
  *set = NULL;
  laci_dataset *made = laci_alloc(1, sizeof *made);
  if (!made) return laci_fail_memory(err, name);
  made->folder = laci_arena_text(&made->arena, name);
  lac_status st = made->folder ? laci_digits_read(made, name, bytes, size_bytes, part, err)
                               : laci_fail_memory(err, name);
  if (st) laci_dataset_close(made);
  else *set = made;
  return st;
}

void laci_dataset_close(laci_dataset *set) {
  if (!set) return;
  if (set->kind) set->kind->close(set);
  laci_free(set->labels);
  laci_free(set->class_names);
  laci_arena_clear(&set->arena);
  laci_free(set);
}

int64_t laci_dataset_count(const laci_dataset *set) { return set->count; }
int laci_dataset_classes(const laci_dataset *set) { return set->n_classes; }
laci_numbering laci_dataset_numbering(const laci_dataset *set) { return set->numbering; }
laci_recipe laci_dataset_recipe(const laci_dataset *set) { return set->recipe; }
laci_augment laci_dataset_augment(const laci_dataset *set) { return set->augment; }

const char *laci_dataset_class_name(const laci_dataset *set, int class_number) {
  bool known = set->class_names && class_number >= 0 && class_number < set->n_classes;
  return known ? set->class_names[class_number] : NULL;
}

int laci_dataset_label(const laci_dataset *set, int64_t at) {
  assert(at >= 0 && at < set->count);
  return set->labels[at];
}

lac_status laci_dataset_image(const laci_dataset *set, int64_t at, laci_image *image,
                              lac_error *err) {
  assert(at >= 0 && at < set->count);
  return set->kind->image(set, at, image, err);
}

lac_status laci_dataset_sample(const laci_dataset *set, int64_t at, laci_preparer *preparer,
                               laci_image *image, float *out, lac_error *err) {
  char name[512];
  lac_status st = laci_dataset_image(set, at, image, err);
  if (st) return st;
  set->kind->name(set, at, name, sizeof name);
  return laci_prepare(preparer, name, image, out, err);
}

lac_status laci_dataset_changed_sample(const laci_dataset *set, const laci_sample_change *change,
                                       laci_preparer *preparer, laci_image scratch[2], float *out,
                                       lac_error *err) {
  char name[512];
  lac_status st = laci_dataset_image(set, change->image, &scratch[0], err);
  if (st) return st;
  set->kind->name(set, change->image, name, sizeof name);
  laci_augment_draw draw = laci_augment_draw_of(&change->augment, change->seed, change->sample);
  st = laci_augment_apply(&change->augment, &draw, name, &scratch[0], &scratch[1], err);
  return st ? st : laci_prepare(preparer, name, &scratch[0], out, err);
}

/* ---- For the kinds ---- */

char *laci_path_in(laci_arena *arena, const char *folder, const char *name) {
  size_t n = strlen(folder), room = n + strlen(name) + 2;
  bool slash = n > 0 && folder[n - 1] == '/';
  char *path = laci_arena_alloc(arena, room, 1);
  if (path) (void)snprintf(path, room, "%s%s%s", folder, slash ? "" : "/", name);
  return path;
}

/** Cuts the text at its line ends; empty lines count only where others follow. */
static int cut_lines(char *text, const char **lines) {
  int n = 0, n_filled = 0;
  for (char *line = text; *line;) {
    size_t length = strcspn(line, "\n"), kept = length;
    bool last = line[length] == '\0';
    if (kept > 0 && line[kept - 1] == '\r') kept--;
    line[kept] = '\0';
    lines[n++] = line;
    if (kept > 0) n_filled = n;
    line += length + !last;
  }
  return n_filled;
}

lac_status laci_read_lines(laci_arena *arena, const char *path, const char ***lines, int *n_lines,
                           lac_error *err) {
  char *text = NULL;
  lac_status st = laci_file_read_text(path, MAX_LINES_BYTES, &text, err);
  if (st) return st;
  size_t n_most = 0; /* empty lines at the end are cut, but need their place before */
  for (const char *at = text; *at; at++) n_most += *at == '\n';
  char *copy = laci_arena_text(arena, text);
  const char **made = copy ? laci_arena_alloc(arena, n_most + 1, sizeof *made) : NULL;
  laci_free(text);
  if (!made) return laci_fail_memory(err, path);
  *n_lines = cut_lines(copy, made);
  *lines = made;
  return LAC_OK;
}
