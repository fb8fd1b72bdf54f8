# SPDX-License-Identifier: Apache-2.0
"""Which kinds of operators cost Lacuna a cell of bench/compare.py: its time by kind compared with OpenVINO's.

Lacuna's dense kernels are oneDNN's, which prints each one's time when ONEDNN_VERBOSE is set; what is left of a run is
Lacuna's own steps. OpenVINO counts by itself (PERF_COUNT). Both are separate runs after the measured ones. Fused
operators count as their heaviest part, so that neighbours (an addition fused or not) may trade places between kinds.
"""
import re

from compare_worker import Failed

MATRIX, MOVE, NORM, EACH, POOL, OWN = (
    "matrix product", "moving", "softmax and normalization", "element by element", "pooling", "everything else")
OF_ONEDNN = {"inner_product": MATRIX, "matmul": MATRIX, "reorder": MOVE, "concat": MOVE, "shuffle": MOVE,
             "softmax": NORM, "softmax_v2": NORM, "logsoftmax": NORM, "layer_normalization": NORM,
             "batch_normalization": NORM, "eltwise": EACH, "binary": EACH, "sum": EACH, "prelu": EACH,
             "pooling": POOL, "pooling_v2": POOL, "reduction": POOL}
OF_OPENVINO = {"FullyConnected": MATRIX, "MatMul": MATRIX, "ScaledDotProductAttention": MATRIX, "Reorder": MOVE,
               "Concatenation": MOVE, "Concat": MOVE, "Transpose": MOVE, "Reshape": MOVE, "Split": MOVE, "Gather": MOVE,
               "StridedSlice": MOVE, "Broadcast": MOVE, "Pad": MOVE, "ShuffleChannels": MOVE, "Convert": MOVE,
               "Softmax": NORM, "MVN": NORM, "NormalizeL2": NORM, "Eltwise": EACH, "Add": EACH, "Multiply": EACH,
               "Subgraph": EACH, "Pooling": POOL, "MaxPool": POOL, "AvgPool": POOL, "Reduce": POOL, "ReduceMean": POOL}
CONV_SHAPE = re.compile(r"(?:g(\d+))?mb\d+_ic(\d+)oc\d+_ih\d+oh\d+kh(\d+)\w*?_iw\d+ow\d+kw(\d+)")
SHOWN = 3       # kinds of a cell
LEAST_RUNS = 3  # of a profile


def kind_of_conv(groups, channels_in, kernel):
    size = "x".join(map(str, kernel))
    if groups == 1:
        return f"convolution {size}"
    return f"{'depthwise' if groups == channels_in else 'grouped'} convolution {size}"


def kind_of_verbose(line):
    """(kind, ms) of a line that oneDNN wrote about a primitive's execution, or None."""
    fields = line.split(",")
    if fields[0] not in ("onednn_verbose", "dnnl_verbose") or "exec" not in fields[1:3]:
        return None
    primitive, shape, milliseconds = fields[fields.index("exec") + 2], fields[-2], float(fields[-1])
    found = CONV_SHAPE.search(shape) if primitive == "convolution" else None
    if not found:
        return OF_ONEDNN.get(primitive, primitive), milliseconds
    groups, channels, high, wide = (int(part or 1) for part in found.groups())
    return kind_of_conv(groups, channels, (high, wide)), milliseconds


def kind_of_openvino(one):
    """(kind, ms) of an operator of a profile."""
    weight = one["weight"]
    if not weight:
        return OF_OPENVINO.get(one["operator"], OWN), one["ms"]
    groups = weight[0] if len(weight) == 5 else 1
    return kind_of_conv(groups, groups * weight[-3], weight[-2:]), one["ms"]


def sums(runs):
    """{kind: ms} of a run whose every operator took its least time. runs: [[(kind, ms) of an operator]], all alike."""
    table = {}
    for same in zip(*runs):
        kind = same[0][0]
        table[kind] = table.get(kind, 0.0) + min(milliseconds for _, milliseconds in same)
    return table


def of_lacuna(cell, least_ms):
    """{kind: ms of a run}."""
    worker, runs = cell.worker("lacuna", ONEDNN_VERBOSE="1", DNNL_VERBOSE="1"), []
    try:
        while len(runs) < LEAST_RUNS:
            worker.noise.clear()
            worker.run(0)
            runs.append([found for found in map(kind_of_verbose, worker.noise) if found])
    finally:
        worker.close()
    table = sums(runs)
    if table:
        table[OWN] = max(0.0, least_ms - sum(table.values()))
    return table


def of_openvino(cell):
    """{kind: ms of a run}."""
    worker, runs = cell.worker("openvino", "--profile"), []
    try:
        while len(runs) < LEAST_RUNS:
            worker.run(0)
            runs.append([kind_of_openvino(one) for one in worker.ask("profile")["operators"]])
    finally:
        worker.close()
    return sums(runs)


def losses(cell, results):
    """The kinds that Lacuna loses most by against OpenVINO: [{kind, lacuna_ms, openvino_ms}], the largest loss first;
    empty where one of the two cannot be measured."""
    if any("min_ms" not in results.get(engine, {}) for engine in ("lacuna", "openvino")):
        return []
    try:
        ours, theirs = of_lacuna(cell, results["lacuna"]["min_ms"]), of_openvino(cell)
    except (Failed, ValueError, KeyError):  # a profile is a help, not a result
        return []
    if not ours or not theirs:
        return []
    rows = [{"kind": kind, "lacuna_ms": round(ours.get(kind, 0.0), 4), "openvino_ms": round(theirs.get(kind, 0.0), 4)}
            for kind in set(ours) | set(theirs)]
    rows = [row for row in rows if row["lacuna_ms"] > row["openvino_ms"]]
    return sorted(rows, key=lambda row: row["openvino_ms"] - row["lacuna_ms"])[:SHOWN]
