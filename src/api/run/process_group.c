/* SPDX-License-Identifier: Apache-2.0
 * Implements lacuna/process_group.h with src/comm. */
#include "lacuna/process_group.h"

#include "api/model/structs.h"
#include "api/run/process_group_in.h"
#include "base/error.h"
#include "base/memory.h"
#include "comm/comm.h"

static const double LONGEST_S = 1e9;

struct lac_process_group {
  laci_comm *comm;
};

void lac_process_group_options_init(lac_process_group_options *options, size_t size) {
  const lac_process_group_options usual = {.size = sizeof usual, .timeout_seconds = 300};
  laci_struct_set_defaults(&usual, sizeof usual, options, size);
}

laci_comm *laci_process_group_comm(const lac_process_group *group) {
  return group ? group->comm : NULL;
}

static lac_status check_timeout(double seconds, lac_error *err) {
  if (seconds > 0 && seconds <= LONGEST_S) return LAC_OK;
  return laci_fail(err, LAC_BAD_ARGUMENT, "timeout %g: wanted more than 0 and at most %g seconds",
                   seconds, LONGEST_S);
}

lac_status laci_process_group_create(laci_comm *comm, lac_process_group **group, lac_error *err) {
  *group = laci_alloc(1, sizeof **group);
  if (!*group) return laci_fail_memory(err, "a group of processes");
  (*group)->comm = comm;
  return LAC_OK;
}

lac_status lac_process_group_open(const lac_process_group_options *options,
                                  lac_process_group **group, lac_error *err) {
  lac_process_group *made;
  if (group) *group = NULL;
  lac_status st = LACI_CHECK_GIVEN(err, {"options", options}, {"group", group});
  lac_process_group_options own;
  if (!st) st = laci_take_process_group_options(options, &own, err);
  if (!st) st = check_timeout(own.timeout_seconds, err);
  if (st) return st;
  const laci_comm_options how = {.timeout = own.timeout_seconds};
  st = laci_process_group_create(NULL, &made, err);
  if (st) return st;
  st = laci_comm_open(&how, &made->comm, err);
  if (made->comm) *group = made;
  else laci_free(made);
  return st;
}

void lac_process_group_close(lac_process_group *group, lac_status ended) {
  laci_comm *comm = laci_process_group_comm(group);
  laci_free(group);
  laci_comm_close(comm, ended);
}

int lac_process_group_launched_rank(void) { return laci_comm_rank_from_environment(); }

int lac_process_group_rank(const lac_process_group *group) {
  return laci_comm_rank(laci_process_group_comm(group));
}

int lac_process_group_size(const lac_process_group *group) {
  return laci_comm_size(laci_process_group_comm(group));
}

lac_status lac_process_group_set_timeout(lac_process_group *group, double seconds, lac_error *err) {
  lac_status st = check_timeout(seconds, err);
  if (!st) laci_comm_set_timeout(laci_process_group_comm(group), seconds);
  return st;
}

lac_status lac_process_group_agree(lac_process_group *group, lac_status mine, lac_error *err) {
  return laci_comm_agree_on_status(laci_process_group_comm(group), mine, err);
}

void lac_process_group_leave_to_first(lac_process_group *group) {
  laci_comm_wait_for_process_0(laci_process_group_comm(group));
}

bool lac_process_group_agreed(const lac_process_group *group) {
  return laci_comm_is_failure_known_to_all(laci_process_group_comm(group));
}

lac_status lac_process_group_broadcast(lac_process_group *group, void *bytes, size_t n,
                                       lac_error *err) {
  lac_status st = LACI_CHECK_GIVEN(err, {"bytes", bytes});
  return st ? st : laci_comm_broadcast(laci_process_group_comm(group), bytes, n, err);
}
