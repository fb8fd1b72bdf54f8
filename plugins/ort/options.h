/* SPDX-License-Identifier: Apache-2.0
 * The options of a session: entries of its configuration, ep.lacunaexecutionprovider.NAME. */
#ifndef LAC_ORT_OPTIONS_H
#define LAC_ORT_OPTIONS_H

#include "lacuna/run.h"
#include "table.h"

#define LAC_ORT_PROVIDER "LacunaExecutionProvider"

typedef struct laci_ort_options {
  bool all;          /* take all parts that Lacuna can run; false: only those that become faster */
  bool verbose;      /* log for each node whether it is taken, and why not */
  bool session_pool; /* true: compute on the session's threads; false: on threads of Lacuna */
  bool spins;        /* threads spin (wait in a busy loop) before they sleep */
  int threads;       /* number of threads; 0: that of the session */
  int plans;         /* maximum number of plans that are kept, one for each set of input shapes; 0:
                        Lacuna's default */
  lac_dtype dtype;
  uint64_t memory; /* limit of the planned memory in bytes; 0: Lacuna's default */
} laci_ort_options;

/** Fills *options. Fails LAC_BAD_ARGUMENT for a value that the entry does not allow; the text names
 * the entry. */
LAC_MUST_CHECK lac_status laci_ort_options_read(laci_ort_options *options, const laci_ort *ort,
                                                const ort_session_options *from, lac_error *err);

#endif
