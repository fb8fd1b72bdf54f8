/* SPDX-License-Identifier: Apache-2.0
 * The parts of a folder of data: one for training, one for evaluation. */
#ifndef LACI_DATA_PARTS_H
#define LACI_DATA_PARTS_H

#include <limits.h>

#include "lacuna/status.h"

/** Which parts of the data will be used: for training, for evaluation, or both. */
typedef enum laci_parts_use { LACI_PARTS_BOTH, LACI_PARTS_TRAIN, LACI_PARTS_TEST } laci_parts_use;

typedef struct laci_parts {
  char train[PATH_MAX], test[PATH_MAX];
} laci_parts;

/** Finds the folders of the training part and of the evaluation part of a data folder DATA. If
 * DATA/train and DATA/val (or validation, test) both exist, they are the parts; else both parts are
 * DATA itself. If only one part is used, only that folder must exist. A folder that holds only
 * images is a class and not a part, whatever its name. Fails LAC_NOT_FOUND if the part to be used
 * is missing and the other one exists, LAC_BAD_ARGUMENT for too long a name. */
LAC_MUST_CHECK lac_status laci_parts_find(const char *data, laci_parts_use use, laci_parts *parts,
                                          lac_error *err);

#endif
