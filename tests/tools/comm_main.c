/* SPDX-License-Identifier: Apache-2.0
 * comm_main [SECONDS] [RANK] [SAVING]: under mpirun, the checks of tests/support/comm_checks.h over
 * MPI; without, of a process alone. With SECONDS the process RANK then sleeps so long before the
 * others' agreement, which waits for 2 s (or 4 SAVING), or dies where it is 0. Process 0 takes
 * SAVING seconds to save before it ends all. With SECONDS alone it joins and is silent. Prints
 * "rank of size: ..." and ends with 1 where something is wrong. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "comm/comm_in.h"
#include "support/comm_checks.h"

static lac_status be_late(laci_comm *comm, int seconds, int rank, int saving, lac_error *err) {
  laci_comm_set_timeout(comm, saving ? 4 * saving : 2);
  if (seconds == 0) (void)signal(SIGTERM, SIG_IGN); /* mpirun's, to the others of one that died */
  if (rank == laci_comm_rank(comm) && seconds == 0) (void)raise(SIGKILL);
  if (rank == laci_comm_rank(comm)) sleep((unsigned)seconds);
  return laci_comm_agree_on_status(comm, LAC_OK, err);
}

/* Joins, and introduces itself to nobody. */
static int be_silent(int seconds) {
  const lac_transport *transport;
  lac_error err = {0};
  lac_status st = laci_comm_find_launched_transport(&transport, &err);
  if (st) fprintf(stderr, "comm_main: %s\n", err.text);
  sleep((unsigned)seconds);
  return 1;
}

int main(int argc, char **argv) {
  laci_comm_options o = {.timeout = 60};
  laci_comm *comm;
  lac_error err = {0};
  if (argc == 2) return be_silent(atoi(argv[1]));
  lac_status st = laci_comm_open(&o, &comm, &err);
  if (st) {
    fprintf(stderr, "comm_main: %s\n", err.text);
    laci_comm_close(comm, st);
    return 1;
  }
  const int rank = laci_comm_rank(comm), size = laci_comm_size(comm);
  const char *wrong = check_comm(comm);
  printf("%d of %d over %s: %s\n", rank, size, laci_comm_transport(comm), wrong ? wrong : "right");
  fflush(stdout);
  if (!wrong && argc >= 3)
    st = be_late(comm, atoi(argv[1]), atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0, &err);
  if (st && rank == 0 && argc == 4) {
    sleep((unsigned)atoi(argv[3]));
    printf("saved\n");
    fflush(stdout);
  }
  if (st == LAC_PEER) laci_comm_wait_for_process_0(comm);
  if (st) fprintf(stderr, "comm_main: %s\n", err.text);
  if (wrong) st = LAC_INTERNAL;
  laci_comm_close(comm, st);
  return st != LAC_OK;
}
