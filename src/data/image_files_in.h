/* SPDX-License-Identifier: Apache-2.0
 * A data set whose images are files below its folder. */
#ifndef LACI_DATA_IMAGE_FILES_IN_H
#define LACI_DATA_IMAGE_FILES_IN_H

#include "data/dataset_in.h"
#include "data/listing_in.h"

/** The private data (laci_dataset.own) of a set of image files. */
typedef struct laci_image_files {
  laci_name_list images; /* paths below the set's folder, in the set's order */
  size_t n_left_out;     /* number of files that were left out because their names are not those of
                            images */
} laci_image_files;

/** Initializes all fields of the set except images, labels and classes. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_image_files_init(laci_dataset *set, lac_error *err);
/** Logs a warning if files were left out. */
void laci_image_files_warn_of_left_out(const laci_dataset *set);

#endif
