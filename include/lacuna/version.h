/* SPDX-License-Identifier: Apache-2.0
 * The version of the library.
 *
 * The shared library's name (soname) changes only where an older caller could not be served:
 * docs/decisions/structs-that-grow.md. */
#ifndef LACUNA_VERSION_H
#define LACUNA_VERSION_H

#include "lacuna/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The version of these headers: MAJOR.MINOR.PATCH. */
#define LAC_VERSION_MAJOR 0
#define LAC_VERSION_MINOR 1
#define LAC_VERSION_PATCH 0
/** A version as one number that can be compared, such as 200 for 0.2.0. */
#define LAC_VERSION_NUMBER(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
/** The version of these headers as one number. */
#define LAC_VERSION LAC_VERSION_NUMBER(LAC_VERSION_MAJOR, LAC_VERSION_MINOR, LAC_VERSION_PATCH)

/** Returns the library's version, such as "0.1.0"; a static string. */
LAC_API const char *lac_version(void);
/** Returns the library's version as one number, to be compared with LAC_VERSION. */
LAC_API int lac_version_number(void);
/** Can a program that was built with headers of version `headers` (LAC_VERSION) use this library?
 * Fails LAC_UNSUPPORTED if the library is older than the headers, or if its soname differs; the
 * text names both versions. */
LAC_API LAC_MUST_CHECK lac_status lac_version_check(int headers, lac_error *err);

#ifdef __cplusplus
}
#endif
#endif
