# SPDX-License-Identifier: Apache-2.0
"""Prune a Keras 3 model in place: its channels are permuted, its kernels masked, and zeros stay while it trains.

    from lacuna.keras import AspOptimizerWrapperV2, check_pruned_layers

    model.compile(optimizer=AspOptimizerWrapperV2(keras.optimizers.Adam(), model), loss=...)
    model.fit(...)
    check_pruned_layers(model)

On the backend torch a model is a torch.nn.Module, and lacuna.torch prunes it. On another backend a second process does that: it loads
the saved model on the backend torch, and its weights and masks come back. So PyTorch must be installed in each case.
"""
import os
import pickle
import subprocess
import sys
import tempfile

import keras

from .errors import failure

UNKNOWN, BATCH = 64, 2  # sizes of example inputs that the model leaves open
N, M = 2, 4


class Masked(keras.constraints.Constraint):
    """Keeps a variable's zeros; then another constraint, if the variable had one."""

    def __init__(self, mask, then=None):
        self.mask, self.then = mask, then

    def __call__(self, w):
        w = w if self.then is None else self.then(w)
        return w * keras.ops.cast(self.mask, w.dtype)


def examples(model, input_shapes=None):
    """Example inputs of a model: {name: array}, or one array for one input."""
    import numpy  # pylint: disable=import-outside-toplevel
    if not model.built or not getattr(model, "inputs", None):
        raise failure(f"{model.name}: it has no inputs yet; call or build it first, or give example_inputs")
    made, generator = [], numpy.random.default_rng(0)
    for at, given in enumerate(model.inputs):
        shape = input_shapes[at] if input_shapes and isinstance(input_shapes[0], (list, tuple)) else input_shapes or given.shape
        shape = [BATCH if axis == 0 and size is None else UNKNOWN if size is None else size for axis, size in enumerate(shape)]
        whole = "int" in given.dtype
        made.append(numpy.zeros(shape, given.dtype) if whole else generator.standard_normal(shape).astype(numpy.float32))
    return made


def prune(model, *, example_inputs=None, input_shapes=None, optimizer=None, plot_to_file=None, **keywords):
    """Permutes and prunes a Keras model in place, and holds its zeros by constraints of its variables, for any optimizer.

    model: a built keras.Model; its variables keep their identity
    example_inputs: a list of arrays; None: random ones of the model's input shapes
    input_shapes: shapes of these, where the model leaves sizes open
    optimizer: refused once it has stepped, since its state would not move along
    plot_to_file: a drawing of the operation graph: .svg, .pdf, .png or .dot
    keywords: those of lacuna.torch.prune

    Returns lacuna.Report; `masks` has the masks by the variables' paths.
    """
    steps = 0 if optimizer is None or keywords.get("permute") is False else int(optimizer.iterations)
    if steps > 0:
        raise failure(f"{model.name}: its optimizer has done {steps} steps, and its state would not move along; prune before",
                      cure="permute=False")
    given = examples(model, input_shapes) if example_inputs is None else list(example_inputs)
    if keras.backend.backend() == "torch":
        report = _prune_module(model, given, plot_to_file, keywords)
    else:
        report = _prune_elsewhere(model, given, plot_to_file, keywords)
    by_path = {variable.path: variable for variable in model.weights}
    for path, mask in report.masks.items():
        variable = by_path[path]
        variable.constraint = Masked(keras.ops.convert_to_tensor(mask), variable.constraint)
    return report


def _prune_module(model, given, plot_to_file, keywords):
    """On the backend torch: masks by the variables' paths, as arrays."""
    import torch  # pylint: disable=import-outside-toplevel

    from . import torch as ours  # pylint: disable=import-outside-toplevel
    tensors = [torch.from_numpy(array) for array in given]
    device = next(model.parameters()).device
    inputs = tuple(tensor.to(device) for tensor in tensors)
    report = ours.prune(model, inputs if len(inputs) == 1 else (list(inputs),), allow_unused=True, hold=False, **keywords)
    if plot_to_file is not None:
        report.plot(plot_to_file, force=True)
    paths = {id(variable.value): variable.path for variable in model.weights}
    report.masks = {paths[id(model.get_parameter(name))]: mask.numpy() for name, mask in report.masks.items()}
    ours.drop_masks(model)
    return report


def _prune_elsewhere(model, given, plot_to_file, keywords):
    """On another backend: a second process prunes the saved model on the backend torch."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        model.save(path)
        with open(os.path.join(folder, "work.pickle"), "wb") as file:
            pickle.dump((given, plot_to_file and os.path.abspath(plot_to_file), keywords), file)
        top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        paths = os.pathsep.join([top, *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run([sys.executable, "-m", "lacuna.keras", folder], capture_output=True, text=True, check=False,
                              env={**os.environ, "KERAS_BACKEND": "torch", "PYTHONPATH": paths})
        if done.returncode:
            raise failure(f"{model.name}: on the backend torch: {(done.stderr.strip() or 'it ended').splitlines()[-1]}", "UNSUPPORTED",
                          cure="pip install torch")
        with open(os.path.join(folder, "result.pickle"), "rb") as file:
            report, weights = pickle.load(file)
    model.set_weights(weights)
    return report


def _work(folder):
    """What the second process does."""
    model = keras.saving.load_model(os.path.join(folder, "model.keras"), compile=False)
    with open(os.path.join(folder, "work.pickle"), "rb") as file:
        given, plot_to_file, keywords = pickle.load(file)
    report = _prune_module(model, given, plot_to_file, keywords)
    with open(os.path.join(folder, "result.pickle"), "wb") as file:
        pickle.dump((report, model.get_weights()), file)


def AspOptimizerWrapperV2(optimizer, model, input_shapes=None, padding=False, permute=True,  # pylint: disable=invalid-name
                          search_device=None, search_time_limit=None, plot_to_file=None, **keywords):
    """Prunes a model 2:4 and returns the optimizer, under which the zeros stay. The arguments are those of the class of this name in
    TensorFlow's automatic sparsity; the search needs no GPU.

    padding: prune layers too whose channels are no multiples, as if zeros were added
    permute: False: masks only
    search_time_limit: seconds at most; None: until the search is done, so that the result is the same each time
    plot_to_file: a drawing of the operation graph
    keywords: those of lacuna.keras.prune
    """
    del search_device
    if search_time_limit is not None:
        keywords["time_limit"] = float(search_time_limit)
    prune(model, input_shapes=input_shapes, optimizer=optimizer, plot_to_file=plot_to_file, permute=permute, padding=padding or None, **keywords)
    return optimizer


def check_pruned_layers(model, show_all=False, check_structured=True):
    """Prints a row for each layer with a kernel that holds 2:4 (show_all: for each), and returns {variable's path: does it hold}.

    check_structured: False: half of the elements are zero, wherever they are
    """
    import numpy  # pylint: disable=import-outside-toplevel
    found = {}
    for variable in model.weights:
        shape = tuple(variable.shape)
        if variable.name != "kernel" or len(shape) < 2:
            continue
        values = numpy.asarray(keras.ops.convert_to_numpy(variable.value)) != 0
        groups = numpy.moveaxis(values, -2, -1)
        if check_structured:
            holds = shape[-2] % M == 0 and bool((groups.reshape(-1, M).sum(1) <= N).all())
        else:
            holds = bool(values.mean() <= N / M)
        found[variable.path] = holds
        if show_all or holds:
            print(f"{variable.path:<48} {'x'.join(map(str, shape)):<16} {1 - values.mean():7.2%} zero  {'pruned' if holds else 'dense'}")
    print(f"{sum(found.values())} of {len(found)} layers are pruned {N}:{M}")
    return found


check_pruned_model = check_pruned_layers

if __name__ == "__main__":
    _work(sys.argv[1])
