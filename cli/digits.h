/* SPDX-License-Identifier: Apache-2.0
 * The data inside the program for `lacuna demo`: 1797 handwritten digits of 8 x 8 pixels (UCI
 * Optical Recognition of Handwritten Digits, E. Alpaydin, C. Kaynak, CC BY 4.0), as
 * examples/digits/digits.csv.gz. Put there by demo_data.S. */
#ifndef CLI_DIGITS_H
#define CLI_DIGITS_H

extern const unsigned char demo_images[], demo_images_end[];

#endif
