/* SPDX-License-Identifier: Apache-2.0
 * replay FOLDER: gives every file of a corpus to the fuzz target it is linked with, without
 * libFuzzer. A target aborts where something does not hold. */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#include "base/reader.h"
#include "fuzz/fuzz.h"

int main(int argc, char **argv) {
  DIR *listing = argc == 2 ? opendir(argv[1]) : NULL;
  int n = 0;
  if (!listing) {
    (void)fprintf(stderr, "usage: replay FOLDER\n");
    return 2;
  }
  for (struct dirent *item; (item = readdir(listing));) {
    char path[PATH_MAX];
    laci_file_bytes file;
    lac_error err = {0};
    if (item->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "%s/%s", argv[1], item->d_name);
    if (laci_file_bytes_read(path, &file, &err)) {
      (void)fprintf(stderr, "%s\n", err.text);
      (void)closedir(listing);
      return 1;
    }
    (void)fprintf(stderr, "%s\n", path); /* the last one, where a target aborts */
    (void)LLVMFuzzerTestOneInput(file.bytes, file.size_bytes);
    laci_file_bytes_clear(&file);
    n++;
  }
  (void)closedir(listing);
  printf("%d passed, 0 failed\n", n);
  return n == 0;
}
