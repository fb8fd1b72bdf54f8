/* SPDX-License-Identifier: Apache-2.0
 * The data set for `lacuna demo`, which is linked into the program (demo_data.S): the bytes of
 * examples/digits/digits.csv.gz, 1797 handwritten digits of 8 x 8 pixels (UCI Optical Recognition
 * of Handwritten Digits, E. Alpaydin, C. Kaynak, CC BY 4.0). */
#ifndef CLI_DIGITS_H
#define CLI_DIGITS_H

extern const unsigned char demo_images[], demo_images_end[];

#endif
