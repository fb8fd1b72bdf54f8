/* SPDX-License-Identifier: Apache-2.0
 * Random changes of images as they are read for training: padding with black and cropping back to
 * the old size at a random place, or resizing a random part; flipping left to right; and what a
 * policy draws (policy.h).
 *
 * The change of an image follows from (seed, number of the sample since training began), so that it
 * does not depend on threads and restarts. Next: loader.h. */
#ifndef LACI_DATA_AUGMENT_H
#define LACI_DATA_AUGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_image laci_image;

/** The rule by which changes of an image's colours and shape are drawn (policy.h). */
typedef enum laci_policy_kind {
  LACI_POLICY_NONE,
  LACI_POLICY_RANDAUGMENT,
  LACI_POLICY_TRIVIALAUGMENT,
  LACI_POLICIES
} laci_policy_kind;

enum { LACI_POLICY_BINS = 31, LACI_POLICY_MOST_CHANGES = 14 };

typedef struct laci_policy {
  laci_policy_kind kind;
  /* for RandAugment: the number of changes of each image, 1..LACI_POLICY_MOST_CHANGES, and their
   * strength, 0 to 30 */
  int n_changes, magnitude;
} laci_policy;

/** Returns "none", "randaugment" or "trivialaugment". */
const char *laci_policy_name(laci_policy_kind kind);
/** Sets *kind to the policy of that name; false: there is no such policy. */
bool laci_policy_find(const char *name, laci_policy_kind *kind);

typedef struct laci_augment {
  int pad;            /* number of pixels by which an image is padded on every side before it is
                         cropped to its old size, 0..LACI_AUGMENT_MAX_PAD; 0: no padding and no
                         crop */
  bool flip;          /* images are mirrored left to right with probability 1/2 */
  bool resized;       /* a random part of the image (region.h) is resized to the crop's size,
                         instead of padding and cropping */
  laci_policy policy; /* how the image is changed after the padding or resizing */
} laci_augment;

enum { LACI_AUGMENT_MAX_PAD = 1024 };

/** A random change of an image: the crop's corner (top, left) in the padded image, both 0 .. 2 pad,
 * and whether the image is mirrored. */
typedef struct laci_augment_draw {
  int top, left;
  bool flipped;
} laci_augment_draw;
laci_augment_draw laci_augment_draw_change(const laci_augment *augment, uint64_t seed,
                                           uint64_t sample);

/** A training sample: the index of its image, and how that is changed before it is prepared. */
typedef struct laci_sample_change {
  int64_t image;
  laci_augment augment;
  uint64_t seed, sample; /* random seed, and number of the sample since training began */
} laci_sample_change;

/** Mirrors the image left to right, in place. */
void laci_image_mirror(laci_image *image);

/** Pads, crops and mirrors the image in place. spare: scratch that grows to the image's size. name:
 * for error texts. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_augment_apply(const laci_augment *augment,
                                             const laci_augment_draw *draw, const char *name,
                                             laci_image *image, laci_image *spare, lac_error *err);

#endif
