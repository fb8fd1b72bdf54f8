/* SPDX-License-Identifier: Apache-2.0
 * The fourteen changes of an image that RandAugment and TrivialAugment draw from, on bytes.
 *
 * Each gives the bytes that torchvision's transforms give for an image of Pillow: nearest pixels,
 * black where the image has none, grey levels cut off and not rounded after a blend. Next:
 * policy.h, which draws them. */
#ifndef LACI_DATA_PIXEL_CHANGE_H
#define LACI_DATA_PIXEL_CHANGE_H

#include "lacuna/status.h"

typedef struct laci_image laci_image;

/** The changes, in the order of torchvision's table. Each comment says what the magnitude of that
 * change means. */
typedef enum laci_pixel_change {
  LACI_PIXELS_IDENTITY,      /* no change; the magnitude is not used */
  LACI_PIXELS_SHEAR_X,       /* number of columns by which each row is moved against the row above
                                it, of any sign */
  LACI_PIXELS_SHEAR_Y,       /* number of rows by which each column is moved against the column to
                                its left, of any sign */
  LACI_PIXELS_TRANSLATE_X,   /* number of pixels by which the image is moved to the right, rounded
                                towards 0 */
  LACI_PIXELS_TRANSLATE_Y,   /* number of pixels by which the image is moved down, rounded towards
                                0 */
  LACI_PIXELS_ROTATE,        /* angle in degrees by which the image is rotated counter-clockwise */
  LACI_PIXELS_BRIGHTNESS,    /* all grey levels are multiplied by 1 + magnitude */
  LACI_PIXELS_COLOR,         /* 1 + magnitude is the image's weight in a blend with its grey
                                version */
  LACI_PIXELS_CONTRAST,      /* 1 + magnitude is the image's weight in a blend with its mean grey
                                level */
  LACI_PIXELS_SHARPNESS,     /* 1 + magnitude is the image's weight in a blend with its smoothed
                                version */
  LACI_PIXELS_POSTERIZE,     /* number of bits of each grey level that are kept, 0..8 */
  LACI_PIXELS_SOLARIZE,      /* grey level from which on levels are inverted */
  LACI_PIXELS_AUTO_CONTRAST, /* the magnitude is not used */
  LACI_PIXELS_EQUALIZE,      /* the magnitude is not used */
  LACI_PIXELS_CHANGES
} laci_pixel_change;

/** Changes the image in place. spare: scratch that grows to the image's size; where pixels move,
 * the two images' memory is exchanged. name: for error texts. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_pixels_change(laci_pixel_change change, double magnitude,
                                             const char *name, laci_image *image, laci_image *spare,
                                             lac_error *err);

#endif
