/* SPDX-License-Identifier: Apache-2.0
 * The images of `lacuna demo`, as they are in examples/digits. Declared in cli/digits.h. */
#define EMBED(symbol, file) \
  .balign 64 ; \
  .global symbol ; \
symbol: ; \
  .incbin file ; \
  .global symbol##_end ; \
symbol##_end: ; \
  .byte 0

  .section .rodata
  EMBED(demo_images, "digits.csv.gz")
  .section .note.GNU-stack, "", %progbits
