#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/scaling_model.py: its rounds are those of the algorithms, which are executed here message by message, and its steps
are the closed forms where there are any."""
import math
import pathlib
import sys
import unittest
from dataclasses import replace
from itertools import pairwise

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import scaling
import scaling_model as model
from scaling_model import MIB, Cluster, Work, gigabits, simulate

# ---- the algorithms: each round is a list of (from, to, chunks, whether they are added) ----


def direct(nodes, per_node):
    n = nodes * per_node
    others = [(a, b) for a in range(n) for b in range(n) if a != b]
    return [[(a, b, [b], True) for a, b in others], [(a, b, [a], False) for a, b in others]]


def ring(nodes, per_node):
    n = nodes * per_node
    add = [[(a, (a + 1) % n, [(a - k) % n], True) for a in range(n)] for k in range(n - 1)]
    return add + [[(a, (a + 1) % n, [(a + 1 - k) % n], False) for a in range(n)] for k in range(n - 1)]


def binomial(ranks, chunks):
    """Up to ranks[0]."""
    out, step = [], 1
    while step < len(ranks):
        out.append([(ranks[k + step], ranks[k], chunks, True) for k in range(0, len(ranks) - step, 2 * step)])
        step *= 2
    return out


def tree(nodes, per_node):
    every = list(range(nodes * per_node))
    inside = [binomial(list(range(k * per_node, (k + 1) * per_node)), every) for k in range(nodes)]
    up = [sum(together, []) for together in zip(*inside)] + binomial(list(range(0, len(every), per_node)), every)
    return up + [[(b, a, chunks, False) for a, b, chunks, _ in r] for r in reversed(up)]


def doubling(nodes, per_node):
    n = nodes * per_node
    return [[(a, a ^ 1 << k, list(range(n)), True) for a in range(n)] for k in range(n.bit_length() - 1)]


def halving(nodes, per_node):
    n = nodes * per_node
    rounds = n.bit_length() - 1

    def kept(a, k):  # chunks that a still cares for after k rounds: their first k bits are its own
        return [chunk for chunk in range(n) if (chunk ^ a) & ((1 << k) - 1) == 0]

    down = [[(a, a ^ 1 << k, kept(a ^ 1 << k, k + 1), True) for a in range(n)] for k in range(rounds)]
    up = [[(a, a ^ 1 << k, kept(a, k + 1), False) for a in range(n)] for k in reversed(range(rounds))]
    return down + up


def hierarchical(nodes, per_node):
    n = nodes * per_node
    near = [(a, b) for a in range(n) for b in range(n) if a != b and a // per_node == b // per_node]
    far = [(a, b) for a in range(n) for b in range(n) if a != b and a % per_node == b % per_node]

    def part(a):
        return [chunk for chunk in range(n) if chunk % per_node == a % per_node]

    return [[(a, b, part(b), True) for a, b in near], [(a, b, [b // per_node * per_node + b % per_node], True) for a, b in far],
            [(a, b, [a], False) for a, b in far], [(a, b, part(a), False) for a, b in near]]


SCHEDULES = {"direct": direct, "ring": ring, "tree": tree, "doubling": doubling, "halving": halving,
             "hierarchical": hierarchical}
SHAPES = [(1, 2), (2, 1), (4, 1), (8, 1), (1, 8), (2, 2), (4, 4), (2, 8), (3, 1), (3, 2), (5, 3)]


def fits(name, nodes, per_node):
    both = nodes & (nodes - 1) == 0 and per_node & (per_node - 1) == 0
    return both or name not in ("doubling", "halving")


def execute(schedule, n):
    """What every process holds at the end: chunk by chunk, how often each process's contribution is in it."""
    held = [[1 << 8 * a] * n for a in range(n)]
    for messages in schedule:
        before = [list(chunks) for chunks in held]
        for source, target, chunks, add in messages:
            for chunk in chunks:
                held[target][chunk] = before[source][chunk] + (held[target][chunk] if add else 0)
    return held


def loads(schedule, per_node, n):
    """Of each round (messages, inside, between) as Rounds says it, for n bytes; and the most bytes that a process adds."""
    out, added = [], [0] * n
    for messages in schedule:
        posted, inside, between = [0] * n, [0] * n, [0] * n
        for source, target, chunks, add in messages:
            posted[source] += 1
            near = source // per_node == target // per_node
            (inside if near else between)[source if near else source // per_node] += len(chunks)
            added[target] += len(chunks) if add else 0
        out.append((max(posted), max(inside), max(between)))
    return [load for load in out if load[0]], max(added)


class RoundsAre(unittest.TestCase):
    def test_of_algorithms_that_sum(self):
        for name, schedule in SCHEDULES.items():
            for nodes, per_node in SHAPES:
                if fits(name, nodes, per_node):
                    n = nodes * per_node
                    whole = [[sum(1 << 8 * a for a in range(n))] * n] * n
                    self.assertEqual(execute(schedule(nodes, per_node), n), whole, (name, nodes, per_node))

    def test_those_that_the_algorithms_take(self):
        for name, schedule in SCHEDULES.items():
            for nodes, per_node in SHAPES:
                if fits(name, nodes, per_node):
                    n = nodes * per_node
                    want, added = loads(schedule(nodes, per_node), per_node, n)
                    rounds = model.rounds_of(name, Cluster(nodes, per_node), n)
                    got = [(r.messages, r.inside, r.between) for r in rounds for _ in range(r.count)]
                    self.assertEqual(sorted(got), sorted(want), (name, nodes, per_node))
                    self.assertAlmostEqual(sum(r.added for r in rounds), added, msg=(name, nodes, per_node))

    def test_refused_where_an_algorithm_wants_a_power_of_two(self):
        for name in ("doubling", "halving"):
            with self.assertRaises(ValueError):
                model.rounds_of(name, Cluster(3), 1)

    def test_none_of_a_process_alone(self):
        for name in model.ALGORITHMS:
            self.assertEqual(model.sum_seconds(name, Cluster(1), MIB), 0)


class BytesSent(unittest.TestCase):
    def test_are_twice_all_but_one_share(self):
        for nodes in (2, 8, 1024):
            for name in ("direct", "ring", "halving", "hierarchical"):
                self.assertAlmostEqual(model.bytes_sent(name, Cluster(nodes), MIB)[1], 2 * (nodes - 1) / nodes * MIB)

    def test_by_a_node_of_eight_are_eight_times_as_many_unless_it_sums_first(self):
        alone = model.bytes_sent("direct", Cluster(16), MIB)[1]
        self.assertAlmostEqual(model.bytes_sent("direct", Cluster(16, 8), MIB)[1], 8 * alone)
        self.assertAlmostEqual(model.bytes_sent("hierarchical", Cluster(16, 8), MIB)[1], alone)


WORK = Work("plain", 10, 1.0, tuple((0.5, 8 * MIB) for _ in range(8)), 0.25)
SLOW = Cluster(8, between=gigabits(1), sums=math.inf)


class Buckets(unittest.TestCase):
    def test_hold_all_gradients_in_the_order_of_backward(self):
        for size in (MIB, 3 * MIB, 5 * MIB, 64 * MIB, 1000 * MIB):
            buckets = model.buckets_of(WORK, size)
            self.assertEqual(sum(held for _, held in buckets), WORK.gradients)
            self.assertEqual(len(buckets), math.ceil(WORK.gradients / size))
            self.assertEqual([ready for ready, _ in buckets], sorted(ready for ready, _ in buckets))
            self.assertAlmostEqual(buckets[-1][0], 4)

    def test_are_ready_when_backward_has_written_their_last_byte(self):
        self.assertEqual([ready for ready, _ in model.buckets_of(WORK, 12 * MIB)], [1, 1.5, 2.5, 3, 4, 4])

    def test_take_half_in_bf16(self):
        self.assertEqual(sum(size for _, size in model.buckets_of(WORK, MIB, 2)), WORK.gradients / 2)


class Steps(unittest.TestCase):
    def test_are_computing_alone_on_one_process(self):
        self.assertEqual(simulate(WORK, Cluster(1, jitter=0.1))["step"], WORK.compute)
        self.assertEqual(simulate(WORK, Cluster(1))["efficiency"], 1)

    def test_without_overlap_are_computing_and_all_sums(self):
        n, size, count = 8, 4 * MIB, 16
        one = 2 * (SLOW.between_latency + (n - 1) * SLOW.message + (n - 1) / n * size / SLOW.between)
        found = simulate(WORK, SLOW, bucket=size, overlap=False)
        self.assertAlmostEqual(found["step"], WORK.compute + count * one)
        self.assertAlmostEqual(found["hidden"], 0)

    def test_that_compute_longer_than_they_sum_wait_for_the_last_bucket_only(self):
        fast = replace(SLOW, between=gigabits(100))
        last = model.sum_seconds("direct", fast, 8 * MIB)
        self.assertLess(last, 0.5)
        self.assertAlmostEqual(simulate(WORK, fast, bucket=8 * MIB)["waited"], last)

    def test_that_sum_longer_than_they_compute_wait_for_the_link(self):
        crawl = replace(SLOW, between=gigabits(0.1))
        found = simulate(WORK, crawl, bucket=8 * MIB)
        self.assertAlmostEqual(found["step"], WORK.forward + 0.5 + found["sums"] + WORK.update)

    def test_on_a_perfect_network_are_perfect(self):
        perfect = Cluster(64, between=math.inf, between_latency=0, message=0, sums=math.inf)
        for name in model.ALGORITHMS:
            self.assertAlmostEqual(simulate(WORK, perfect, name)["efficiency"], 1)

    def test_are_delayed_by_additions(self):
        found = simulate(WORK, replace(Cluster(2, between=math.inf, between_latency=0, message=0), sums=128 * MIB))
        self.assertAlmostEqual(found["step"], WORK.compute + 64 / 2 / 128)

    def test_get_no_faster_by_nodes_latency_or_less_bandwidth(self):
        def steps(clusters):
            return [simulate(WORK, cluster, name)["step"] for cluster in clusters]
        for name in model.ALGORITHMS:
            for slower in (steps(replace(SLOW, nodes=2**k) for k in range(1, 11)),
                           steps(replace(SLOW, between_latency=1e-5 * 4**k) for k in range(6)),
                           steps(replace(SLOW, between=gigabits(400 / 4**k)) for k in range(6)),
                           steps(replace(SLOW, jitter=0.01 * k) for k in range(6))):
                self.assertTrue(all(a <= b + 1e-12 for a, b in pairwise(slower)), (name, slower))

    def test_are_never_slower_with_overlap(self):
        for name in model.ALGORITHMS:
            for size in (MIB, 4 * MIB, 100 * MIB):
                both = [simulate(WORK, SLOW, name, size, overlap=on)["step"] for on in (True, False)]
                self.assertLessEqual(both[0], both[1] + 1e-12)

    def test_wait_for_the_slowest(self):
        self.assertEqual(model.expected_maximum(1), 0)
        self.assertAlmostEqual(model.expected_maximum(2), 1 / math.sqrt(math.pi), places=4)
        self.assertAlmostEqual(model.expected_maximum(3), 1.5 / math.sqrt(math.pi), places=4)
        self.assertAlmostEqual(model.expected_maximum(1000), 3.2414, places=3)


class ResNet50(unittest.TestCase):
    def test_has_its_parameters_and_operations(self):
        layers = model.resnet50_layers()
        self.assertEqual(sum(parameters for parameters, _, _ in layers), 25_557_032)
        self.assertAlmostEqual(sum(cost for _, cost, _ in layers) / 1e9, 4.089, places=3)
        self.assertEqual(len(layers), 54)
        work = model.resnet50("it", 32, 1.0, [2 / 54] * 54, 0.25)
        self.assertAlmostEqual(work.compute, 3.25)
        self.assertEqual(work.gradients, 4 * 25_557_032)
        self.assertEqual(work.backward[0][1], 4 * 2_049_000)
        with self.assertRaises(ValueError):
            model.resnet50("it", 32, 1.0, [1.0] * 53, 0.25)

    def test_has_a_measured_share_of_backward_for_each_layer(self):
        shares = scaling.measured()["shares"]
        self.assertEqual(len(shares["backward"]), 54)
        self.assertAlmostEqual(shares["forward"] + sum(shares["backward"]) + shares["update"], 1, places=3)

    def test_is_shared_out_at_gradients_of_weights(self):
        steps = [("Conv", 3), ("Gemm", 1), ("LossGrad", 1), ("Gemm", 1), ("ReduceSum", 1), ("ConvGradWeight", 2),
                 ("ConvGradInput", 2), ("ConvGradWeight", 3), ("reorder", 2)]
        found = scaling.shares_of([{"op": op, "ms": ms} for op, ms in steps], 4)
        self.assertEqual(found, {"forward": 0.2, "backward": [0.15, 0.1, 0.35], "update": 0.2})


class Published(unittest.TestCase):
    def test_figures_are_beyond_what_the_links_alone_explain(self):
        for overlap in (True, False):
            self.assertGreater(simulate(scaling.card(), scaling.SERVER, overlap=overlap)["efficiency"], 0.98)

    def test_figures_come_out_of_each_explanation(self):
        for _, work, cluster, overlap in scaling.explanations():
            self.assertAlmostEqual(simulate(work, cluster, overlap=overlap)["images"], 11801, delta=5)


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=0).result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
