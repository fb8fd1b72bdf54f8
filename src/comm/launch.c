/* SPDX-License-Identifier: Apache-2.0
 * Finds whether this process was started as one of several. Launchers say so in the environment;
 * only then is the plug-in loaded, so that nothing else depends on MPI.
 *
 * A process that was started with others and cannot reach them must not continue: each of them
 * would do the whole job and write the same files. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* declares secure_getenv */
#endif
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/installed.h"
#include "base/error.h"
#include "base/plugin.h"
#include "comm/comm_in.h"
#include "lacuna/plugin.h"

#define PLUGIN "lib/lacuna/lacuna-mpi.so"

/** The environment variables by which a launcher tells a process how many processes it started
 * (size) and which of them this one is (rank). */
typedef struct launcher {
  const char *name, *size, *rank;
} launcher;

static const launcher LAUNCHERS[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"mpiexec", "PMI_SIZE", "PMI_RANK"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
};

/* Returns the launcher that started this process; NULL: none did. */
static const launcher *find_launcher(void) {
  for (size_t k = 0; k < sizeof LAUNCHERS / sizeof LAUNCHERS[0]; k++) {
    if (getenv(LAUNCHERS[k].size) && getenv(LAUNCHERS[k].rank)) return &LAUNCHERS[k];
  }
  return NULL;
}

static int count_started_processes(const launcher *by) { return by ? atoi(getenv(by->size)) : 1; }

int laci_comm_rank_from_environment(void) {
  const launcher *by = find_launcher();
  return count_started_processes(by) > 1 ? atoi(getenv(by->rank)) : 0;
}

static lac_status fail_to_load_plugin(const launcher *by, int n, const char *what, const char *why,
                                      lac_error *err) {
  return laci_fail(err, LAC_UNSUPPORTED,
                   "%s started %d processes, but %s cannot be used: %s; a single process needs "
                   "no %s",
                   by->name, n, what, why, by->name);
}

/* Loads the plug-in for MPI. Its shared library is never closed, since MPI can be started only once
 * in a process. */
static lac_status load_mpi_plugin(const launcher *by, int n, lac_plugin *plugin, lac_error *err) {
  char path[PATH_MAX];
  void *handle;
  lac_error why = {0};
  const char *named = secure_getenv("LACUNA_MPI");
  if (named && *named) (void)snprintf(path, sizeof path, "%s", named);
  else if (!laci_find_installed_file(PLUGIN, path))
    (void)snprintf(path, sizeof path, "%s", LAC_MPI_PLUGIN);
  /* RTLD_GLOBAL, since Open MPI loads further libraries, which need its symbols */
  if (laci_plugin_open(path, true, plugin, &handle, &why))
    return fail_to_load_plugin(by, n, "the MPI plug-in", why.text, err);
  if (!plugin->open_transport)
    return fail_to_load_plugin(by, n, path, "it offers no transport", err);
  return LAC_OK;
}

lac_status laci_comm_find_launched_transport(const lac_transport **transport, lac_error *err) {
  const launcher *by = find_launcher();
  lac_plugin plugin;
  const char *why = NULL;
  *transport = NULL;
  int n = count_started_processes(by);
  if (n <= 1) return LAC_OK;
  lac_status st = load_mpi_plugin(by, n, &plugin, err);
  if (st) return st;
  lac_transport *t = plugin.open_transport(&why);
  if (!t) return fail_to_load_plugin(by, n, "MPI", why, err);
  if (t->size != n) {
    int size = t->size;
    t->end(t->self, 0);
    return laci_fail(err, LAC_UNSUPPORTED,
                     "%s started %d processes, but MPI (%s) joined %d: wanted a launcher of the "
                     "same MPI (srun with pmix, say)",
                     by->name, n, t->name, size);
  }
  *transport = t;
  return LAC_OK;
}
