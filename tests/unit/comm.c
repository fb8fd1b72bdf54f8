/* SPDX-License-Identifier: Apache-2.0
 * Groups of processes, as threads of this program. tests/tools/comm_main.c makes the same checks
 * under MPI. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/error.h"
#include "support/comm_checks.h"
#include "support/transport.h"

typedef struct member {
  pthread_t thread;
  local_member *local;
  laci_comm_options options;
  lac_status status;
  lac_error err;
  const char *(*check)(laci_comm *comm);
  const char *wrong;
  lac_status ends_with;
} member;

static void *live(void *context) {
  member *m = context;
  laci_comm *comm = NULL;
  m->status = laci_comm_open_transport(&m->local->face, &m->options, &comm, &m->err);
  if (m->status) {
    laci_comm_close(comm, m->status);
    return NULL;
  }
  m->wrong = m->check(comm);
  laci_comm_close(comm, m->ends_with);
  return NULL;
}

static void run_members(local_world *world, member *members, const char *(*check)(laci_comm *),
                        laci_comm_options options, lac_status ends_with) {
  for (int k = 0; k < world->size; k++) {
    members[k] = (member){
        .local = &world->members[k], .options = options, .check = check, .ends_with = ends_with};
    assert_int_equal(pthread_create(&members[k].thread, NULL, live, &members[k]), 0);
  }
  for (int k = 0; k < world->size; k++) pthread_join(members[k].thread, NULL);
}

static void try_group(int size) {
  member members[MOST_MEMBERS];
  local_world *world = local_world_create(size);
  run_members(world, members, check_comm, (laci_comm_options){.timeout = 60}, LAC_OK);
  for (int k = 0; k < size; k++) {
    assert_int_equal(members[k].status, LAC_OK);
    assert_null(members[k].wrong);
    assert_int_equal(world->members[k].ended, 0);
  }
  local_world_destroy(world);
}

static void groups_agree_on_every_byte(void **state) {
  (void)state;
  for (int size = 1; size <= 5; size++) { try_group(size); }
}

static void a_process_alone_needs_no_comm(void **state) {
  (void)state;
  assert_null(check_comm(NULL));
  assert_int_equal(laci_comm_rank(NULL), 0);
  assert_int_equal(laci_comm_size(NULL), 1);
}

/* ---- Failures ---- */

static lac_error last_error[MOST_MEMBERS];

/* What operations that nobody ended read and write. It stays, since other members may still reach
 * it after the member has failed. */
enum { MOST_LEFT = 64 };
static struct {
  laci_comm_sum *sum;
  char bytes[4];
  float x[100];
} left[MOST_LEFT];
static atomic_int n_left;

static const char *come_late(laci_comm *comm) {
  const int rank = laci_comm_rank(comm), at = atomic_fetch_add(&n_left, 1);
  if (at >= MOST_LEFT) return "too few places";
  if (laci_comm_broadcast(comm, left[at].bytes, sizeof left[at].bytes, NULL)) return "broadcast";
  if (laci_comm_sum_create(comm, 100, LACI_WIRE_F32, &left[at].sum, NULL)) return "making a sum";
  laci_comm_set_timeout(comm, 0.3);
  if (rank == 2) return NULL; /* never begins the sum, and closes */
  laci_comm_sum_begin(left[at].sum, left[at].x, 100);
  lac_status st = laci_comm_sum_end(left[at].sum, &last_error[rank]);
  return st == LAC_PEER ? NULL : "no failure";
}

static void a_process_that_is_missed_is_named(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  local_world *world = local_world_create(3);
  run_members(world, members, come_late, (laci_comm_options){.timeout = 60}, LAC_OK);
  for (int k = 0; k < 3; k++) assert_null(members[k].wrong);
  assert_string_equal(last_error[0].text, "process 2 has not answered for 0.3 s");
  assert_string_equal(last_error[1].text,
                      "process 1 got no answer for 0.3 s, and no word of process 0 about it");
  local_world_destroy(world);
}

static void a_transport_that_fails_says_why(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  for (int after = 1; after < 30; after += 7) {
    local_world *world = local_world_create(2);
    world->members[1].fails_in = after;
    run_members(world, members, come_late, (laci_comm_options){.timeout = 0.3}, LAC_OK);
    bool in_opening = members[1].status != LAC_OK;
    if (in_opening) {
      assert_int_equal(members[1].status, LAC_PEER);
      assert_string_equal(members[1].err.text, "process 1: the wire was cut");
      assert_int_equal(world->members[1].ended, 1);
    }
    local_world_destroy(world);
  }
}

/* Process 1 comes 2 s later to the end than the others, which wait for 0.3 s. */
static const char *fail_together(laci_comm *comm) {
  const struct timespec late = {2, 0};
  lac_error err = {0};
  laci_comm_set_timeout(comm, 60);
  if (laci_comm_agree_on_status(comm, laci_fail(&err, LAC_IO, "all"), &err) != LAC_IO)
    return "status";
  laci_comm_set_timeout(comm, 0.3);
  if (laci_comm_rank(comm) == 1) (void)nanosleep(&late, NULL);
  return NULL;
}

static const char *succeed_together(laci_comm *comm) {
  const struct timespec late = {2, 0};
  laci_comm_set_timeout(comm, 0.3);
  if (laci_comm_rank(comm) == 1) (void)nanosleep(&late, NULL);
  return NULL;
}

static void only_a_success_is_closed_without_haste(void **state) {
  (void)state;
  for (int failed = 0; failed < 2; failed++) {
    member members[MOST_MEMBERS];
    local_world *world = local_world_create(2);
    run_members(world, members, failed ? fail_together : succeed_together,
                (laci_comm_options){.timeout = 60}, failed ? LAC_IO : LAC_OK);
    for (int k = 0; k < 2; k++) {
      assert_null(members[k].wrong);
      assert_int_equal(world->members[k].ended, failed);
    }
    local_world_destroy(world);
  }
}

static const char *meet_often(laci_comm *comm) {
  for (int k = 0; k < 1000; k++) {
    if (laci_comm_agree_on_status(comm, LAC_OK, NULL)) return "agreeing";
  }
  return NULL;
}

static void words_to_process_0_do_not_pile_up(void **state) {
  (void)state;
  member members[MOST_MEMBERS];
  local_world *world = local_world_create(3);
  run_members(world, members, meet_often, (laci_comm_options){.timeout = 60}, LAC_OK);
  for (int k = 0; k < 3; k++) assert_null(members[k].wrong);
  assert_true(world->n_words > 2000);
  assert_true(world->n_words - world->n_heard < 20);
  local_world_destroy(world);
}

static void too_much_at_a_time_is_refused(void **state) {
  (void)state;
  local_world *world = local_world_create(1);
  laci_comm_options o = {.timeout = 60};
  laci_comm *comm;
  laci_comm_sum *sum;
  lac_error err = {0};
  assert_int_equal(laci_comm_open_transport(&world->members[0].face, &o, &comm, &err), LAC_OK);
  assert_int_equal(laci_comm_sum_create(comm, INT64_C(1) << 40, LACI_WIRE_F32, &sum, &err),
                   LAC_BAD_ARGUMENT);
  assert_null(sum);
  laci_comm_close(comm, LAC_IO); /* nobody else knows: all are ended */
  assert_int_equal(world->members[0].ended, 1);
  local_world_destroy(world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_agree_on_every_byte),
      cmocka_unit_test(a_process_alone_needs_no_comm),
      cmocka_unit_test(a_process_that_is_missed_is_named),
      cmocka_unit_test(a_transport_that_fails_says_why),
      cmocka_unit_test(only_a_success_is_closed_without_haste),
      cmocka_unit_test(words_to_process_0_do_not_pile_up),
      cmocka_unit_test(too_much_at_a_time_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
