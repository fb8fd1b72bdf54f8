/* SPDX-License-Identifier: Apache-2.0
 * The names in folders of images: classes, and images at any depth below them. What is listed is
 * only names; what an image's bytes are is found out when it is read. */
#ifndef LACI_DATA_LISTING_IN_H
#define LACI_DATA_LISTING_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;

/** Names in an arena. Zero-initialised is empty; free `at`. */
typedef struct laci_name_list {
  const char **at;
  size_t n, capacity;
} laci_name_list;

/** False: no memory, or name is NULL for want of it. */
bool laci_name_list_add(laci_name_list *list, const char *name);

bool laci_is_folder(const char *path);
/** Does an image go by such a name (.jpg .jpeg .jpe .png .webp in small or large letters)? */
bool laci_is_image_name(const char *name);

/** The folders in a folder, sorted; names that begin with a dot do not count. Fails LAC_NOT_FOUND,
 * LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_list_folders(laci_arena *arena, const char *path,
                                            laci_name_list *list, lac_error *err);

/** Where images are looked for. */
typedef struct laci_listing {
  const char *root;   /* what is listed is a path below it */
  bool deep;          /* in folders of folders, too */
  size_t *n_left_out; /* files whose names are not those of images; counted up */
} laci_listing;

/** Appends the images of root/inside ("": of root): sorted by their folders' paths, then by their
 * names, in bytes. Fails as above, and LAC_BAD_FILE beyond 32 levels of folders. */
LAC_MUST_CHECK lac_status laci_list_images(laci_arena *arena, const laci_listing *where,
                                           const char *inside, laci_name_list *list,
                                           lac_error *err);

#endif
