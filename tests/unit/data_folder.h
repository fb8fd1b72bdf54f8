/* SPDX-License-Identifier: Apache-2.0
 * Folders of data made for a test and taken away after it. */
#ifndef TESTS_UNIT_DATA_FOLDER_H
#define TESTS_UNIT_DATA_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/reader.h"
#include "base/writer.h"

#define PICTURE LAC_SOURCE_DIR "/tests/fixtures/data/colour.jpg"
enum { FOLDER_PATH = 512 };

typedef struct folder {
  char path[64];
} folder;

static inline folder make_folder(void) {
  folder f = {"data_test_XXXXXX"};
  assert_non_null(mkdtemp(f.path));
  return f;
}

static inline void path_in(char path[FOLDER_PATH], const folder *f, const char *name) {
  (void)snprintf(path, FOLDER_PATH, "%s/%s", f->path, name);
}

static inline void add_bytes(const folder *f, const char *name, const void *bytes, size_t n) {
  char path[FOLDER_PATH];
  path_in(path, f, name);
  char *slash = strrchr(path + strlen(f->path) + 1, '/');
  if (slash) {
    *slash = '\0';
    (void)mkdir(path, 0777);
    *slash = '/';
  }
  assert_int_equal(laci_file_write(path, bytes, n, true, NULL), LAC_OK);
}

static inline void add_text(const folder *f, const char *name, const char *text) {
  add_bytes(f, name, text, strlen(text));
}

static inline void add_picture(const folder *f, const char *name) {
  laci_file_bytes map;
  assert_int_equal(laci_file_bytes_read(PICTURE, &map, NULL), LAC_OK);
  add_bytes(f, name, map.bytes, map.size_bytes);
  laci_file_bytes_clear(&map);
}

/** n records of CIFAR: the label `first + k` modulo n_classes, pixels made of k and the place. */
static inline void add_cifar(const folder *f, const char *name, int n_labels, int n, int first,
                             int n_classes) {
  size_t size = (size_t)n_labels + 3072;
  unsigned char *bytes = calloc((size_t)n, size);
  assert_non_null(bytes);
  for (int k = 0; k < n; k++) {
    unsigned char *record = bytes + (size_t)k * size;
    record[n_labels - 1] = (unsigned char)((first + k) % n_classes);
    for (int at = 0; at < 3072; at++) {
      record[n_labels + at] = (unsigned char)(at * 7 + (first + k) * 31);
    }
  }
  add_bytes(f, name, bytes, (size_t)n * size);
  free(bytes);
}

static inline void remove_folder(const folder *f) {
  char command[FOLDER_PATH];
  (void)snprintf(command, sizeof command, "rm -r -- '%s'", f->path);
  assert_int_equal(system(command), 0);
}

#endif
