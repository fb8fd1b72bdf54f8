/* SPDX-License-Identifier: Apache-2.0
 * Access to the contents of a public lac_process_group. */
#ifndef LACI_API_RUN_PROCESS_GROUP_IN_H
#define LACI_API_RUN_PROCESS_GROUP_IN_H

#include "lacuna/status.h"

typedef struct lac_process_group lac_process_group;
typedef struct laci_comm laci_comm;

/** Returns the communicator, which the group owns; NULL: this process is alone. */
laci_comm *laci_process_group_comm(const lac_process_group *group);

/** Makes a group that owns comm. Fails LAC_NO_MEMORY. */
LAC_MUST_CHECK lac_status laci_process_group_create(laci_comm *comm, lac_process_group **group,
                                                    lac_error *err);

#endif
