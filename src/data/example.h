/* SPDX-License-Identifier: Apache-2.0
 * One labelled image as TensorFlow's reference scripts store it: a tf.train.Example, a map of
 *
 *     image/encoded         the file's bytes                image/height, image/width
 *     image/class/label     1..1000; 0 would be background  image/channels      3
 *     image/class/synset    n01440764                       image/colorspace    RGB
 *     image/class/text      readable name of the class      image/format        JPEG
 *     image/filename        n01440764_18.JPEG
 */
#ifndef LACI_DATA_EXAMPLE_H
#define LACI_DATA_EXAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "lacuna/status.h"

typedef struct laci_reader laci_reader;

/** The fields of a TensorFlow Example that is written. */
typedef struct laci_example {
  const uint8_t *encoded; /* the bytes of the image's file, a JPEG */
  size_t encoded_bytes;
  int height, width; /* size of the image in pixels */
  int label;         /* image/class/label, 1..1000 */
  const char *synset, *text, *filename;
} laci_example;

/** Encodes an Example as a protobuf message of *n bytes, which the caller frees (laci_free). Equal
 * Examples give equal bytes. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_example_pack(const laci_example *example, uint8_t **bytes, size_t *n,
                                            lac_error *err);

/** Where an Example is read from: memory, or a part of a file, of which as little as possible is
 * read. */
typedef struct laci_example_source {
  const char *name;     /* for messages */
  size_t at;            /* position of the Example in its file, for error messages */
  size_t n;             /* number of the Example's bytes */
  const uint8_t *bytes; /* the Example's bytes; NULL: they are in the file that `reader` reads */
  laci_reader *reader;
  size_t offset; /* offset of the Example's data in the file */
} laci_example_source;

enum { LACI_SYNSET_BYTES = 32 };

/** The fields of a TensorFlow Example that are read. */
typedef struct laci_example_view {
  size_t encoded, encoded_bytes;  /* position and size of image/encoded in the Example */
  int64_t label;                  /* image/class/label, unchanged */
  char synset[LACI_SYNSET_BYTES]; /* image/class/synset; "": it is missing, or too long */
} laci_example_view;

/** Finds the fields of an Example. Fails LAC_BAD_FILE if the bytes are no Example, or if the
 * Example does not have exactly one image and one label; LAC_IO. Any thread. */
LAC_MUST_CHECK lac_status laci_example_find_features(const laci_example_source *source,
                                                     laci_example_view *view, lac_error *err);

#endif
