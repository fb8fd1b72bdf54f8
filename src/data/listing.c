/* SPDX-License-Identifier: Apache-2.0
 * Walks folders. A link to a folder counts as a folder; a cycle of links ends at the maximum
 * depth. */
#include "data/listing_in.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/dataset_in.h"

enum { DEEPEST = 32 };

bool laci_name_list_add(laci_name_list *list, const char *name) {
  if (!name || !laci_grow((void **)&list->at, list->n, &list->capacity, sizeof *list->at))
    return false;
  list->at[list->n++] = name;
  return true;
}

bool laci_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool laci_is_image_name(const char *name) {
  static const char *const endings[] = {".jpg", ".jpeg", ".jpe", ".png", ".webp"};
  const char *dot = strrchr(name, '.');
  for (size_t k = 0; dot && k < sizeof endings / sizeof *endings; k++) {
    if (strcasecmp(dot, endings[k]) == 0) return true;
  }
  return false;
}

/* ---- One folder ---- */

typedef lac_status visit_name(void *context, const char *folder, const struct dirent *entry,
                              lac_error *err);

/** Calls visit for each name in a folder that does not begin with a dot. */
static lac_status visit_folder_entries(const char *path, visit_name *visit, void *context,
                                       lac_error *err) {
  DIR *dir = opendir(path);
  if (!dir) {
    int cause = errno;
    lac_status st = cause == ENOENT || cause == ENOTDIR ? LAC_NOT_FOUND : LAC_IO;
    if (cause == ENOTDIR)
      return laci_fail(err, st, "%s: a file; wanted a folder of images, or .npy or .npz", path);
    return laci_fail(err, st, "%s: cannot list the folder: %s", path, strerror(cause));
  }
  lac_status st = LAC_OK;
  while (!st) {
    errno = 0;
    const struct dirent *entry = readdir(dir);
    if (!entry && errno) st = laci_fail(err, LAC_IO, "%s: %s", path, strerror(errno));
    if (!entry) break;
    if (entry->d_name[0] != '.') st = visit(context, path, entry, err);
  }
  (void)closedir(dir);
  return st;
}

/** Sets *is_folder to whether an entry is a folder. Most file systems say so in the listing, which
 * saves a call of stat for each of a million images. */
static lac_status find_whether_folder(const char *folder, const struct dirent *entry,
                                      bool *is_folder, lac_error *err) {
  *is_folder = entry->d_type == DT_DIR;
  if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK) return LAC_OK;
  laci_arena scratch = {0};
  const char *path = laci_path_join(&scratch, folder, entry->d_name);
  if (path) *is_folder = laci_is_folder(path);
  laci_arena_clear(&scratch);
  return path ? LAC_OK : laci_fail_memory(err, folder);
}

/* ---- Folders ---- */

typedef struct collector {
  laci_arena *arena;
  laci_name_list *folders;
  const laci_listing *where; /* where images are searched; NULL: only folders are listed */
  const char *inside;
  laci_name_list *images;
} collector;

static lac_status add_entry_to_lists(void *context, const char *folder, const struct dirent *entry,
                                     lac_error *err) {
  const collector *c = context;
  bool is_folder = false, added;
  lac_status st = find_whether_folder(folder, entry, &is_folder, err);
  if (st) return st;
  if (is_folder) {
    added = laci_name_list_add(c->folders, laci_arena_text(c->arena, entry->d_name));
  } else if (!c->where) {
    added = true;
  } else if (laci_is_image_name(entry->d_name)) {
    const char *name = *c->inside ? laci_path_join(c->arena, c->inside, entry->d_name)
                                  : laci_arena_text(c->arena, entry->d_name);
    added = laci_name_list_add(c->images, name);
  } else {
    added = true;
    ++*c->where->n_left_out;
  }
  return added ? LAC_OK : laci_fail_memory(err, folder);
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_names(laci_name_list *list, size_t from) {
  if (list->n > from) qsort(list->at + from, list->n - from, sizeof *list->at, compare_names);
}

lac_status laci_list_folders(laci_arena *arena, const char *path, laci_name_list *list,
                             lac_error *err) {
  collector c = {.arena = arena, .folders = list};
  size_t from = list->n;
  lac_status st = visit_folder_entries(path, add_entry_to_lists, &c, err);
  sort_names(list, from);
  return st;
}

/* ---- Images ---- */

static lac_status list_images_below(laci_arena *arena, const laci_listing *where,
                                    const char *inside, int depth, laci_name_list *list,
                                    lac_error *err) {
  laci_name_list folders = {0};
  laci_arena scratch = {0};
  collector c = {arena, &folders, where, inside, list};
  size_t from = list->n;
  lac_status st = LAC_OK;
  const char *path = *inside ? laci_path_join(&scratch, where->root, inside) : where->root;
  if (!path) st = laci_fail_memory(err, where->root);
  else if (depth == 0)
    st = laci_fail(err, LAC_BAD_FILE, "%s: more than %d levels of folders", path, DEEPEST);
  else st = visit_folder_entries(path, add_entry_to_lists, &c, err);
  sort_names(list, from);
  sort_names(&folders, 0);
  for (size_t k = 0; k < folders.n && where->deep && !st; k++) {
    const char *below = *inside ? laci_path_join(&scratch, inside, folders.at[k]) : folders.at[k];
    st = below ? list_images_below(arena, where, below, depth - 1, list, err)
               : laci_fail_memory(err, path);
  }
  laci_free(folders.at);
  laci_arena_clear(&scratch);
  return st;
}

lac_status laci_list_images(laci_arena *arena, const laci_listing *where, const char *inside,
                            laci_name_list *list, lac_error *err) {
  return list_images_below(arena, where, inside, DEEPEST, list, err);
}
