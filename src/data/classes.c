/* SPDX-License-Identifier: Apache-2.0
 * Finds the class number that a folder's name means: by the user's list, by what the network was
 * trained on, by WordNet id, or by sorted order. A wrong number would make every accuracy wrong
 * without notice, so ambiguous cases are errors. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "data/dataset_in.h"
#include "data/listing_in.h"

enum { WORDNET_ID_LENGTH = 9, IMAGENET_CLASSES = 1000, MOST_NAMED = 5 };

static const uint32_t imagenet_ids[] = {
#include "data/wordnet_ids.def"
};
_Static_assert(sizeof imagenet_ids / sizeof *imagenet_ids == IMAGENET_CLASSES,
               "one id for each class");

int laci_imagenet_class_of_synset(const char *name) {
  uint32_t id = 0;
  if (name[0] != 'n' || strlen(name) != WORDNET_ID_LENGTH) return -1;
  for (const char *digit = name + 1; *digit; digit++) {
    if (*digit < '0' || *digit > '9') return -1;
    id = id * 10 + (uint32_t)(*digit - '0');
  }
  int low = 0, high = IMAGENET_CLASSES;
  while (low < high) {
    int middle = (low + high) / 2;
    if (imagenet_ids[middle] < id) low = middle + 1;
    else high = middle;
  }
  return low < IMAGENET_CLASSES && imagenet_ids[low] == id ? low : -1;
}

void laci_imagenet_write_synset(int class_number, char synset[16]) {
  (void)snprintf(synset, 16, "n%08" PRIu32, imagenet_ids[class_number] % 100000000U);
}

/* ---- Numbering class folders by the user's list ---- */

typedef struct listed {
  const char *name, *text;
  int number;
} listed;

static int compare_listed_names(const void *a, const void *b) {
  return strcmp(((const listed *)a)->name, ((const listed *)b)->name);
}

/** Splits each line of the file of classes into a folder name and a text, and sorts the list by
 * name. Fails if a name is missing or occurs twice. */
static lac_status split_and_sort_lines(laci_arena *arena, const char *path, const char **lines,
                                       int n, listed *list, lac_error *err) {
  for (int at = 0; at < n; at++) {
    size_t length = strcspn(lines[at], "\t");
    const char *name = laci_arena_text_n(arena, lines[at], length);
    if (!name) return laci_fail_memory(err, path);
    bool has_text = lines[at][length] == '\t';
    list[at] = (listed){name, has_text ? lines[at] + length + 1 : name, at};
    if (length == 0) return laci_fail(err, LAC_BAD_FILE, "%s: line %d has no name", path, at + 1);
  }
  qsort(list, (size_t)n, sizeof *list, compare_listed_names);
  for (int at = 1; at < n; at++) {
    if (strcmp(list[at - 1].name, list[at].name) != 0) continue;
    return laci_fail(err, LAC_BAD_FILE, "%s: '%s' is there twice", path, list[at].name);
  }
  return LAC_OK;
}

/** Reads the file of classes, sets the set's classes to its lines, and returns them as *list,
 * sorted by name, in the set's arena. */
static lac_status read_class_list(laci_dataset *set, const char *path, listed **list,
                                  lac_error *err) {
  const char **lines;
  int n_lines;
  lac_status st = laci_read_lines(&set->arena, path, &lines, &n_lines, err);
  if (st) return st;
  if (n_lines == 0) return laci_fail(err, LAC_BAD_FILE, "%s: no line, wanted one a class", path);
  *list = laci_arena_alloc(&set->arena, (size_t)n_lines, sizeof **list);
  set->class_names = laci_alloc((size_t)n_lines, sizeof *set->class_names);
  set->class_folders = laci_arena_alloc(&set->arena, (size_t)n_lines, sizeof *set->class_folders);
  if (!*list || !set->class_names || !set->class_folders) return laci_fail_memory(err, path);
  set->n_classes = n_lines;
  set->numbering = LACI_NUMBERED_BY_LIST;
  st = split_and_sort_lines(&set->arena, path, lines, n_lines, *list, err);
  for (int at = 0; at < n_lines && !st; at++) {
    set->class_names[(*list)[at].number] = (*list)[at].text;
    set->class_folders[(*list)[at].number] = (*list)[at].name;
  }
  return st;
}

lac_status laci_classes_read_from_file(laci_dataset *set, const char *classes_path,
                                       lac_error *err) {
  listed *list;
  return read_class_list(set, classes_path, &list, err);
}

static lac_status number_folders_by_list(laci_dataset *set, const char *const *folders, int n,
                                         const char *path, int32_t *numbers, lac_error *err) {
  listed *list;
  lac_status st = read_class_list(set, path, &list, err);
  for (int at = 0; at < n && !st; at++) {
    listed key = {.name = folders[at]};
    const listed *found =
        bsearch(&key, list, (size_t)set->n_classes, sizeof *list, compare_listed_names);
    if (found) numbers[at] = found->number;
    else st = laci_fail(err, LAC_BAD_FILE, "%s: no line for the folder '%s'", path, folders[at]);
  }
  return st;
}

/* ---- Numbering classes by WordNet id, or in sorted order ---- */

lac_status laci_imagenet_set_classes(laci_dataset *set, lac_error *err) {
  set->n_classes = IMAGENET_CLASSES;
  set->numbering = LACI_NUMBERED_BY_WORDNET;
  set->class_names = laci_alloc(IMAGENET_CLASSES, sizeof *set->class_names);
  if (!set->class_names) return laci_fail_memory(err, set->folder);
  for (int k = 0; k < IMAGENET_CLASSES; k++) {
    char name[16];
    laci_imagenet_write_synset(k, name);
    set->class_names[k] = laci_arena_text(&set->arena, name);
    if (!set->class_names[k]) return laci_fail_memory(err, set->folder);
  }
  return LAC_OK;
}

static lac_status number_folders_by_wordnet_id(laci_dataset *set, const char *const *folders, int n,
                                               int32_t *numbers, lac_error *err) {
  for (int at = 0; at < n; at++) numbers[at] = laci_imagenet_class_of_synset(folders[at]);
  return laci_imagenet_set_classes(set, err);
}

static lac_status number_folders_in_order(laci_dataset *set, const char *const *folders, int n,
                                          int32_t *numbers, lac_error *err) {
  set->n_classes = n;
  set->numbering = LACI_NUMBERED_IN_ORDER;
  set->class_names = laci_alloc((size_t)n, sizeof *set->class_names);
  if (!set->class_names) return laci_fail_memory(err, set->folder);
  for (int at = 0; at < n; at++) {
    numbers[at] = at;
    set->class_names[at] = folders[at];
  }
  return LAC_OK;
}

/* ---- Numbering class folders by the names that the network was trained with ---- */

/* Adds each line of the text to the list. */
static lac_status add_lines_to_list(laci_arena *arena, const char *text, laci_name_list *list,
                                    lac_error *err) {
  while (*text) {
    const size_t n = strcspn(text, "\n");
    const char *name = laci_arena_text_n(arena, text, n);
    if (!laci_name_list_add(list, name)) return laci_fail_memory(err, "names of classes");
    text += n + (text[n] == '\n');
  }
  return LAC_OK;
}

static int find_name_index(const laci_name_list *known, const char *name) {
  for (size_t k = 0; k < known->n; k++) {
    if (strcmp(known->at[k], name) == 0) return (int)k;
  }
  return -1;
}

/* Writes the first of the names as text, such as "'dog', 'emu' and 3 more". */
static void write_first_names(const char *const *names, size_t n, char text[300]) {
  size_t used = 0, k = 0;
  text[0] = 0;
  for (; k < n && k < MOST_NAMED && used < 200; k++)
    used += (size_t)snprintf(text + used, 300 - used, "%s'%.60s'", k ? ", " : "", names[k]);
  if (k < n) (void)snprintf(text + used, 300 - used, " and %zu more", n - k);
}

static lac_status fail_unknown_folders(const laci_dataset *set, const char *const *folders, int n,
                                       const laci_name_list *known, lac_error *err) {
  laci_name_list unknown = {0};
  char names[300], wanted[300];
  bool whole = true;
  for (int at = 0; at < n && whole; at++)
    if (find_name_index(known, folders[at]) < 0) whole = laci_name_list_add(&unknown, folders[at]);
  write_first_names(unknown.at, unknown.n, names);
  write_first_names(known->at, known->n, wanted);
  const bool one = unknown.n == 1;
  laci_free(unknown.at);
  if (!whole) return laci_fail_memory(err, set->folder);
  return laci_hint(err, LAC_HINT_CLASSES,
                   laci_fail(err, LAC_BAD_SHAPE,
                             "%s: %s %s of the classes that the network was trained on, which are "
                             "%s; wanted folders of these names only",
                             set->folder, names, one ? "is none" : "are none", wanted));
}

/* Numbers the class folders by the network's known class names. All known classes become the set's
 * classes, even those without a folder. */
static lac_status number_folders_by_known_names(laci_dataset *set, const char *const *folders,
                                                int n, const laci_name_list *known,
                                                int32_t *numbers, lac_error *err) {
  for (int at = 0; at < n; at++) {
    numbers[at] = find_name_index(known, folders[at]);
    if (numbers[at] < 0) return fail_unknown_folders(set, folders, n, known, err);
  }
  set->n_classes = (int)known->n;
  set->numbering = LACI_NUMBERED_BY_NETWORK;
  set->class_names = laci_alloc(known->n, sizeof *set->class_names);
  if (!set->class_names) return laci_fail_memory(err, set->folder);
  for (size_t k = 0; k < known->n; k++) set->class_names[k] = known->at[k];
  return LAC_OK;
}

/* Lists the names of the network's classes, from options->known or the folders of
 * options->trained_on. The list is empty if these folders are named by WordNet ids. It is also
 * empty if their number is not that of the network's outputs, since the network cannot have been
 * trained on them. */
static lac_status list_known_class_names(laci_dataset *set, const laci_dataset_options *options,
                                         laci_name_list *known, lac_error *err) {
  if (options->known) return add_lines_to_list(&set->arena, options->known, known, err);
  if (!options->trained_on) return LAC_OK;
  lac_status st = laci_list_folders(&set->arena, options->trained_on, known, err);
  for (size_t k = 0; k < known->n && !st; k++)
    if (laci_imagenet_class_of_synset(known->at[k]) >= 0) known->n = 0;
  if (options->outputs > 0 && (uint64_t)options->outputs != known->n) known->n = 0;
  return st;
}

static bool are_all_folders_known(const laci_name_list *known, const char *const *folders, int n) {
  for (int at = 0; at < n; at++)
    if (find_name_index(known, folders[at]) < 0) return false;
  return true;
}

/* Numbers the folders by their names alone: as WordNet ids if all are such ids, in sorted order if
 * none is. */
static lac_status number_folders_by_name(laci_dataset *set, const char *const *folders, int n,
                                         int32_t *numbers, lac_error *err) {
  int n_known = 0;
  const char *other = NULL;
  for (int at = 0; at < n; at++) {
    if (laci_imagenet_class_of_synset(folders[at]) >= 0) n_known++;
    else other = folders[at];
  }
  if (!other) return number_folders_by_wordnet_id(set, folders, n, numbers, err);
  if (n_known == 0) return number_folders_in_order(set, folders, n, numbers, err);
  return laci_fail(err, LAC_BAD_FILE,
                   "%s: '%s' is none of ImageNet's 1000 classes as %d other folders are; a list of "
                   "classes must say which is which",
                   set->folder, other, n_known);
}

lac_status laci_number_class_folders(laci_dataset *set, const char *const *folders, int n,
                                     const laci_dataset_options *options, int32_t *numbers,
                                     lac_error *err) {
  if (options->classes_path)
    return number_folders_by_list(set, folders, n, options->classes_path, numbers, err);
  laci_name_list known = {0};
  lac_status st = list_known_class_names(set, options, &known, err);
  const bool by_known =
      known.n > 0 && !(options->may_be_new && !are_all_folders_known(&known, folders, n));
  if (!st) {
    st = by_known ? number_folders_by_known_names(set, folders, n, &known, numbers, err)
                  : number_folders_by_name(set, folders, n, numbers, err);
  }
  laci_free(known.at);
  return st;
}

/* ---- Comparing the classes with a network's outputs ---- */

lac_status laci_dataset_check_outputs(const laci_dataset *set, const char *name, int64_t outputs,
                                      lac_error *err) {
  const int n = set->n_classes;
  const bool lists = set->numbering == LACI_NUMBERED_BY_LIST;
  if (n == outputs || (set->may_lack_classes && n < outputs)) return LAC_OK;
  char counts[128], network[256];
  static const char *const found[] = {
      [LACI_NUMBERED_BY_DATA] = "",
      [LACI_NUMBERED_BY_LIST] = " in the list",
      [LACI_NUMBERED_BY_WORDNET] = ", ImageNet's, by the WordNet ids of its folders",
      [LACI_NUMBERED_IN_ORDER] = ", a folder each",
      [LACI_NUMBERED_BY_NETWORK] = ", by what the network was trained on",
  };
  (void)snprintf(counts, sizeof counts, "%d class%s%s", n, n == 1 ? "" : "es",
                 found[set->numbering]);
  (void)snprintf(network, sizeof network, "output '%s' has %" PRId64, name, outputs);
  if (lists) {
    return laci_fail(err, LAC_BAD_SHAPE, "%s: %s, but %s: wanted one line per output", set->folder,
                     counts, network);
  }
  if (set->numbering == LACI_NUMBERED_BY_DATA) {
    return laci_fail(err, LAC_BAD_SHAPE,
                     "%s: %s, but %s: wanted a network of %d outputs, or data of %" PRId64
                     " classes",
                     set->folder, counts, network, n, outputs);
  }
  return laci_hint(err, LAC_HINT_CLASSES,
                   laci_fail(err, LAC_BAD_SHAPE,
                             "%s: %s, but %s: wanted a list, one line per output, that says which "
                             "of them each folder is",
                             set->folder, counts, network));
}
