/* SPDX-License-Identifier: Apache-2.0
 * Checks of a group of processes over any transport. Each check is called by every process of the
 * group with its own comm; it returns NULL, or what is wrong. */
#ifndef TESTS_SUPPORT_COMM_CHECKS_H
#define TESTS_SUPPORT_COMM_CHECKS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "comm/comm.h"
#include "tensor/bf16.h"

enum { CHECKED_SUMS = 7 };

/** Returns number i of process k. Magnitudes vary widely, so that the order of additions changes
 * the sum. */
static float checked_number(int k, int64_t i) {
  uint32_t bits = (uint32_t)(i * 2654435761U + (uint32_t)k * 40503U);
  bits ^= bits >> 13;
  float scale = (float)(1 << (bits % 24));
  return ((float)(bits % 2001) - 1000.0F) / scale;
}

/** Returns the sum by definition: in the order of ranks. */
static float checked_sum(int size, int64_t i, laci_wire wire) {
  float sum = 0;
  for (int k = 0; k < size; k++) {
    float x = checked_number(k, i);
    if (wire == LACI_WIRE_BF16) x = laci_bf16_value(laci_bf16_round(x));
    sum = k ? sum + x : x;
  }
  return wire == LACI_WIRE_BF16 ? laci_bf16_value(laci_bf16_round(sum)) : sum;
}

static const char *check_bytes(laci_comm *comm) {
  const int rank = laci_comm_rank(comm), size = laci_comm_size(comm);
  unsigned char bytes[1000], all[8 * sizeof(int64_t)];
  int64_t mine = 1000 + rank, got;
  for (int i = 0; i < 1000; i++) bytes[i] = (unsigned char)(rank + i);
  if (laci_comm_broadcast(comm, bytes, sizeof bytes, NULL)) return "broadcast";
  for (int i = 0; i < 1000; i++) {
    if (bytes[i] != (unsigned char)i) return "broadcast bytes";
  }
  if (laci_comm_gather(comm, &mine, sizeof mine, all, NULL)) return "gather";
  for (int k = 0; k < size; k++) {
    memcpy(&got, all + (size_t)k * sizeof got, sizeof got);
    if (got != 1000 + k) return "gathered bytes";
  }
  size_t begin[9] = {0};
  for (int k = 0; k < size; k++) begin[k + 1] = begin[k] + (size_t)k * 3; /* process 0 has none */
  for (size_t i = begin[rank]; i < begin[rank + 1]; i++) bytes[i] = (unsigned char)(100 + rank);
  if (laci_comm_gather_parts(comm, bytes, begin, NULL)) return "parts";
  for (int k = 0; k < size; k++) {
    for (size_t i = begin[k]; i < begin[k + 1]; i++) {
      if (bytes[i] != 100 + k) return "bytes of parts";
    }
  }
  return NULL;
}

static const char *check_agreement(laci_comm *comm) {
  const int rank = laci_comm_rank(comm), size = laci_comm_size(comm), last = size - 1;
  lac_error err = {0};
  char wanted[64];
  uint32_t any = rank == last ? 4 : 1;
  if (laci_comm_agree_on_status(comm, LAC_OK, &err) || err.text[0]) return "all agree";
  if (laci_comm_is_failure_known_to_all(comm) != (comm == NULL)) return "agreed without a failure";
  lac_status mine = LAC_OK;
  if (rank == last) {
    mine = laci_hint(&err, LAC_HINT_BATCH, laci_fail(&err, LAC_IO, "the disk of %d is full", rank));
  }
  if (laci_comm_agree_on_status(comm, mine, &err) != LAC_IO) return "the status of the last";
  (void)snprintf(wanted, sizeof wanted, "process %d: the disk of %d is full", last, last);
  if (size > 1 && strcmp(err.text, wanted) != 0) return "the text of the last";
  if (err.hint != LAC_HINT_BATCH) return "the hint";
  if (!laci_comm_is_failure_known_to_all(comm)) return "nobody knows of it";
  if (laci_comm_vote_begin(comm, any, NULL) || laci_comm_vote_end(comm, &any, NULL)) return "vote";
  if (any != (size > 1 ? 5U : 4U)) return "bits of a vote";
  if (comm && laci_comm_is_failure_known_to_all(comm)) return "agreed on what comes after";
  any = rank == last ? 4 : 1;
  if (laci_comm_vote_begin(comm, any, NULL) || laci_comm_vote_wait(comm, 2, NULL))
    return "awaiting";
  if (laci_comm_vote_end(comm, &any, NULL)) return "the end of an awaited vote";
  return any == (size > 1 ? 5U : 4U) ? NULL : "bits of an awaited vote";
}

/** Checks several sums at the same time, which are begun, polled and ended in the same order. */
static const char *check_sums(laci_comm *comm, laci_wire wire, unsigned seed) {
  static const int64_t counts[CHECKED_SUMS] = {1, 0, 16, 17, 1000, 65536 + 5, 31};
  const int rank = laci_comm_rank(comm), size = laci_comm_size(comm);
  laci_comm_sum *sums[CHECKED_SUMS];
  float *x[CHECKED_SUMS];
  const char *wrong = NULL;
  for (int s = 0; s < CHECKED_SUMS; s++) {
    if (laci_comm_sum_create(comm, counts[s], wire, &sums[s], NULL)) return "making a sum";
    x[s] = malloc((size_t)(counts[s] + 1) * sizeof **x);
    if (!x[s]) return "memory";
    for (int64_t i = 0; i < counts[s]; i++) x[s][i] = checked_number(rank, i);
    x[s][counts[s]] = 123; /* a guard after the numbers */
    laci_comm_sum_begin(sums[s], x[s], counts[s]);
    for (unsigned k = 0; k < (seed * 7 + (unsigned)(rank + s)) % 11; k++)
      laci_comm_advance_sums(comm);
  }
  for (int s = 0; s < CHECKED_SUMS; s++) {
    if (laci_comm_sum_end(sums[s], NULL)) wrong = "the end of a sum";
    for (int64_t i = 0; i < counts[s] && !wrong; i++) {
      float sum = comm ? checked_sum(size, i, wire) : checked_number(0, i);
      if (memcmp(&x[s][i], &sum, sizeof sum) != 0) wrong = "a sum";
    }
    if (x[s][counts[s]] != 123) wrong = "what is after a sum";
    laci_comm_times times = laci_comm_sum_times(sums[s]);
    if (times.begun > times.exchanged || times.exchanged > times.done) wrong = "times of a sum";
  }
  for (int s = 0; s < CHECKED_SUMS; s++) {
    laci_comm_sum_destroy(sums[s]);
    free(x[s]);
  }
  return wrong;
}

/** Runs all checks, in several rounds. */
static const char *check_comm(laci_comm *comm) {
  const char *wrong = check_bytes(comm);
  for (unsigned round = 0; round < 5 && !wrong; round++) {
    wrong = check_sums(comm, LACI_WIRE_F32, round);
    if (!wrong) wrong = check_sums(comm, LACI_WIRE_BF16, round);
  }
  return wrong ? wrong : check_agreement(comm);
}

#endif
