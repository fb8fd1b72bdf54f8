/* SPDX-License-Identifier: Apache-2.0
 * What lies inside the program for `lacuna demo`: a small trained network and 1797 handwritten
 * digits of 8 x 8 pixels (UCI Optical Recognition of Handwritten Digits, E. Alpaydin, C. Kaynak, CC
 * BY 4.0). */
#ifndef CLI_DIGITS_H
#define CLI_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

enum {
  DIGITS_SIDE = 8,
  DIGITS_PIXELS = DIGITS_SIDE * DIGITS_SIDE,
  DIGITS_CLASSES = 10,
  DIGITS_TRAINING = 1437, /* the network was trained on the first ones; the rest tests it */
};

typedef struct digits {
  int n;
  float *pixels;   /* [n, 1, 8, 8], 0 .. 1 */
  uint8_t *labels; /* [n] */
} digits;

/** Unpacks the images. Clear them in any case. */
LAC_MUST_CHECK lac_status digits_init(digits *images, lac_error *err);
void digits_clear(digits *images);

/** The network's ONNX file; a view. */
const void *digits_model(size_t *size_bytes);

#endif
