/* SPDX-License-Identifier: Apache-2.0
 * Lists the names in folders of images: classes, and images at any depth below them. The content of
 * images is not read. */
#ifndef LACI_DATA_LISTING_IN_H
#define LACI_DATA_LISTING_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"

typedef struct laci_arena laci_arena;

/** A list of names, whose texts are in an arena. Zero-initialized, it is empty; free `at` with
 * laci_free. */
typedef struct laci_name_list {
  const char **at;
  size_t n, capacity;
} laci_name_list;

/** Adds a name. False: no memory, or name is NULL because an earlier allocation failed. */
bool laci_name_list_add(laci_name_list *list, const char *name);

bool laci_is_folder(const char *path);
/** Is this the name of an image file (.jpg .jpeg .jpe .png .webp, in any case)? */
bool laci_is_image_name(const char *name);

/** Lists the folders in a folder, sorted, without those whose names begin with a dot. Fails
 * LAC_NOT_FOUND, LAC_IO, LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_list_folders(laci_arena *arena, const char *path,
                                            laci_name_list *list, lac_error *err);

/** Where and how a search for image files is done. */
typedef struct laci_listing {
  const char *root;   /* folder to which the listed paths are relative */
  bool deep;          /* true: nested folders are searched, too */
  size_t *n_left_out; /* incremented for each file without the name of an image */
} laci_listing;

/** Appends the paths of the image files in the folder root/inside (inside "": in root) to the list.
 * They are sorted by their folders' paths, then by their names, bytewise. Fails as
 * laci_list_folders, and LAC_BAD_FILE for more than 32 levels of folders. */
LAC_MUST_CHECK lac_status laci_list_images(laci_arena *arena, const laci_listing *where,
                                           const char *inside, laci_name_list *list,
                                           lac_error *err);

#endif
