# SPDX-License-Identifier: Apache-2.0
"""Pruned modules of PyTorch as people train them: mixed precision, compiled, accumulated, frozen in part, averaged, by
optimizers around optimizers; and apex's toy problem with its checkpoints, where only the import differs."""
import copy

import pytest

torch = pytest.importorskip("torch")
import lacuna.torch  # noqa: E402  pylint: disable=wrong-import-position
from lacuna.torch import ASP, masks, orders  # noqa: E402  pylint: disable=wrong-import-position

pytestmark = pytest.mark.torch
QUICK = {"effort": "fast"}


@pytest.fixture(autouse=True)
def forgotten():
    yield
    ASP.forget()


def mlp(seed=0):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.LayerNorm(64), torch.nn.ReLU(), torch.nn.Linear(64, 64),
                               torch.nn.LayerNorm(64), torch.nn.ReLU(), torch.nn.Linear(64, 16))


def inputs(seed=0, rows=8):
    return torch.randn(rows, 32, generator=torch.Generator().manual_seed(seed))


def held(module):
    """The names of masked parameters, each of them half zero where its mask is."""
    found = masks.masks_of(module)
    for name, parameter, mask in found:
        assert 2 * int(mask.sum()) == mask.numel() and not parameter[~mask].any() and parameter[mask].any(), name
    return [name for name, _, _ in found]


ALL = ["0.weight", "3.weight", "6.weight"]


class Lamb:
    """An optimizer around another, as LARC and LAMB of apex are: it scales gradients, then has the other step."""

    def __init__(self, inner):
        self.inner, self.param_groups, self.state = inner, inner.param_groups, inner.state

    def zero_grad(self):
        self.inner.zero_grad()

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    if value.grad is not None:
                        value.grad.mul_(value.norm() / (value.grad.norm() + 1e-3))
        self.inner.step()


@pytest.mark.parametrize("make", [lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), lambda p: torch.optim.AdamW(p, 1e-2),
                                  lambda p: Lamb(torch.optim.SGD(p, 0.05, momentum=0.9))], ids=["sgd", "adamw", "lamb"])
def test_zeros_stay_in_mixed_precision(make):
    module = mlp()
    optimizer = make(module.parameters())
    ASP.prune_trained_model(module, optimizer)
    for at in range(20):
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = module(inputs(at)).square().mean()
        loss.backward()
        optimizer.step()
    assert held(module) == ALL and ASP.is_sparsity_enabled()


def test_gradients_accumulate():
    module, whole = mlp(), mlp()
    for each, parts in ((module, 4), (whole, 1)):
        optimizer = torch.optim.SGD(each.parameters(), 0.05)
        lacuna.torch.prune(each, inputs(), optimizer=optimizer, **QUICK)
        for at in range(3):
            optimizer.zero_grad()
            for part in inputs(at).chunk(parts):
                (each(part).square().mean() / parts).backward()
            optimizer.step()
    assert held(module) == ALL
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(module.parameters(), whole.parameters()))


def test_a_compiled_module():
    module = mlp()
    compiled = torch.compile(module, backend="eager")
    optimizer = torch.optim.SGD(compiled.parameters(), 0.05)
    before = compiled(inputs())
    report = lacuna.torch.prune(compiled, inputs(), optimizer=optimizer, **QUICK)
    for at in range(3):
        optimizer.zero_grad()
        compiled(inputs(at)).square().mean().backward()
        optimizer.step()
    assert held(module) == ALL and report.difference < 1e-5 and before.shape == compiled(inputs()).shape
    assert torch.equal(compiled(inputs()), module(inputs()))


def test_frozen_parts_stay():
    module = mlp()
    module[3].weight.requires_grad_(False)
    optimizer = torch.optim.SGD([value for value in module.parameters() if value.requires_grad], 0.05, momentum=0.9)
    ASP.init_model_for_pruning(module, example_inputs=inputs())
    ASP.init_optimizer_for_pruning(optimizer)
    before = orders.answers(module, inputs())
    ASP.compute_sparse_masks()
    frozen = module[3].weight.detach().clone()
    for _ in range(3):
        optimizer.zero_grad()
        module(inputs()).square().mean().backward()
        optimizer.step()
    assert held(module) == ["0.weight", "6.weight"] and torch.equal(frozen, module[3].weight) and frozen.all() and len(before) == 1


def test_an_average_and_its_buffers_move():
    module = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(), torch.nn.Linear(64, 16))
    module(inputs())
    average = torch.optim.swa_utils.AveragedModel(module)
    average.update_parameters(module)
    steps = average.module[1].running_mean.clone()
    wanted = orders.answers(average, inputs())
    report = lacuna.torch.prune(module, inputs(), ema=[average.module], **QUICK)
    assert report.summary.permuted > 0 and not torch.equal(steps, average.module[1].running_mean)
    assert torch.equal(average.module[1].running_mean, module[1].running_mean)
    assert orders.difference(wanted, orders.answers(average, inputs())) < 1e-6
    average.update_parameters(module)
    lacuna.torch.apply_masks(module)


class Scaled(torch.nn.Module):
    """A layer that no list knows: its weight has a name of its own."""

    def __init__(self):
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(32, 32))

    def forward(self, x):
        return x @ self.kernel.t()


def test_a_custom_layer():
    module = torch.nn.Sequential(Scaled(), torch.nn.ReLU(), torch.nn.Linear(32, 16))
    ASP.init_model_for_pruning(module, custom_layer_dict={Scaled: ["kernel"]}, example_inputs=inputs())
    ASP.compute_sparse_masks()
    assert held(module) == ["0.kernel", "2.weight"]


class Mixer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = torch.nn.MultiheadAttention(32, 4, batch_first=True)
        self.out = torch.nn.Linear(32, 32)

    def forward(self, x):
        return self.out(self.attention(x, x, x, need_weights=False)[0])


def test_projections_of_attention():
    module, x = Mixer(), torch.randn(2, 6, 32)
    dense = orders.answers(module, x)
    ASP.init_model_for_pruning(module, example_inputs=x)
    ASP.compute_sparse_masks()
    assert held(module) == ["attention.in_proj_weight", "attention.out_proj.weight", "out.weight"] and len(dense) == 1


def test_calibrated_by_a_loader():
    module = mlp()
    dense, plain = copy.deepcopy(module), copy.deepcopy(module)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs(1, 64), torch.zeros(64)), batch_size=16)
    optimizer = torch.optim.AdamW(module.parameters())
    report = ASP.prune_calibrated(module, loader, optimizer, samples=64, **QUICK)
    ASP.prune_trained_model(plain, torch.optim.AdamW(plain.parameters()), example_inputs=inputs())
    wanted = orders.answers(dense, inputs(2))
    fitted, by_magnitude = (orders.difference(wanted, orders.answers(each, inputs(2))) for each in (module, plain))
    assert held(module) == ALL and report.calibration.samples and fitted < by_magnitude


class Fickle(torch.nn.Module):
    """Its answers change from call to call, so no comparison can hold."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.calls = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32), 0

    def forward(self, x):
        self.calls += 1
        return self.two(torch.relu(self.one(x))) * (1.0 if self.calls % 2 else 2.0)


def test_a_module_whose_answers_change_is_refused():
    module = Fickle()
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(lacuna.Error, match="Fickle: its answers differ"):
        lacuna.torch.prune(module, inputs(), **QUICK)
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())


# ---- The toy problem of apex, and what its three checkpoint scripts do: rewritten, with one import changed ----

WIDTHS = [(32, 64), (64, 64), (64, 64), (64, 16)]


def toy(seed=0):
    torch.manual_seed(seed)
    layers = []
    for fan_in, fan_out in WIDTHS:
        layers += [torch.nn.Linear(fan_in, fan_out), torch.nn.LayerNorm(fan_out)]
    return torch.nn.Sequential(*layers)


def train(model, optimizer, count, at=0):
    for step in range(at, at + count):
        target = torch.randn(8, 16, generator=torch.Generator().manual_seed(1000 + step))
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs(step)), target).backward()
        optimizer.step()
    return at + count


def started(seed=0, **keywords):
    model = toy(seed)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    ASP.init_model_for_pruning(model, mask_calculator="m4n2_1d", verbosity=2, whitelist=[torch.nn.Linear], **keywords)
    ASP.init_optimizer_for_pruning(optimizer)
    return model, optimizer


def test_the_toy_problem():
    model, optimizer = started(example_inputs=inputs())
    at = train(model, optimizer, 3)
    before = orders.answers(model, inputs())
    moved = {}
    dense = copy.deepcopy(model)
    ASP.compute_sparse_masks()
    for name, value in dense.named_parameters():
        moved[name] = not torch.equal(value, model.get_parameter(name)) and not name.endswith("bias")
    at = train(model, optimizer, 3, at)
    assert held(model) == ["0.weight", "2.weight", "4.weight", "6.weight"] and sum(moved.values()) >= 4 and len(before) == 1
    assert train(model, optimizer, 2, at) == 8


@pytest.mark.parametrize("recompute", [False, True], ids=["part1-part2", "restored"])
def test_a_checkpoint_is_saved_and_goes_on(tmp_path, recompute):
    """Part 1 prunes, trains and saves; part 2 begins anew with the same calls, loads, and trains on as part 1 would have."""
    model, optimizer = started(example_inputs=inputs(), allow_recompute_mask=recompute)
    at = train(model, optimizer, 3)
    ASP.compute_sparse_masks()
    at = train(model, optimizer, 3, at)
    torch.save({"step": at, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict()}, tmp_path / "part1.pt")
    train(model, optimizer, 3, at)
    wanted = held(model)
    ASP.forget()
    other, its_optimizer = started(1, allow_recompute_mask=recompute)
    kept = torch.load(tmp_path / "part1.pt")
    other.load_state_dict(kept["model_state_dict"])
    its_optimizer.load_state_dict(kept["optimizer_state_dict"])
    train(other, its_optimizer, 3, kept["step"])
    assert held(other) == wanted and all(torch.equal(a, b) for a, b in zip(model.parameters(), other.parameters()))
    names = set(kept["model_state_dict"])
    assert {"0.__weight_mma_mask"} <= names and ("0.__weight_mma_pruned_p" in names) == recompute
    if recompute:
        ASP.restore_pruned_weights()
        assert not ASP.is_sparsity_enabled() and other[0].weight.all()


def test_a_dense_checkpoint_is_pruned_later(tmp_path):
    """The third script: a dense checkpoint, loaded before the calls, then pruned by the two lines."""
    model = toy()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    at = train(model, optimizer, 3)
    torch.save([model.state_dict(), optimizer.state_dict()], tmp_path / "dense.pt")
    other = toy(1)
    its_optimizer = torch.optim.Adam(other.parameters(), 1e-3)
    weights, state = torch.load(tmp_path / "dense.pt")
    other.load_state_dict(weights)
    its_optimizer.load_state_dict(state)
    ASP.prune_trained_model(other, its_optimizer)
    train(other, its_optimizer, 20, at)
    assert len(held(other)) == 4


def apex_masks(model):
    """Buffers as apex writes them: 0 and 1 in the parameter's own type, next to the parameter."""
    return {key: value.float() if key.endswith("_mma_mask") else value for key, value in model.state_dict().items()}


def test_checkpoints_of_apex_load():
    model, _ = started(example_inputs=inputs())
    ASP.compute_sparse_masks()
    theirs = apex_masks(model)
    ASP.forget()
    other, optimizer = started(1)
    other.load_state_dict(theirs)
    train(other, optimizer, 3)
    assert held(other) == held(model) and ASP.is_sparsity_enabled()
