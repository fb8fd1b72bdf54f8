/* SPDX-License-Identifier: Apache-2.0
 * The network and the images of `lacuna demo`, as they lie in examples/digits. Read by
 * cli/digits.c. */
#define EMBED(symbol, file) \
  .balign 64 ; \
  .global symbol ; \
symbol: ; \
  .incbin file ; \
  .global symbol##_end ; \
symbol##_end: ; \
  .byte 0

  .section .rodata
  EMBED(demo_model, "digits.onnx")
  EMBED(demo_images, "digits.csv.gz")
  .section .note.GNU-stack, "", %progbits
