# SPDX-License-Identifier: Apache-2.0
"""What a step of data-parallel training takes on many nodes: a simulation of one step, bucket by bucket.

A process computes forward, then backward layer by layer, the last one first; gradients fill buckets, and a bucket is
summed over all processes as soon as backward has written it, one bucket after the other, while backward goes on. After the
last one comes the update. What a sum takes follows from the rounds of its algorithm (`rounds_of`): each waits for a
latency, for the messages that a process posts, and for the bytes through the busiest link. docs/explain/scaling.md explains it;
tests/bench/scaling_test.py holds `rounds_of` to the algorithms themselves, which it executes. Seconds and bytes throughout.
"""
import dataclasses
import functools
import math

MIB = 1 << 20
ALGORITHMS = ("direct", "ring", "tree", "doubling", "halving", "hierarchical")


def gigabits(rate):
    """Bytes a second."""
    return rate * 1e9 / 8


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Nodes of `per_node` processes. A process sends and receives `inside` bytes a second to and from processes of its
    node, a node `between` bytes a second to and from other nodes, in both directions at once."""
    nodes: int
    per_node: int = 1
    between: float = gigabits(10)
    between_latency: float = 20e-6
    inside: float = gigabits(100)
    inside_latency: float = 1e-6
    message: float = 1e-6  # what posting a message takes
    sums: float = 5e9  # bytes a second that a process adds to others
    jitter: float = 0.0  # standard deviation of a process's computing time, as a share of it

    @property
    def processes(self):
        return self.nodes * self.per_node


@dataclasses.dataclass(frozen=True)
class Work:
    """One process's step. backward: (seconds, bytes of gradients in f32) of each layer in the order of backward."""
    name: str
    batch: int
    forward: float
    backward: tuple
    update: float
    statistics: int = 0  # bytes that are averaged as soon as forward is done

    @property
    def compute(self):
        return self.forward + sum(seconds for seconds, _ in self.backward) + self.update

    @property
    def gradients(self):
        return sum(size for _, size in self.backward)


# ---- the rounds of a sum ----

@dataclasses.dataclass(frozen=True)
class Rounds:
    """`count` rounds one after the other. In each a process posts up to `messages`, sends up to `inside` bytes to its own
    node, and a node up to `between` bytes to others. In all of them together a process adds up to `added` bytes to its own."""
    count: int
    messages: int
    inside: float
    between: float
    added: float


def exponent(n):
    """k of n = 2^k."""
    if n & (n - 1):
        raise ValueError(f"{n} processes, not a power of two")
    return n.bit_length() - 1


def direct(cluster, size):
    """Every process gets a chunk from all others, adds them in the order of ranks, and sends the sum to all."""
    p, n = cluster.per_node, cluster.processes
    chunk = size / n
    return [Rounds(2, n - 1, (p - 1) * chunk, p * (n - p) * chunk, (n - 1) * chunk)]


def ring(cluster, size):
    """Chunks travel round a ring and are added at every process; then the sums travel round."""
    p, n = cluster.per_node, cluster.processes
    chunk = size / n
    return [Rounds(2 * (n - 1), 1, chunk if p > 1 else 0, chunk if cluster.nodes > 1 else 0, (n - 1) * chunk)]


def tree(cluster, size):
    """All of it up a binomial tree to one process, and down again. Inside of nodes first."""
    p, nodes = cluster.per_node, cluster.nodes
    inside, between = math.ceil(math.log2(p)), math.ceil(math.log2(nodes))
    return [Rounds(2 * inside, 1, size, 0, inside * size), Rounds(2 * between, 1, 0, size, between * size)]


def doubling(cluster, size):
    """All of it exchanged with processes 1, 2, 4 ... away."""
    p, inside, between = cluster.per_node, exponent(cluster.per_node), exponent(cluster.nodes)
    return [Rounds(inside, 1, size, 0, inside * size), Rounds(between, 1, 0, p * size, between * size)]


def halving(cluster, size):
    """Half of it exchanged with the process 1 away, a quarter with that 2 away, ...; then the sums in the opposite direction."""
    p, rounds = cluster.per_node, []
    for k in range(exponent(p) + exponent(cluster.nodes)):
        part = size / 2 ** (k + 1)
        near = 2**k < p
        rounds.append(Rounds(2, 1, part if near else 0, 0 if near else p * part, part))
    return rounds


def hierarchical(cluster, size):
    """Directly inside of each node, so that each process has the sum of a part; directly between those with the same part
    on all nodes; and inside again."""
    p, nodes = cluster.per_node, cluster.nodes
    part = size / p
    return [Rounds(2, p - 1, (p - 1) * part, 0, (p - 1) * part),
            Rounds(2, nodes - 1, 0, p * (nodes - 1) * part / nodes, (nodes - 1) * part / nodes)]


def rounds_of(algorithm, cluster, size):
    if cluster.processes == 1:
        return []
    found = {"direct": direct, "ring": ring, "tree": tree, "doubling": doubling, "halving": halving,
             "hierarchical": hierarchical}[algorithm](cluster, size)
    return [r for r in found if r.count and (r.inside or r.between)]


def seconds_of_round(cluster, r):
    near = cluster.inside_latency + r.inside / cluster.inside if r.inside else 0
    far = cluster.between_latency + r.between / cluster.between if r.between else 0
    return r.messages * cluster.message + max(near, far)


def added_seconds(algorithm, cluster, size):
    """What the cores of a process are busy with additions, of one bucket."""
    return sum(r.added for r in rounds_of(algorithm, cluster, size)) / cluster.sums


def sum_seconds(algorithm, cluster, size):
    """Of one bucket whose bytes on the wire are `size`, all links free."""
    rounds = rounds_of(algorithm, cluster, size)
    return sum(r.count * seconds_of_round(cluster, r) for r in rounds) + added_seconds(algorithm, cluster, size)


def bytes_sent(algorithm, cluster, size):
    """(by a process inside of its node, by a node to others): at most, of a whole sum."""
    rounds = rounds_of(algorithm, cluster, size)
    return sum(r.count * r.inside for r in rounds), sum(r.count * r.between for r in rounds)


# ---- one step ----

@functools.lru_cache(maxsize=None)
def expected_maximum(n):
    """Of n independent normal numbers, in standard deviations: how late the last of n processes is."""
    if n == 1:
        return 0.0
    steps, low, high = 4000, -8.0, 8.0
    width, total, before = (high - low) / steps, 0.0, 0.0
    for k in range(1, steps + 1):
        x = low + k * width
        now = (0.5 * math.erfc(-x / math.sqrt(2))) ** n
        total += (x - width / 2) * (now - before)
        before = now
    return total


def buckets_of(work, bucket, element=4):
    """[(ready, bytes on the wire)]: when backward, begun at 0, has written each bucket. Buckets are of `bucket` bytes of f32
    from the end of the gradients on, whatever tensors are there; the last one is what is left."""
    out, clock, written = [], 0.0, 0
    total = work.gradients
    for seconds, size in work.backward:
        clock, written = clock + seconds, written + size
        while len(out) * bucket + min(bucket, total - len(out) * bucket) <= written and len(out) * bucket < total:
            out.append((clock, min(bucket, total - len(out) * bucket) * element / 4))
    return out


def simulate(work, cluster, algorithm="direct", bucket=4 * MIB, element=4, overlap=True):
    """A step. element: bytes of a number on the wire (4 or 2). overlap: sums go on while backward does; additions are done by
    the cores that compute, and delay them. Result: seconds of the `step`, of all `sums`, of `waited` for them at the end;
    `hidden`, the share of the sums that no process waits for; `efficiency` against a process alone; `images` a second of all
    processes."""
    late = 1 + cluster.jitter * expected_maximum(cluster.processes)
    forward = late * work.forward
    queue = [(forward, work.statistics)] if work.statistics else []
    queue += [(forward + late * ready, size) for ready, size in buckets_of(work, bucket, element)]
    computed = forward + late * sum(seconds for seconds, _ in work.backward)
    sums = stolen = free = 0.0  # free: when the link has nothing to do
    for ready, size in queue:
        taken = sum_seconds(algorithm, cluster, size)
        free = max(ready + stolen if overlap else computed, free) + taken
        sums += taken
        stolen += added_seconds(algorithm, cluster, size) if overlap else 0
    waited = max(free - computed - stolen, 0)
    step = computed + stolen + waited + late * work.update
    return {"step": step, "sums": sums, "waited": waited, "hidden": 1 - waited / sums if sums else 1.0,
            "efficiency": work.compute / step, "images": cluster.processes * work.batch / step}


# ---- ResNet-50 ----

def resnet50_layers():
    """(parameters, multiplications an image, channels that are normalized), in the order of the network; version 1.5."""
    layers = [(64 * 3 * 49 + 2 * 64, 64 * 3 * 49 * 112**2, 64)]
    before, side = 64, 56
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            into, side = side, side // stride
            convolutions = [(width, before, 1, into), (width, width, 3, side), (4 * width, width, 1, side)]
            if not block:
                convolutions.append((4 * width, before, 1, side))
            for rows, columns, window, extent in convolutions:
                weights = rows * columns * window**2
                layers.append((weights + 2 * rows, weights * extent**2, rows))
            before = 4 * width
    layers.append((2048 * 1000 + 1000, 2048 * 1000, 0))
    return layers


def resnet50(name, batch, forward, backward, update):
    """ResNet-50's step. backward: seconds of each layer, the last one first."""
    layers = resnet50_layers()
    if len(backward) != len(layers):
        raise ValueError(f"backward of {len(backward)} layers, ResNet-50 has {len(layers)}")
    gradients = [4 * parameters for parameters, _, _ in reversed(layers)]
    return Work(name, batch, forward, tuple(zip(backward, gradients)), update, 8 * sum(channels for _, _, channels in layers))
