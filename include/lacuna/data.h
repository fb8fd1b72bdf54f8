/* SPDX-License-Identifier: Apache-2.0
 * Data made ready: ImageNet as it is handed out to TFRecords, which lac_eval and lac_train read.
 *
 * docs/data.md says which files are where. Threads. Calls for different folders may run at the same
 * time.
 */
#ifndef LACUNA_DATA_H
#define LACUNA_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where ImageNet is, and where its records go. */
typedef struct lac_imagenet_options {
  int threads;    /* 0 (default): the cores this process may use */
  int shards;     /* of the training images, 1 .. 99999, default 1024 */
  int val_shards; /* of the validation images, the same, default 128 */
  uint64_t seed;  /* of the images' order; default 0 */
  bool force;     /* replace shards of another conversion; default false */
} lac_imagenet_options;

/** What came of one part of the data, training or validation. */
typedef struct lac_imagenet_part {
  int64_t images; /* in the shards */
  int64_t broken; /* left out: they cannot be decoded */
  int shards;
  int kept; /* of these, made by an earlier run */
} lac_imagenet_part;

/** What came of both parts. */
typedef struct lac_imagenet_result {
  lac_imagenet_part train, validation;
} lac_imagenet_result;

/** Every field's default, which its line names. */
LAC_API lac_imagenet_options lac_imagenet_options_default(void);

/** Writes the images of RAW (ILSVRC2012_img_train.tar or img_train/SYNSET/NAME,
 * ILSVRC2012_img_val.tar or img_val/NAME, synset_labels.txt) to the folder, which is made:
 * train-00000-of-01024 ..., validation-00000-of-00128 .... Broken images are logged, listed in
 * folder/broken.txt, and left out. After a run that ended early the same call goes on; the shards
 * are the same, byte for byte. Reports its progress as "convert". options NULL: the default ones.
 *
 * Fails LAC_NOT_FOUND for what is not there, LAC_BAD_FILE for an archive that is cut off, a class
 * that is not ImageNet's and labels that do not fit, LAC_EXISTS for a folder with other shards or
 * in use, LAC_BAD_ARGUMENT, LAC_UNSUPPORTED for archives where the library was built without
 * libarchive, LAC_INTERRUPTED, LAC_IO, LAC_NO_MEMORY. */
LAC_API LAC_MUST_CHECK lac_status lac_imagenet_convert(const char *raw, const char *folder,
                                                       const lac_imagenet_options *options,
                                                       lac_imagenet_result *result, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
