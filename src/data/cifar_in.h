/* SPDX-License-Identifier: Apache-2.0
 * CIFAR's pickled files, for cifar.c. */
#ifndef LACI_DATA_CIFAR_IN_H
#define LACI_DATA_CIFAR_IN_H

#include "data/dataset_in.h"

typedef struct laci_reader laci_reader;

/** Where the images of a CIFAR file are in it, and their labels. */
typedef struct laci_cifar_images {
  size_t offset, stride; /* image k, which is three channels one after the other, begins at byte
                            offset + k * stride of the file */
  int64_t n;
  int32_t *labels; /* [n] labels, freed by the caller (laci_free), also after a failure; NULL: each
                      label is stored before its image */
} laci_cifar_images;

/** Is the path a regular file that begins like a pickle? */
bool laci_is_pickle(const char *path);
/** Finds the images of a pickled file, and reads the labels stored under `key`. images->stride must
 * be set: the bytes of an image. Fails as laci_pickle_parse does, and LAC_BAD_FILE for missing
 * entries. */
LAC_MUST_CHECK lac_status laci_cifar_pickle_find_images(const char *path, laci_reader *reader,
                                                        const char *key, int n_classes,
                                                        laci_cifar_images *images, lac_error *err);
/** Reads the n class names that a pickled file stores under `key`; they are copied to the arena. */
LAC_MUST_CHECK lac_status laci_cifar_pickle_names(laci_arena *arena, const char *path,
                                                  const char *key, int n, const char **names,
                                                  lac_error *err);

#endif
