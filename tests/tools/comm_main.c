/* SPDX-License-Identifier: Apache-2.0
 * comm_main [SECONDS] [RANK]: under mpirun, the checks of tests/support/comm_checks.h over MPI;
 * without, of a process alone. With SECONDS the process RANK then sleeps so long before the others'
 * broadcast, which wait for 2 s. Prints "rank of size: ..." and ends with 1 where something is
 * wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/comm_checks.h"

static lac_status be_late(laci_comm *comm, int seconds, int rank, lac_error *err) {
  char byte = 0;
  laci_comm_set_timeout(comm, 2);
  if (rank == laci_comm_rank(comm)) sleep((unsigned)seconds);
  return laci_comm_broadcast(comm, &byte, 1, err);
}

int main(int argc, char **argv) {
  laci_comm_options o = {.timeout = 60};
  laci_comm *comm;
  lac_error err = {0};
  lac_status st = laci_comm_open(&o, &comm, &err);
  if (st) {
    fprintf(stderr, "comm_main: %s\n", err.text);
    return 1;
  }
  const int rank = laci_comm_rank(comm), size = laci_comm_size(comm);
  const char *wrong = check_comm(comm);
  printf("%d of %d over %s: %s\n", rank, size, laci_comm_transport(comm), wrong ? wrong : "right");
  fflush(stdout);
  if (!wrong && argc == 3) st = be_late(comm, atoi(argv[1]), atoi(argv[2]), &err);
  if (st) fprintf(stderr, "comm_main: %s\n", err.text);
  if (wrong) st = LAC_INTERNAL;
  laci_comm_close(comm, st);
  return st != LAC_OK;
}
