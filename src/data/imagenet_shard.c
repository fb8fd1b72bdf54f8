/* SPDX-License-Identifier: Apache-2.0
 * Writes images to a shard. Each image is decoded completely, to find out whether it is damaged. A
 * JPEG that all readers support is stored unchanged; any other image is stored as a JPEG encoded
 * from its pixels. */
#include "data/imagenet_shard.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/writer.h"
#include "data/dataset_in.h"
#include "data/example.h"
#include "data/image.h"
#include "data/shuffle.h"
#include "data/tfrecord.h"

enum { SYNSET = 16, LINE = 2048 };

static const char *file_name_of_image(const laci_raw_image *image) {
  const char *slash = strrchr(image->name, '/');
  return slash ? slash + 1 : image->name;
}

/** Records a broken image: appends its file's name, a tab, and the error text without "NAME: " to
 * shard->broken_lines. Also logs the text. */
static lac_status record_broken_image(laci_imagenet_shard *shard, const laci_raw_image *image,
                                      const lac_error *why, lac_error *err) {
  char line[LINE];
  const char *name = file_name_of_image(image);
  size_t n_name = strlen(name);
  bool named = strncmp(why->text, name, n_name) == 0 && why->text[n_name] == ':';
  int n = snprintf(line, sizeof line, "%s\t%s", name, why->text + (named ? n_name + 2 : 0));
  if (n >= (int)sizeof line) n = sizeof line - 1;
  for (int k = 0; k < n; k++) {
    if ((unsigned char)line[k] < ' ' && (line[k] != '\t' || k < (int)n_name)) line[k] = '?';
  }
  laci_log(LAC_LOG_WARNING, "left out: %s", why->text);
  char *grown = laci_resize(shard->broken_lines, shard->n_broken_bytes,
                            shard->n_broken_bytes + (size_t)n + 2, 1);
  if (!grown) return laci_fail_memory(err, shard->name);
  memcpy(grown + shard->n_broken_bytes, line, (size_t)n);
  grown[shard->n_broken_bytes + (size_t)n] = '\n';
  shard->broken_lines = grown;
  shard->n_broken_bytes += (size_t)n + 1;
  shard->broken++;
  return LAC_OK;
}

static lac_status append_image_example(const laci_imagenet_shard *shard,
                                       const laci_raw_image *image, const laci_image *decoded,
                                       const laci_encoded *encoded, laci_writer *writer,
                                       lac_error *err) {
  char synset[SYNSET];
  uint8_t *bytes = NULL;
  size_t n = 0;
  laci_imagenet_write_synset(image->label, synset);
  laci_example example = {.encoded = encoded->bytes,
                          .encoded_bytes = encoded->size_bytes,
                          .height = decoded->height,
                          .width = decoded->width,
                          .label = image->label + 1,
                          .synset = synset,
                          .text = shard->texts[image->label],
                          .filename = file_name_of_image(image)};
  lac_status st = laci_example_pack(&example, &bytes, &n, err);
  if (!st) st = laci_tfrecord_append(writer, bytes, n, err);
  laci_free(bytes);
  return st;
}

/** Appends an image to the shard. An image that cannot be decoded is recorded as broken, which is
 * not a failure. */
static lac_status append_image_to_shard(laci_imagenet_shard *shard, const laci_raw_image *image,
                                        laci_image *decoded, laci_writer *writer, lac_error *err) {
  lac_error why = {0};
  laci_encoded encoded = {0};
  lac_status st = laci_raw_read_image(shard->raw, image, &encoded.memory, &encoded.size_bytes, err);
  if (st) return st;
  encoded.bytes = encoded.memory;
  const char *name = file_name_of_image(image);
  st = laci_image_decode(name, encoded.bytes, encoded.size_bytes, decoded, &why);
  if (st == LAC_BAD_FILE || st == LAC_UNSUPPORTED) {
    laci_free(encoded.memory);
    return record_broken_image(shard, image, &why, err);
  }
  if (st && err) *err = why;
  if (!st && !laci_image_is_common_jpeg(encoded.bytes, encoded.size_bytes)) {
    laci_free(encoded.memory);
    st = laci_jpeg_encode(name, decoded, &encoded.memory, &encoded.size_bytes, err);
    encoded.bytes = encoded.memory;
  }
  if (!st) st = append_image_example(shard, image, decoded, &encoded, writer, err);
  if (!st) shard->images++;
  laci_free(encoded.memory);
  return st;
}

lac_status laci_imagenet_shard_write(laci_imagenet_shard *shard, laci_imagenet_counter *counter,
                                     void *context, lac_error *err) {
  laci_arena scratch = {0};
  laci_writer *writer = NULL;
  laci_image decoded = {0};
  const laci_write_options replace = {.force = true};
  const char *path = laci_path_join(&scratch, shard->folder, shard->name);
  lac_status st =
      path ? laci_writer_open(path, &replace, &writer, err) : laci_fail_memory(err, shard->name);
  for (int64_t place = shard->first; place < shard->end && !st; place++) {
    int64_t at =
        laci_shuffled_index(shard->seed, (uint64_t)shard->part, (int64_t)shard->raw->n, place);
    st = append_image_to_shard(shard, &shard->raw->images[at], &decoded, writer, err);
    if (!st && !counter(context)) st = laci_fail(err, LAC_INTERRUPTED, "interrupted");
  }
  if (!st) st = laci_writer_finish(writer, err);
  if (!st) st = laci_writer_commit(writer, err);
  laci_writer_destroy(writer);
  laci_image_clear(&decoded);
  laci_arena_clear(&scratch);
  return st;
}

void laci_imagenet_shard_clear(laci_imagenet_shard *shard) {
  laci_free(shard->broken_lines);
  shard->broken_lines = NULL;
}
