/* SPDX-License-Identifier: Apache-2.0
 * From a decoded image to a network's input: resizes the shorter side, crops the middle, and scales
 * the values.
 *
 * The results are bit for bit those of Pillow and of torchvision's transforms on Pillow images,
 * because these prepared the images for nearly every published accuracy. (From version 13 on,
 * Pillow resizes images that are much taller than wide down first: there one grey level may
 * differ.)
 *
 * 1. resize: the shorter side becomes `resize` pixels, the longer floor(resize * long / short).
 *    Bilinear with antialiasing: out pixel k takes in pixels around c = (k + 1/2) s, s = in / out,
 *    with weights 1 - |x + 1/2 - c| / max(s, 1) where that is positive, normalized to sum 1, held
 *    in 22 bits of fraction. Across first, then down; both times rounded to whole grey levels.
 * 2. crop: `height` x `width` from the middle; an odd margin m leaves m / 2 rounded to even, above
 *    and on the left.
 * 3. scale: out[c][y][x] = (grey - mean[c]) / std[c] in float32, channels red, green, blue.
 *
 * Only pixels inside the crop are computed. Next: dataset.h, which provides the images. */
#ifndef LACI_DATA_PREPARE_H
#define LACI_DATA_PREPARE_H

#include <stdbool.h>
#include <stddef.h>

#include "lacuna/status.h"
#include "tensor/shape.h"

typedef struct laci_image laci_image;

typedef struct laci_preprocessing {
  int resize; /* length in pixels of the shorter side after resizing, 1..LACI_PREPROCESSING_MAX; 0:
                 not resized */
  int height, width; /* size of the crop in pixels, 1..LACI_PREPROCESSING_MAX */
  float mean[3];     /* mean of each channel, in grey levels 0..255 */
  float std[3];      /* standard deviation of each channel, in grey levels, > 0 */
  bool is_grey;      /* samples have one channel (grey) instead of three */
  bool is_ready;     /* the data are samples that need no preparation, instead of images; all fields
                        above are ignored */
  laci_shape ready;  /* shape of a sample, if is_ready is set */
} laci_preprocessing;

enum { LACI_PREPROCESSING_MAX = 16384 };

/** Returns ImageNet's preprocessing: resize 256, crop 224 x 224, mean 123.675 116.28 103.53, std
 * 58.395 57.12 57.375. */
laci_preprocessing laci_preprocessing_default(void);

/** Properties of a prepared sample. laci_preprocessing_channels: its number of channels (3, or 1
 * for grey). laci_preprocessing_sample_shape: its shape, for images [channels, height, width].
 * laci_preprocessing_sample_size: its number of floats. */
int laci_preprocessing_channels(const laci_preprocessing *preprocessing);
laci_shape laci_preprocessing_sample_shape(const laci_preprocessing *preprocessing);
size_t laci_preprocessing_sample_size(const laci_preprocessing *preprocessing);

/** Checks a preprocessing. Fails LAC_BAD_ARGUMENT where a field is out of its limits or the crop
 * exceeds the resized side. */
LAC_MUST_CHECK lac_status laci_preprocessing_check(const laci_preprocessing *preprocessing,
                                                   lac_error *err);

/** Checks a caller's mean and std. Fails LAC_BAD_ARGUMENT unless all are finite and std is above
 * 0. */
LAC_MUST_CHECK lac_status laci_scale_check_mean_and_std(const float mean[3], const float std[3],
                                                        lac_error *err);

/** A preparer prepares images by one preprocessing; it has tables and scratch memory. Each thread
 * needs its own. */
typedef struct laci_preparer laci_preparer;

LAC_MUST_CHECK lac_status laci_preparer_create(const laci_preprocessing *preprocessing,
                                               laci_preparer **preparer, lac_error *err);
void laci_preparer_destroy(laci_preparer *preparer); /* NULL is fine */

/** Sets *width and *height to the size of a prepared image in pixels. */
void laci_preparer_output_size(const laci_preparer *preparer, int *width, int *height);

/** Prepares an image into out[channels][height][width]. name: for error texts. Fails LAC_BAD_SHAPE
 * for an image smaller than the crop (without resizing), LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_prepare_image(laci_preparer *preparer, const char *name,
                                             const laci_image *image, float *out, lac_error *err);

/** Prepares a part of an image for training: resizes it to the crop's size, whatever its size and
 * aspect, and mirrors it if `mirrored` is set. The field `resize` of the preprocessing is
 * ignored. */
LAC_MUST_CHECK lac_status laci_prepare_image_part(laci_preparer *preparer, const char *name,
                                                  const laci_image *part, bool mirrored, float *out,
                                                  lac_error *err);
/** Resizes a part as laci_prepare_image_part does, into bytes that are not mirrored. */
LAC_MUST_CHECK lac_status laci_prepare_resize_part(laci_preparer *preparer, const char *name,
                                                   const laci_image *part, laci_image *resized,
                                                   lac_error *err);
/** Prepares an image of at least the crop's size: it is cropped and scaled, but not resized. */
LAC_MUST_CHECK lac_status laci_prepare_crop(const laci_preparer *preparer, const char *name,
                                            const laci_image *image, float *out, lac_error *err);

#endif
