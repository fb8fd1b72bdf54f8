/* SPDX-License-Identifier: Apache-2.0
 * Preparation of data: converts ImageNet from its original files to TFRecords, which lac_eval and
 * lac_train read; and draws synthetic images for a network.
 *
 * docs/reference/data.md lists the files. Threads. Conversions into different folders may run at
 * the same time. Any number of threads may draw images. */
#ifndef LACUNA_DATA_H
#define LACUNA_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lacuna/array.h"
#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lac_context lac_context; /* lacuna/context.h */

/** Options of lac_imagenet_convert. */
typedef struct lac_imagenet_options {
  size_t size;    /* sizeof of this struct, set by lac_imagenet_options_init */
  int threads;    /* 0 (default): the cores this process may use */
  int shards;     /* number of files for the training images, 1 .. 99999, default 1024 */
  int val_shards; /* number of files for the validation images, 1 .. 99999, default 128 */
  uint64_t seed;  /* seed of the order in which images are shuffled; default 0 */
  bool force;     /* replace shards that a conversion with other options made; default false */
  lac_context *context; /* log, progress and interrupt of the call, see context.h. NULL (default):
                           the process's */
} lac_imagenet_options;

/** What was done for one part of the data, training or validation. */
typedef struct lac_imagenet_part {
  int64_t images; /* number of images in the shards */
  int64_t broken; /* number of images left out because they cannot be decoded */
  int shards;     /* number of files for these images */
  int kept;       /* number of these shards that an earlier run had made */
} lac_imagenet_part;

/** The result of lac_imagenet_convert. */
typedef struct lac_imagenet_result {
  size_t size;                         /* sizeof of this struct, set by LAC_SIZED */
  lac_imagenet_part train, validation; /* what was done for the training images, and for the
                                          validation images */
} lac_imagenet_result;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_imagenet_options). */
LAC_API void lac_imagenet_options_init(lac_imagenet_options *options, size_t size);
LAC_DEFAULT(lac_imagenet_options)

/** Writes the images found in the folder `raw` as shards train-00000-of-01024 ...,
 * validation-00000-of-00128 ... to `folder`, which is created. The folder raw contains
 * ILSVRC2012_img_train.tar or img_train/SYNSET/NAME, ILSVRC2012_img_val.tar or img_val/NAME, and
 * synset_labels.txt. Broken images are logged, listed in folder/broken.txt, and left out. If a run
 * ended early, the same call continues it, and the shards are the same bytes as without the
 * interruption. Reports progress as "convert". options NULL: the default ones.
 *
 * Fails LAC_NOT_FOUND (missing files), LAC_BAD_ARGUMENT, LAC_INTERRUPTED, LAC_IO, LAC_NO_MEMORY.
 * Fails LAC_BAD_FILE for a truncated archive, a class that is not ImageNet's, or labels that do not
 * match the images. Fails LAC_EXISTS if the folder has other shards or is in use. Fails
 * LAC_UNSUPPORTED for archives, if the library was built without libarchive. */
LAC_API LAC_MUST_CHECK lac_status lac_imagenet_convert(const char *raw, const char *folder,
                                                       const lac_imagenet_options *options,
                                                       lac_imagenet_result *result, lac_error *err);

/* ---- Synthetic images: shapes and textures that the library draws, for want of data ---- */

typedef struct lac_model lac_model; /* lacuna/model.h */

/** Start from lac_synthetic_options_default() and set fields. */
typedef struct lac_synthetic_options {
  size_t size;          /* sizeof of this struct, set by lac_synthetic_options_init */
  int64_t samples;      /* number of images, >= 1 (default 512) */
  uint64_t seed;        /* seed of the images, which do not depend on the number of threads (default
                           0) */
  int crop;             /* side in pixels of sizes that the network leaves open; 0: 224 (default 0)
                           */
  float mean[3];        /* mean of each channel, in grey levels 0..255: the input is (grey - mean) /
                           std. With the default mean and std the range is found out, as
                           lac_calibration.synthetic says (default ImageNet's) */
  float std[3];         /* standard deviation of each channel, in grey levels; > 0 (default
                           ImageNet's) */
  int threads;          /* number of threads; 0: the cores that this process may use (default 0) */
  lac_context *context; /* log, progress and interrupt of the call, see context.h. NULL: the
                           process's (default NULL) */
} lac_synthetic_options;

/** Fills the first `size` bytes of *options with the defaults, which the comments of the fields
 * name. size: sizeof(lac_synthetic_options). */
LAC_API void lac_synthetic_options_init(lac_synthetic_options *options, size_t size);
LAC_DEFAULT(lac_synthetic_options)

/** Draws images for the model's only input. *images becomes an array [samples, C, H, W] or
 * [samples, H, W, C], as the input is. Its type is LAC_DTYPE_F32, or LAC_DTYPE_U8 for an input of
 * that type. The library allocates its data; free it with lac_session_release (lacuna/session.h).
 * Its name is NULL. options NULL: the default ones. Fails LAC_BAD_SHAPE (the network does not take
 * images), LAC_BAD_ARGUMENT, LAC_MEMORY_LIMIT, LAC_NO_MEMORY, LAC_INTERRUPTED; *images is then
 * unchanged. */
LAC_API LAC_MUST_CHECK lac_status lac_synthetic_images(const lac_model *model,
                                                       const lac_synthetic_options *options,
                                                       lac_array *images, lac_error *err);

/** Draws images as lac_synthetic_images does, and writes them to path, a .npy file, batch by batch.
 * The file appears completely or not at all. Fails LAC_EXISTS unless force, LAC_IO, and as
 * lac_synthetic_images does. */
LAC_API LAC_MUST_CHECK lac_status lac_synthetic_save(const lac_model *model, const char *path,
                                                     const lac_synthetic_options *options,
                                                     bool force, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
