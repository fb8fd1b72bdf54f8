# SPDX-License-Identifier: Apache-2.0
"""Modules of PyTorch pruned in place, and ASP in the place of apex's class. make check-torch runs them."""
import copy
import re

import numpy
import pytest

torch = pytest.importorskip("torch")
import lacuna.torch  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.torch import ASP  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.torch import asp, export, masks, orders  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = pytest.mark.torch
QUICK = {"effort": "fast"}


class Block(torch.nn.Module):
    """Convolutions with a shortcut, a grouped one, normalizations and a classifier."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 32, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(32)
        self.one = torch.nn.Conv2d(32, 64, 3, padding=1)
        self.grouped = torch.nn.Conv2d(64, 64, 3, padding=1, groups=2)
        self.two = torch.nn.Conv2d(64, 32, 1)
        self.head = torch.nn.Linear(32, 16)

    def forward(self, x):
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(x + self.two(torch.relu(self.grouped(torch.relu(self.one(x))))))
        return self.head(x.mean((2, 3)))


class Attention(torch.nn.Module):
    """Attention of several heads, a layer norm, and an embedding that is tied to the classifier."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(24, 32)
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.norm = torch.nn.LayerNorm(32)
        self.up, self.down = torch.nn.Linear(32, 64), torch.nn.Linear(64, 32)
        self.head = torch.nn.Linear(32, 24, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids):
        x = self.words(ids)
        x = self.norm(x + self.attention(x, x, x, need_weights=False)[0])
        return self.head(x + self.down(torch.nn.functional.gelu(self.up(x))))


def block(seed=0):
    torch.manual_seed(seed)
    return Block()


def inputs(seed=0):
    return torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))


def steps(module, optimizer, count, data=None):
    data = inputs() if data is None else data
    for _ in range(count):
        optimizer.zero_grad()
        module(data).square().mean().backward()
        optimizer.step()


@pytest.fixture(autouse=True)
def forgotten():
    yield
    ASP.forget()


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), torch.optim.AdamW], ids=["sgd", "adamw"])
def test_zeros_stay_while_it_trains(make):
    module = block()
    optimizer = make(module.parameters())
    steps(module, optimizer, 2)
    identities = [id(parameter) for parameter in module.parameters()]
    report = lacuna.torch.prune(module, inputs(), optimizer=optimizer, **QUICK)
    assert identities == [id(parameter) for parameter in module.parameters()] and report.difference < 1e-5
    assert sorted(report.masks) == ["grouped.weight", "head.weight", "one.weight", "two.weight"]
    steps(module, optimizer, 20)
    for name, mask in report.masks.items():
        parameter = module.get_parameter(name)
        assert 2 * int(mask.sum()) == mask.numel() and not parameter[~mask].any() and parameter[mask].all()
        assert all(not value[~mask].any() for value in masks.states_of(optimizer, parameter).values())


def test_as_many_layers_as_through_onnx():
    module = block()
    report = lacuna.torch.prune(module, inputs(), **QUICK)
    exported = export.Exported(block(), inputs())
    other = lacuna.prune(exported.model(export.tensors_of(block())), fold=False, no_calibration=True, **QUICK)
    assert report.summary.pruned == other.summary.pruned and report.summary.permuted == other.summary.permuted > 0
    assert torch.equal(module.two.weight.detach(), torch.from_numpy(other.model.tensors["two.weight"]))


def permuted(module, data, optimizers=(), others=()):
    exported = export.Exported(module, data)
    found = lacuna.permute(exported.model(export.tensors_of(module)), fold=False, **QUICK)
    return orders.move(module, orders.order_of(found, exported), data, optimizers, others), found


def test_a_step_after_is_the_permuted_step_before():
    first, second = block(), block()
    ours, theirs = (torch.optim.SGD(module.parameters(), 0.05, momentum=0.9) for module in (first, second))
    steps(first, ours, 3)
    steps(second, theirs, 3)
    average = copy.deepcopy(first)
    _, found = permuted(first, inputs(), [ours], [average])
    assert found.summary.reordered > 0 and not torch.equal(first.two.weight, second.two.weight)
    assert torch.equal(average.two.weight, first.two.weight)
    steps(first, ours, 2)
    steps(second, theirs, 2)
    before, after = (orders.answers(module, inputs(1)) for module in (first, second))
    assert orders.difference(before, after) < 1e-5


def test_every_state_of_an_optimizer_moves():
    module = block()
    optimizer = torch.optim.AdamW(module.parameters(), 1e-2, amsgrad=True)
    steps(module, optimizer, 2)
    weight = module.two.weight
    old = {key: value.clone() for key, value in masks.states_of(optimizer, weight).items()}
    gradient = weight.grad.clone()
    _, found = permuted(module, inputs(), [optimizer])
    rows, columns = (torch.from_numpy(found.order_of("two.weight", axis)).long() for axis in (0, 1))
    assert set(old) == {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"} and found.summary.reordered > 0
    moved = {"grad": weight.grad, **masks.states_of(optimizer, weight)}
    for key, value in {"grad": gradient, **old}.items():
        assert torch.equal(moved[key], value[rows][:, columns]), key
    assert int(optimizer.state[weight]["step"]) == 2


def test_attention_and_tied_weights():
    torch.manual_seed(0)
    module, ids = Attention(), torch.arange(16).view(2, 8)
    report = lacuna.torch.prune(module, ids, **QUICK)
    assert module.head.weight is module.words.weight and report.difference < 1e-5
    assert {"up.weight", "down.weight"} <= set(report.masks)


def test_types_and_modes_stay():
    module = block().bfloat16().train()
    report = lacuna.torch.prune(module, inputs().bfloat16(), permute=False, **QUICK)
    assert module.training and module.one.weight.dtype == torch.bfloat16 and not module.one.weight[~report.masks["one.weight"]].any()


def test_calibrated():
    module, loader = block(), [(inputs(seed), torch.zeros(4)) for seed in range(8)]
    dense = copy.deepcopy(module)
    report = lacuna.torch.prune(module, inputs(), calibration=[batch for batch, _ in loader], calibration_samples=32, **QUICK)
    assert report.calibration.samples == 28 and not module.two.weight[~report.masks["two.weight"]].any()
    fitted = orders.difference(orders.answers(dense, inputs(1)), orders.answers(module, inputs(1)))
    other = copy.deepcopy(dense)
    lacuna.torch.prune(other, inputs(), **QUICK)
    assert fitted < orders.difference(orders.answers(dense, inputs(1)), orders.answers(other, inputs(1)))


class Branching(torch.nn.Module):
    """What no exporter follows."""

    def __init__(self):
        super().__init__()
        self.one, self.unread = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32)

    def forward(self, x):
        return torch.from_numpy(numpy.sort(self.one(x).detach().numpy()))


def test_what_cannot_be_exported_is_left_alone():
    module = Branching()
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(lacuna.Error, match="Branching: no export") as failed:
        lacuna.torch.prune(module, torch.randn(2, 32))
    assert failed.value.status == "UNSUPPORTED"
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


# ---- ASP ----

def reference(weight):
    """Masks as apex defines them: the two largest of every four along the input channels."""
    moved = weight.detach().movedim(1, -1)
    groups = moved.abs().reshape(-1, 4)
    kept = torch.zeros_like(groups).scatter_(1, groups.topk(2, dim=1).indices, 1)
    return kept.reshape(moved.shape).movedim(-1, 1).bool()


def test_the_two_lines():
    module = block()
    optimizer = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    before = orders.answers(module, inputs())
    ASP.prune_trained_model(module, optimizer)
    assert ASP.already_init_asp_model() and ASP.is_sparsity_enabled(), "pending until the first forward pass"
    steps(module, optimizer, 5)
    assert ASP.is_sparsity_enabled()
    names = [name for name, _, _ in masks.masks_of(module)]
    assert names == ["one.weight", "grouped.weight", "two.weight", "head.weight"]
    assert all(not parameter[~mask].any() for _, parameter, mask in masks.masks_of(module))
    assert "two.__weight_mma_mask" in module.state_dict() and len(orders.answers(module, inputs())) == len(before)


def test_masks_are_those_of_apex_and_come_off_again():
    module = block()
    ASP.init_model_for_pruning(module, "m4n2_1d", whitelist=[torch.nn.Conv2d, torch.nn.Linear], allow_recompute_mask=True,
                               disallowed_layer_names=["head"], allow_permutation=False)
    dense = {name: value.clone() for name, value in module.named_parameters()}
    ASP.compute_sparse_masks()
    found = masks.masks_of(module)
    assert [name for name, _, _ in found] == ["one.weight", "grouped.weight", "two.weight"]
    assert all(torch.equal(mask, reference(dense[name])) for name, _, mask in found)
    ASP.compute_sparse_masks()
    assert all(torch.equal(mask, reference(dense[name])) for name, _, mask in masks.masks_of(module))
    ASP.restore_pruned_weights()
    assert not ASP.is_sparsity_enabled() and all(torch.equal(dense[name], value) for name, value in module.named_parameters())


def test_a_checkpoint_goes_on():
    first, second = block(), block(1)
    for module in (first, second):
        ASP.init_model_for_pruning(module, example_inputs=inputs())
    ours = next(iter(ASP._models.values()))
    ours.compute()
    second.load_state_dict(first.state_dict())
    optimizer = torch.optim.SGD(second.parameters(), 0.05, momentum=0.9)
    ASP.init_optimizer_for_pruning(optimizer)
    steps(second, optimizer, 3)
    assert all(not parameter[~mask].any() and 2 * int(mask.sum()) == mask.numel() for _, parameter, mask in masks.masks_of(second))
    other = block(2)
    optimizer = torch.optim.SGD(other.parameters(), 0.05)
    ASP.prune_trained_model(other, optimizer)
    other.load_state_dict(first.state_dict())
    expected = {name: mask.clone() for name, _, mask in masks.masks_of(other)}
    other(inputs())
    assert all(torch.equal(expected[name], mask) for name, _, mask in masks.masks_of(other)), "masks of a checkpoint stay"


def test_a_function_makes_masks():
    module = block()
    ASP.init_model_for_pruning(module, lambda weight: torch.arange(weight.numel()).view(weight.shape) % 2 == 0,
                               allowed_layer_names=["two"], allow_permutation=False)
    ASP.compute_sparse_masks()
    assert not module.two.weight.detach().flatten()[1::2].any() and module.one.weight.all()
    with pytest.raises(lacuna.Error, match="initialized already"):
        ASP.init_model_for_pruning(module)
    with pytest.raises(lacuna.Error, match="wanted m4n2_1d"):
        asp.mask_of("w", module.one.weight, "m4n2_3d")


def test_the_page_runs(root):
    blocks = re.findall(r"^```python\n(.*?)^```", (root / "docs/how-to/pytorch.md").read_text(), re.M | re.S)
    known = {"images": inputs(), "model": block(), "asp_model": block(1), "loss_of": lambda scores: scores.square().mean()}
    for name in ("", "asp_"):
        known[f"{name}optimizer"] = torch.optim.SGD(known[f"{name}model"].parameters(), 0.05, momentum=0.9)
    assert len(blocks) == 3
    for text in blocks:
        exec(compile(text, "pytorch.md", "exec"), known)  # pylint: disable=exec-used
    known["asp_model"](inputs())
    for model in (known["model"], known["asp_model"]):
        assert all(not parameter[~mask].any() for _, parameter, mask in masks.masks_of(model))


def test_the_export_of_migrate_runs(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = re.findall(r"^```python\n(.*?)^```", (root / "docs/how-to/migrate.md").read_text(), re.M | re.S)
    assert len(found) == 1
    exec(compile(found[0], "migrate.md", "exec"), {"torch": torch, "net": block().eval(), "image": inputs()})  # pylint: disable=exec-used
    assert lacuna.inspect("net.onnx").summary.eligible > 0


def process(rank, path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{path}/meet", rank=rank, world_size=2)
    torch.set_num_threads(1)
    module = torch.nn.parallel.DistributedDataParallel(block())
    optimizer = torch.optim.SGD(module.parameters(), 0.05, momentum=0.9)
    ASP.prune_trained_model(module, optimizer)
    steps(module, optimizer, 20, inputs(rank))
    torch.save([(name, mask, parameter.detach()) for name, parameter, mask in masks.masks_of(module.module)], f"{path}/{rank}.pt")
    torch.distributed.destroy_process_group()


def test_two_processes_have_the_same_masks(tmp_path):
    torch.multiprocessing.spawn(process, (str(tmp_path),), nprocs=2)
    first, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert len(first) == 4
    for (name, mask, weight), (_, other, their_weight) in zip(first, second):
        assert torch.equal(mask, other) and torch.equal(weight, their_weight) and not weight[~mask].any(), name
