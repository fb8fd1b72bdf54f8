/* SPDX-License-Identifier: Apache-2.0
 * CRC-32C (Castagnoli): the checksum of TFRecords, and so of TensorBoard's events. */
#ifndef LACI_BASE_CRC32C_H
#define LACI_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/** Returns the checksum of n bytes (0xE3069283 for the bytes "123456789"). Callable from any
 * thread. */
uint32_t laci_crc32c(const void *bytes, size_t n);

/** Returns the checksum in the masked form in which it is stored next to the bytes, since a
 * checksum of bytes that contain their own checksum is weak. */
uint32_t laci_crc32c_masked(const void *bytes, size_t n);

#endif
