/* SPDX-License-Identifier: Apache-2.0
 * Encodes JPEGs in memory by libjpeg-turbo, for images in other formats that must become JPEGs. As
 * in jpeg.c, a fatal error jumps back to where encoding began. */
#include <setjmp.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "base/error.h"
#include "base/memory.h"
#include "data/image.h"

enum { BEST = 100 };

typedef struct encoder {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr messages;
  jmp_buf failed;
  unsigned char *bytes; /* the encoded bytes, which libjpeg allocates with malloc */
  unsigned long size_bytes;
  const char *name;
  lac_error *err;
  lac_status status;
} encoder;

static void fail_with_library_message(j_common_ptr jpeg) {
  encoder *e = jpeg->client_data;
  char text[JMSG_LENGTH_MAX];
  (*e->messages.format_message)(jpeg, text);
  e->status = laci_fail(e->err, LAC_NO_MEMORY, "%s: cannot be written as JPEG: %s", e->name, text);
  longjmp(e->failed, 1);
}

static void print_nothing(j_common_ptr jpeg) { (void)jpeg; }

static void encode_jpeg(encoder *e, const laci_image *image) {
  if (setjmp(e->failed)) return;
  jpeg_create_compress(&e->jpeg);
  e->jpeg.client_data = e;
  jpeg_mem_dest(&e->jpeg, &e->bytes, &e->size_bytes);
  e->jpeg.image_width = (JDIMENSION)image->width;
  e->jpeg.image_height = (JDIMENSION)image->height;
  e->jpeg.input_components = 3;
  e->jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&e->jpeg);
  e->jpeg.dct_method = JDCT_ISLOW;
  jpeg_set_quality(&e->jpeg, BEST, TRUE);
  jpeg_start_compress(&e->jpeg, TRUE);
  while (e->jpeg.next_scanline < e->jpeg.image_height) {
    JSAMPROW row = image->rgb + (size_t)e->jpeg.next_scanline * (size_t)image->width * 3;
    (void)jpeg_write_scanlines(&e->jpeg, &row, 1);
  }
  jpeg_finish_compress(&e->jpeg);
}

lac_status laci_jpeg_encode(const char *name, const laci_image *image, uint8_t **bytes, size_t *n,
                            lac_error *err) {
  encoder e = {.name = name, .err = err};
  *bytes = NULL;
  *n = 0;
  e.jpeg.err = jpeg_std_error(&e.messages);
  e.jpeg.client_data = &e;
  e.messages.error_exit = fail_with_library_message;
  e.messages.output_message = print_nothing;
  encode_jpeg(&e, image);
  jpeg_destroy_compress(&e.jpeg);
  if (!e.status) {
    *bytes = laci_alloc(e.size_bytes, 1);
    if (*bytes) memcpy(*bytes, e.bytes, e.size_bytes);
    else e.status = laci_fail_memory(err, name);
    *n = e.size_bytes;
  }
  free(e.bytes);
  return e.status;
}
