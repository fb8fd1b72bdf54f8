/* SPDX-License-Identifier: Apache-2.0
 * CIFAR's files as Python pickles them: what cifar.c has to know of one. */
#ifndef LACI_DATA_CIFAR_IN_H
#define LACI_DATA_CIFAR_IN_H

#include "data/dataset_in.h"

typedef struct laci_reader laci_reader;

/** Where the images of a file are. */
typedef struct laci_cifar_images {
  size_t offset, stride; /* image k begins at offset + k stride: three channels */
  int64_t n;
  int32_t *labels; /* [n], the caller's (laci_free), on failure too; NULL: before the images */
} laci_cifar_images;

/** Is it a regular file that begins as pickles do? */
bool laci_is_pickle(const char *path);
/** Images and the labels called `key`. The stride is given: the bytes of an image. Fails as
 * laci_pickle_parse does, and LAC_BAD_FILE for what it wants and does not find. */
LAC_MUST_CHECK lac_status laci_cifar_pickle_read(const char *path, laci_reader *reader,
                                                 const char *key, int n_classes,
                                                 laci_cifar_images *images, lac_error *err);
/** The n class names called `key`, copied to the arena. */
LAC_MUST_CHECK lac_status laci_cifar_pickle_names(laci_arena *arena, const char *path,
                                                  const char *key, int n, const char **names,
                                                  lac_error *err);

#endif
