/* SPDX-License-Identifier: Apache-2.0
 * What a plug-in is: a shared object of a part that not every machine has, loaded at run time. It
 * includes this header only, and exports lac_plugin_open.
 *
 * A transport carries bytes between processes that a launcher started together (MPI). Its functions
 * that begin something return at once, and their buffers stay as they are until `test` says that it
 * is done. On every channel all processes begin the same things in the same order; what is begun on
 * one channel waits for nothing of another. Lacuna calls one function at a time, but from several
 * threads where `any_thread` says so.
 *
 * Next: plugins/mpi, src/comm. */
#ifndef LACUNA_PLUGIN_H
#define LACUNA_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Of this header; a plug-in of another version is not used. */
#define LAC_PLUGIN_VERSION 1

/** Channels of a transport: 0 .. LAC_CHANNELS - 1. */
#define LAC_CHANNELS 3

/** The most bytes of one exchange or broadcast. */
#define LAC_TRANSPORT_MOST ((size_t)1 << 30)

/** Functions that return an int: 0 or what is said, negative where the transport failed, and `why`
 * then tells in one line. */
typedef struct lac_transport {
  const char *name; /* with its version */
  int rank, size;   /* of this process: 0 <= rank < size */
  void *self;       /* the first argument of all that follow */

  /** bytes [n] of process 0 are sent to all others. */
  int (*broadcast)(void *self, int channel, void *bytes, size_t n, void **request);
  /** Part k of `all`, bytes begin[k] .. begin[k + 1], is process k's and is sent to all others;
   * begin [size + 1] is the same everywhere. */
  int (*gather)(void *self, int channel, void *all, const size_t *begin, void **request);
  /** Part k of `from`, bytes begin[k] .. begin[k + 1], is sent to process k; begin is the same
   * everywhere. `to` gets this process's parts, as process 0, 1 ... sent them, one after the
   * other. */
  int (*exchange)(void *self, int channel, const void *from, const size_t *begin, void *to,
                  void **request);
  /** 1: done, and *request is gone; 0: not yet. Whatever else is in progress goes on, too. */
  int (*test)(void *self, void **request);

  /** A word to process 0, which need not wait for it. */
  int (*tell)(void *self, int64_t word);
  /** 1: process 0 got one; 0: there is none now. */
  int (*hear)(void *self, int *from, int64_t *word);

  /** code 0: all processes call it, and it closes in order. Else it ends every process, those too
   * that call nothing, and this one; it does not return. */
  void (*end)(void *self, int code);
  const char *(*why)(void *self);
} lac_transport;

/** What lac_plugin_open gives. What is not offered is NULL. */
typedef struct lac_plugin {
  int version; /* LAC_PLUGIN_VERSION */
  /** NULL where it fails; *why then tells. The transport lives until its end. Once a process. */
  lac_transport *(*open_transport)(const char **why);
} lac_plugin;

/** The one symbol that is looked up. */
#define LAC_PLUGIN_SYMBOL "lac_plugin_open"
/** The one function that a plug-in exports, under the name LAC_PLUGIN_SYMBOL. */
typedef const lac_plugin *lac_plugin_open_function(void);

#ifdef __cplusplus
}
#endif
#endif
