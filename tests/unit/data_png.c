/* SPDX-License-Identifier: Apache-2.0
 * data: PNG files of every kind become the same image; broken, cut-off and lying ones become an
 * error that names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <png.h>

#include "base/memory.h"
#include "data/image.h"

enum { WIDTH = 13, HEIGHT = 9, ROW = WIDTH * 8, MAX_BYTES = 8192 };

typedef struct file {
  size_t n;
  uint8_t bytes[MAX_BYTES];
} file;

typedef struct kind {
  int colours, bits;
  bool interlaced;
  const char *comment;
} kind;

static const kind kinds[] = {{PNG_COLOR_TYPE_RGB, 8, false, "colours"},
                             {PNG_COLOR_TYPE_RGB, 8, true, "interlaced"},
                             {PNG_COLOR_TYPE_RGB, 16, false, "the upper 8 bits count"},
                             {PNG_COLOR_TYPE_RGB_ALPHA, 8, false, "transparency is left out"},
                             {PNG_COLOR_TYPE_RGB_ALPHA, 16, true, "both"},
                             {PNG_COLOR_TYPE_PALETTE, 8, false, "numbers of colours"},
                             {PNG_COLOR_TYPE_PALETTE, 4, true, "with transparent ones"},
                             {PNG_COLOR_TYPE_GRAY, 8, false, "grey"},
                             {PNG_COLOR_TYPE_GRAY, 2, false, "four levels of it"},
                             {PNG_COLOR_TYPE_GRAY_ALPHA, 8, true, "grey and transparency"}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static void append(png_structp png, png_bytep bytes, size_t n) {
  file *f = png_get_io_ptr(png);
  assert_true(f->n + n <= MAX_BYTES);
  memcpy(f->bytes + f->n, bytes, n);
  f->n += n;
}

static int level(int x, int y, int channel) { return (x * 17 + y * 29 + channel * 71) & 255; }

/** The stored sample; for palettes and few bits: a number. */
static int sample(const kind *k, int x, int y, int channel) {
  return k->bits >= 8 && k->colours != PNG_COLOR_TYPE_PALETTE
             ? level(x, y, channel)
             : (x + y) % (1 << (k->bits < 4 ? k->bits : 4));
}

static int wanted(const kind *k, int x, int y, int channel) {
  if (k->colours == PNG_COLOR_TYPE_PALETTE) return sample(k, x, y, 0) * (5 + channel);
  if (k->bits < 8) return sample(k, x, y, 0) * 255 / ((1 << k->bits) - 1);
  return sample(k, x, y, k->colours & PNG_COLOR_MASK_COLOR ? channel : 0);
}

static int channels_of(const kind *k) {
  if (k->colours == PNG_COLOR_TYPE_PALETTE) return 1;
  return (k->colours & PNG_COLOR_MASK_COLOR ? 3 : 1) + (k->colours & PNG_COLOR_MASK_ALPHA ? 1 : 0);
}

static void fill_row(const kind *k, int y, uint8_t row[ROW]) {
  const int channels = channels_of(k);
  memset(row, 0, ROW);
  for (int x = 0; x < WIDTH; x++) {
    for (int c = 0; c < channels; c++) {
      int at = x * channels + c, value = sample(k, x, y, c);
      if (k->bits == 16) {
        row[at * 2] = (uint8_t)value;
        row[at * 2 + 1] = 200;
      } else if (k->bits == 8) {
        row[at] = (uint8_t)value;
      } else {
        int per_byte = 8 / k->bits;
        row[at / per_byte] |= (uint8_t)(value << (8 - k->bits - at % per_byte * k->bits));
      }
    }
  }
}

static file encode(const kind *k) {
  file f = {0};
  uint8_t row[ROW];
  png_color palette[16];
  uint8_t alpha[3] = {0, 100, 255};
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
  png_infop info = png_create_info_struct(png);
  assert_non_null(info);
  png_set_write_fn(png, &f, append, NULL);
  png_set_IHDR(png, info, WIDTH, HEIGHT, k->bits, k->colours,
               k->interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_BASE,
               PNG_FILTER_TYPE_BASE);
  if (k->colours == PNG_COLOR_TYPE_PALETTE) {
    for (int n = 0; n < 16; n++) {
      palette[n] = (png_color){(uint8_t)(n * 5), (uint8_t)(n * 6), (uint8_t)(n * 7)};
    }
    png_set_PLTE(png, info, palette, 16);
    if (k->bits == 4) png_set_tRNS(png, info, alpha, 3, NULL);
  }
  png_write_info(png, info);
  for (int pass = png_set_interlace_handling(png); pass > 0; pass--) {
    for (int y = 0; y < HEIGHT; y++) {
      fill_row(k, y, row);
      png_write_row(png, row);
    }
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return f;
}

/** From a block of exactly the file's size, for the sanitizer; under a JPEG's name. */
static lac_status decode(const file *f, laci_image *image, lac_error *err) {
  uint8_t *exact = malloc(f->n + !f->n);
  assert_non_null(exact);
  memcpy(exact, f->bytes, f->n);
  lac_status st = laci_image_decode("x.JPEG", exact, f->n, image, err);
  free(exact);
  return st;
}

static void every_kind_is_read(void **state) {
  (void)state;
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    file f = encode(&kinds[k]);
    lac_error err = {0};
    if (decode(&f, &image, &err)) fail_msg("%s: %s", kinds[k].comment, err.text);
    assert_int_equal(image.width, WIDTH);
    assert_int_equal(image.height, HEIGHT);
    for (int at = 0; at < WIDTH * HEIGHT * 3; at++) {
      int x = at / 3 % WIDTH, y = at / 3 / WIDTH, want = wanted(&kinds[k], x, y, at % 3);
      if (image.rgb[at] == want) continue;
      fail_msg("%s: (%d, %d) channel %d: got %d, want %d", kinds[k].comment, x, y, at % 3,
               image.rgb[at], want);
    }
  }
  laci_image_clear(&image);
}

static void a_file_cut_off_before_its_pixels_end_is_refused(void **state) {
  (void)state;
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    file whole = encode(&kinds[k]);
    for (size_t n = 0; n < whole.n - 12; n++) { /* IEND, which holds nothing */
      file cut = whole;
      lac_error err = {0};
      cut.n = n;
      lac_status st = decode(&cut, &image, &err);
      if (st != LAC_BAD_FILE) fail_msg("%s, %zu bytes: %d", kinds[k].comment, n, st);
      assert_memory_equal(err.text, "x.JPEG: ", 8);
    }
  }
  laci_image_clear(&image);
}

/** A changed byte is noticed, or what it belongs to holds no pixels. */
static void damage_is_never_another_picture(void **state) {
  (void)state;
  laci_image image = {0};
  for (int k = 0; k < N_KINDS; k++) {
    file whole = encode(&kinds[k]);
    for (size_t at = 0; at < whole.n; at++) {
      file damaged = whole;
      damaged.bytes[at] ^= 0x10;
      if (decode(&damaged, &image, NULL)) continue;
      for (int p = 0; p < WIDTH * HEIGHT * 3; p++) {
        assert_int_equal(image.rgb[p], wanted(&kinds[k], p / 3 % WIDTH, p / 3 / WIDTH, p % 3));
      }
    }
  }
  laci_image_clear(&image);
}

static uint32_t crc_of(const uint8_t *bytes, size_t n) {
  uint32_t crc = UINT32_MAX;
  for (size_t k = 0; k < n; k++) {
    crc ^= bytes[k];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0);
  }
  return ~crc;
}

static void big_endian(uint8_t *to, uint32_t value) {
  for (int k = 0; k < 4; k++) to[k] = (uint8_t)(value >> (24 - 8 * k));
}

static void wrong_sizes_are_refused_before_memory_is_taken(void **state) {
  (void)state;
  static const struct {
    uint32_t width, height;
    lac_status status;
    const char *text;
  } cases[] = {{65000, 65000, LAC_BAD_FILE, "claims 65000 x 65000 pixels in "},
               {8000, 8000, LAC_BAD_FILE, "claims 8000 x 8000 pixels in "},
               {0, 9, LAC_BAD_FILE, "no whole PNG: "},
               {2147483647, 2147483647, LAC_BAD_FILE, "no whole PNG: "}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    laci_image image = {0};
    lac_error err = {0};
    file f = encode(&kinds[0]);
    big_endian(f.bytes + 16, cases[k].width);
    big_endian(f.bytes + 20, cases[k].height);
    big_endian(f.bytes + 29, crc_of(f.bytes + 12, 17));
    assert_int_equal(decode(&f, &image, &err), cases[k].status);
    if (!strstr(err.text, cases[k].text)) fail_msg("got '%s', want '%s'", err.text, cases[k].text);
    assert_int_equal(image.capacity_bytes, 0);
  }
}

static void other_bytes_are_no_image(void **state) {
  (void)state;
  static const char *const texts[] = {"GIF89a.............", "BM.........", "RIFF....WAVE", "",
                                      "\x89PN"};
  laci_image image = {0};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    file f = {.n = strlen(texts[k])};
    lac_error err = {0};
    memcpy(f.bytes, texts[k], f.n);
    assert_int_equal(decode(&f, &image, &err), LAC_BAD_FILE);
    assert_string_equal(err.text, f.n ? "x.JPEG: no image that is known, wanted JPEG, PNG or WebP"
                                      : "x.JPEG: an empty file, wanted an image");
  }
  laci_image_clear(&image);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_is_read),
      cmocka_unit_test(a_file_cut_off_before_its_pixels_end_is_refused),
      cmocka_unit_test(damage_is_never_another_picture),
      cmocka_unit_test(wrong_sizes_are_refused_before_memory_is_taken),
      cmocka_unit_test(other_bytes_are_no_image),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
