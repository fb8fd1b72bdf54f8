/* SPDX-License-Identifier: Apache-2.0
 * Damage to a network's file: its bytes, or one of its fields.
 *
 * Bytes that are changed anywhere mostly end in the wire format's own checks; a field that is
 * changed while the rest stays a well-formed message reaches the code after these. Fields are found
 * by protobuf-c's descriptors, so that every one that the format has is hit, without a list here.
 * */
#ifndef TESTS_TORTURE_MUTATE_H
#define TESTS_TORTURE_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/** Bytes of malloc, n of them; bytes == NULL: there was no memory. */
typedef struct mutant {
  uint8_t *bytes;
  size_t n;
} mutant;

/** A damaged copy of the n bytes: one to four changes, drawn from (seed, number). The same
 * arguments give the same bytes. */
mutant mutate(const uint8_t *bytes, size_t n, uint64_t seed, uint64_t number);

#endif
