/* SPDX-License-Identifier: Apache-2.0
 * events_main FOLDER N: a TensorBoard event file of N steps, "loss" 1 / step and "accuracy/top1",
 * for the interoperability tests. Prints its path. */
#include <stdio.h>
#include <stdlib.h>

#include "train/events.h"

int main(int argc, char **argv) {
  lac_error err = {0};
  laci_events *events = NULL;
  if (argc != 3) {
    (void)fprintf(stderr, "events_main FOLDER N\n");
    return 2;
  }
  lac_status st = laci_events_create(argv[1], &events, &err);
  for (int step = 1; step <= atoi(argv[2]) && !st; step++) {
    laci_scalar scalars[2] = {{"loss", 1.0 / step}, {"accuracy/top1", 10.0 * step}};
    st = laci_events_write(events, step, scalars, 2, &err);
  }
  if (!st) {
    (void)printf("%s\n", laci_events_path(events));
    st = laci_events_close(events, &err);
  }
  if (st) (void)fprintf(stderr, "%s\n", err.text);
  return st ? 1 : 0;
}
