/* SPDX-License-Identifier: Apache-2.0
 * The parts of a folder of data: what is trained on, and what is evaluated. */
#ifndef LACI_DATA_PARTS_H
#define LACI_DATA_PARTS_H

#include <limits.h>

#include "lacuna/status.h"

/** Which of them are to be looked at. */
typedef enum laci_parts_use { LACI_PARTS_BOTH, LACI_PARTS_TRAIN, LACI_PARTS_TEST } laci_parts_use;

typedef struct laci_parts {
  char train[PATH_MAX], test[PATH_MAX];
} laci_parts;

/** DATA/train and DATA/val (or validation, test), where both are there, are the parts; else DATA is
 * both. One alone will do where the other is not going to be looked at. A folder that holds images
 * and nothing else is no part but a class, whatever it is called. Fails LAC_NOT_FOUND where the
 * part that is wanted is missing and the other one is there, LAC_BAD_ARGUMENT for too long a name.
 * */
LAC_MUST_CHECK lac_status laci_parts_find(const char *data, laci_parts_use use, laci_parts *parts,
                                          lac_error *err);

#endif
