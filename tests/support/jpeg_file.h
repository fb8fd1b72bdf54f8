/* SPDX-License-Identifier: Apache-2.0
 * JPEG files for tests: soft stripes in three colours and a few edges, in the usual subsamplings.
 */
#ifndef TESTS_SUPPORT_JPEG_FILE_H
#define TESTS_SUPPORT_JPEG_FILE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h> /* jpeglib.h needs it */
#include <stdlib.h>

#include <jpeglib.h>

#include "base/reader.h"

enum { JPEG_FILE_SAMPLINGS = 4 };

static inline void jpeg_file_row(int width, int y, uint8_t *row) {
  for (int x = 0; x < width; x++) {
    row[x * 3] = (uint8_t)(128 + 100 * sin(x * 0.05 + y * 0.03));
    row[x * 3 + 1] = (uint8_t)(128 + 90 * cos(x * 0.02 - y * 0.07));
    row[x * 3 + 2] = (uint8_t)((x / 40 + y / 30) % 2 ? 190 : 60);
  }
}

/** sampling: 0 4:4:4, 1 4:2:2, 2 4:2:0, 3 4:2:0 with a restart marker in every row of blocks. Clear
 * it with jpeg_file_clear. */
static inline laci_file_bytes jpeg_file_make(int width, int height, int sampling) {
  struct jpeg_compress_struct jpeg;
  struct jpeg_error_mgr messages;
  unsigned char *bytes = NULL;
  unsigned long size_bytes = 0;
  uint8_t *row = malloc((size_t)width * 3);
  if (!row) abort();
  jpeg.err = jpeg_std_error(&messages);
  jpeg_create_compress(&jpeg);
  jpeg_mem_dest(&jpeg, &bytes, &size_bytes);
  jpeg.image_width = (JDIMENSION)width;
  jpeg.image_height = (JDIMENSION)height;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 90, TRUE);
  jpeg.comp_info[0].h_samp_factor = sampling > 0 ? 2 : 1;
  jpeg.comp_info[0].v_samp_factor = sampling > 1 ? 2 : 1;
  if (sampling == 3) jpeg.restart_in_rows = 1;
  jpeg_start_compress(&jpeg, TRUE);
  while (jpeg.next_scanline < jpeg.image_height) {
    jpeg_file_row(width, (int)jpeg.next_scanline, row);
    (void)jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  free(row);
  return (laci_file_bytes){.bytes = bytes, .size_bytes = size_bytes};
}

static inline void jpeg_file_clear(laci_file_bytes *file) { free((void *)(uintptr_t)file->bytes); }

#endif
