/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes the frame of a record. A length is used only if its checksum is right and the
 * file has so many bytes, so that never more memory is allocated than the file has bytes. */
#include "data/tfrecord.h"

#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/reader.h"
#include "base/writer.h"

enum { LENGTH = 8, CRC = 4, HEAD = LENGTH + CRC };

static void write_little_endian(uint8_t *to, uint64_t number, int n_bytes) {
  for (int k = 0; k < n_bytes; k++) to[k] = (uint8_t)(number >> (8 * k));
}

static uint64_t read_little_endian(const uint8_t *from, int n_bytes) {
  uint64_t number = 0;
  for (int k = 0; k < n_bytes; k++) number |= (uint64_t)from[k] << (8 * k);
  return number;
}

lac_status laci_tfrecord_append(laci_writer *writer, const void *bytes, size_t n, lac_error *err) {
  uint8_t head[HEAD], tail[CRC];
  write_little_endian(head, n, LENGTH);
  write_little_endian(head + LENGTH, laci_crc32c_masked(head, LENGTH), CRC);
  write_little_endian(tail, laci_crc32c_masked(bytes, n), CRC);
  lac_status st = laci_writer_append(writer, head, sizeof head, err);
  if (!st) st = laci_writer_append(writer, bytes, n, err);
  return st ? st : laci_writer_append(writer, tail, sizeof tail, err);
}

static lac_status fail_length(const char *path, size_t at, const uint8_t head[HEAD],
                              lac_error *err) {
  if (at == 0 && head[0] == 0x1F && head[1] == 0x8B) {
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s: TFRecords compressed by gzip, wanted them as they are", path);
  }
  return laci_fail(err, LAC_BAD_FILE,
                   "%s: byte %zu: the length of a record does not have its checksum", path, at);
}

lac_status laci_tfrecord_find(const char *path, laci_reader *reader, size_t at,
                              laci_tfrecord *record, lac_error *err) {
  uint8_t head[HEAD];
  const size_t left = laci_reader_size(reader) - at;
  if (left < HEAD + CRC) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: byte %zu: the file is cut off: %zu bytes are no record", path, at, left);
  }
  lac_status st = laci_reader_copy_range(reader, at, HEAD, head, err);
  if (st) return st;
  if (read_little_endian(head + LENGTH, CRC) != laci_crc32c_masked(head, LENGTH)) {
    return fail_length(path, at, head, err);
  }
  const uint64_t n = read_little_endian(head, LENGTH);
  if (n > left - HEAD - CRC) {
    return laci_fail(err, LAC_BAD_FILE,
                     "%s: byte %zu: the file is cut off: a record of %" PRIu64
                     " bytes, and %zu are left",
                     path, at, n, left - HEAD - CRC);
  }
  *record = (laci_tfrecord){at, at + HEAD, (size_t)n, at + HEAD + (size_t)n + CRC};
  return LAC_OK;
}

lac_status laci_tfrecord_read(const char *path, laci_reader *reader, const laci_tfrecord *record,
                              uint8_t **bytes, lac_error *err) {
  *bytes = laci_alloc(record->n + CRC, 1);
  if (!*bytes) return laci_fail_memory(err, path);
  lac_status st = laci_reader_copy_range(reader, record->data, record->n + CRC, *bytes, err);
  if (!st && read_little_endian(*bytes + record->n, CRC) != laci_crc32c_masked(*bytes, record->n)) {
    st = laci_fail(err, LAC_BAD_FILE, "%s: byte %zu: a record does not have its checksum", path,
                   record->at);
  }
  if (!st) return LAC_OK;
  laci_free(*bytes);
  *bytes = NULL;
  return st;
}
