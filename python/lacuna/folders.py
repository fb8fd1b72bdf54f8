# SPDX-License-Identifier: Apache-2.0
"""Folders of Hugging Face: config.json and weights (model.safetensors or pytorch_model.bin) in, a folder of the same kind out.

transformers builds the module that config.json names, lacuna.torch permutes and prunes it through its exported graph, and
transformers writes it. All other files of the folder are copied as they are.
"""
import os

from .errors import failure

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".index.json", ".onnx")
WORDS, IMAGES = 16, 2


def is_folder(path):
    """Is this the path of such a folder?"""
    return isinstance(path, (str, os.PathLike)) and os.path.isfile(os.path.join(path, "config.json"))


def _transformers(path):
    try:
        import transformers  # pylint: disable=import-outside-toplevel
        return transformers
    except ImportError as error:
        raise failure(f"{os.fspath(path)}: a folder of Hugging Face, which needs the packages transformers and torch", "UNSUPPORTED",
                      cure="pip install transformers torch") from error


def load(path):
    """The module of a folder, in eval, with the types of its weights."""
    import json  # pylint: disable=import-outside-toplevel # at the first folder, so that `import lacuna` is quick
    transformers = _transformers(path)
    with open(os.path.join(path, "config.json"), encoding="utf-8") as file:
        names = json.load(file).get("architectures") or []
    kind = getattr(transformers, names[0], None) if names else transformers.AutoModel
    if kind is None:
        raise failure(f"{os.fspath(path)}: the architecture {names[0]}, which the installed transformers {transformers.__version__} has not",
                      "UNSUPPORTED")
    made = kind.from_pretrained(os.fspath(path), local_files_only=True, dtype="auto", attn_implementation="eager") \
        if getattr(kind, "_supports_attention_backend", False) else kind.from_pretrained(os.fspath(path), local_files_only=True, dtype="auto")
    return made.eval()


def examples(module):
    """Inputs of a module of transformers, by its main input: images, or words."""
    import torch  # pylint: disable=import-outside-toplevel
    config, generator = module.config, torch.Generator().manual_seed(0)
    if module.main_input_name == "pixel_values":
        size = getattr(config, "image_size", None) or 224
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        dtype = next(module.parameters()).dtype
        return {"pixel_values": torch.randn(IMAGES, getattr(config, "num_channels", 3), height, width, generator=generator).to(dtype)}
    if module.main_input_name == "input_ids":
        words = torch.randint(getattr(config, "vocab_size", 2), (IMAGES, WORDS), generator=generator)
        return {"input_ids": words, "attention_mask": torch.ones_like(words)}
    raise failure(f"{type(module).__name__}: its inputs are {module.main_input_name}, wanted pixel_values or input_ids", "UNSUPPORTED")


def prune(path, output, *, force=False, example_inputs=None, progress=None, **keywords):
    """Prunes a folder of Hugging Face into another one, which from_pretrained loads.

    path: a folder with config.json and weights, such as of BERT, ViT, DeiT, ResNet or ConvNeXt
    output: the new folder
    force: replace it, if it exists
    example_inputs: what the module takes; None: random images or words of the sizes in config.json
    keywords: those of lacuna.torch.prune

    Returns lacuna.Report. What the module's forward pass does not read stays as it is, such as a pooler that nothing uses.
    """
    import shutil  # pylint: disable=import-outside-toplevel
    path, output = os.fspath(path), os.fspath(output)
    if os.path.lexists(output) and not force:
        raise failure(f"{output}: it exists already", "EXISTS", "FORCE", "force=True replaces it")
    if os.path.realpath(path) == os.path.realpath(output):
        raise failure(f"{output}: it is the folder that is read")
    module = load(path)
    from . import torch as ours  # pylint: disable=import-outside-toplevel # loads PyTorch
    given = examples(module) if example_inputs is None else example_inputs
    report = ours.prune(module, given, allow_unused=True, progress=progress, **keywords)
    if not report.masks:
        raise failure(f"{path}: no layer of {type(module).__name__} can be pruned {report.pattern}; nothing was written", "UNSUPPORTED")
    ours.drop_masks(module)
    unfinished = f"{output.rstrip('/')}.{os.getpid()}.tmp"
    try:
        module.save_pretrained(unfinished)
        for name in os.listdir(path):
            source = os.path.join(path, name)
            if os.path.isfile(source) and not name.endswith(WEIGHTS):
                shutil.copy(source, unfinished)
        if os.path.lexists(output):
            shutil.rmtree(output)
        os.replace(unfinished, output)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return report
