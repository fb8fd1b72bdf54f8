/* SPDX-License-Identifier: Apache-2.0
 * A cable between two network namespaces, for kernels whose traffic control has no netem.
 *
 *     wire_main BITS_PER_SECOND DELAY_US NAMESPACE NAMESPACE
 *
 * Makes a device "wire" in each namespace (/run/netns/NAME) and carries packets between them: each
 * waits until those before it have been sent at the given rate, then for the delay. A packet that
 * finds the queue full is lost, as on a switch. Prints "ready" once both devices are there, and
 * ends with its parent. See tests/hosts. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* setns, ppoll */
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_BYTES = 16384, QUEUE = 1024 };

typedef struct packet {
  int64_t due_ns;
  ssize_t size;
  char bytes[MOST_BYTES];
} packet;

typedef struct direction {
  int from, to;
  int64_t free_ns; /* when what was taken before has been sent */
  size_t head, count;
  packet *queue; /* [QUEUE], a ring from head on */
} direction;

static int64_t now_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/** A TUN device in a namespace; the calling thread stays there. -1: errno says why. */
static int open_end(const char *name) {
  char path[256];
  (void)snprintf(path, sizeof path, "/run/netns/%s", name);
  int space = open(path, O_RDONLY | O_CLOEXEC);
  if (space < 0) return -1;
  int entered = setns(space, CLONE_NEWNET);
  (void)close(space);
  if (entered) return -1;
  int end = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct ifreq wanted = {.ifr_flags = IFF_TUN | IFF_NO_PI, .ifr_name = "wire"};
  if (end >= 0 && ioctl(end, TUNSETIFF, &wanted) == 0) return end;
  if (end >= 0) (void)close(end);
  return -1;
}

/** All packets that wait at the sender's end. A full queue takes them, too, and loses them. */
static void take_packets(direction *d, double ns_per_byte, int64_t delay_ns) {
  static char lost[MOST_BYTES];
  while (true) {
    bool full = d->count == QUEUE;
    packet *last = &d->queue[(d->head + d->count) % QUEUE];
    ssize_t size = read(d->from, full ? lost : last->bytes, MOST_BYTES);
    if (size <= 0) return;
    if (full) continue;
    int64_t now = now_ns(), start = d->free_ns > now ? d->free_ns : now;
    d->free_ns = start + (int64_t)(ns_per_byte * (double)size);
    last->due_ns = d->free_ns + delay_ns;
    last->size = size;
    d->count++;
  }
}

/** Those whose time has come; what the receiver has no room for is lost. */
static void give_packets(direction *d) {
  while (d->count > 0 && d->queue[d->head].due_ns <= now_ns()) {
    const packet *first = &d->queue[d->head];
    ssize_t written = write(d->to, first->bytes, (size_t)first->size);
    (void)written;
    d->head = (d->head + 1) % QUEUE;
    d->count--;
  }
}

/** Until something arrives or is due. */
static void wait_for(const direction both[2]) {
  struct pollfd ends[2] = {{.fd = both[0].from, .events = POLLIN},
                           {.fd = both[1].from, .events = POLLIN}};
  int64_t due = INT64_MAX;
  for (int at = 0; at < 2; at++) {
    const direction *d = &both[at];
    if (d->count > 0 && d->queue[d->head].due_ns < due) due = d->queue[d->head].due_ns;
  }
  int64_t left = due == INT64_MAX ? 1000000000 : due - now_ns();
  if (left < 0) left = 0;
  struct timespec most = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
  (void)ppoll(ends, 2, &most, NULL);
}

int main(int argc, char **argv) {
  double rate = argc == 5 ? strtod(argv[1], NULL) : 0;
  double delay_us = argc == 5 ? strtod(argv[2], NULL) : -1;
  if (!(rate > 0) || !(delay_us >= 0)) {
    (void)fprintf(stderr, "usage: wire_main BITS_PER_SECOND DELAY_US NAMESPACE NAMESPACE\n");
    return 2;
  }
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)prctl(PR_SET_TIMERSLACK, 1);
  int ends[2];
  for (int at = 0; at < 2; at++) {
    ends[at] = open_end(argv[3 + at]);
    if (ends[at] < 0) {
      (void)fprintf(stderr, "%s: %s\n", argv[3 + at], strerror(errno));
      return 1;
    }
  }
  direction both[2] = {{.from = ends[0], .to = ends[1]}, {.from = ends[1], .to = ends[0]}};
  for (int at = 0; at < 2; at++) {
    both[at].queue = calloc(QUEUE, sizeof *both[at].queue);
    if (!both[at].queue) return 1;
  }
  (void)puts("ready");
  (void)fflush(stdout);
  while (true) {
    wait_for(both);
    for (int at = 0; at < 2; at++) {
      take_packets(&both[at], 8e9 / rate, (int64_t)(1e3 * delay_us));
      give_packets(&both[at]);
    }
  }
}
