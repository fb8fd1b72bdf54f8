# SPDX-License-Identifier: Apache-2.0
"""examples/kubernetes/mpijob.yaml against the fields of MPIJob, kubeflow.org/v2beta1, and of the pods in it: names, types,
what is required, and what has to agree; and `lacuna` takes the launcher's command. Only the fields that the example may
use are listed."""
import re
import subprocess

import pytest
import yaml
from built import ROOT, build_dir

PATH = ROOT / "examples/kubernetes/mpijob.yaml"


def one_of(*values):
    return lambda value: value in values


def matches(pattern):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value)


COUNT = lambda value: type(value) is int and value >= 0  # noqa: E731
FLAG = lambda value: type(value) is bool  # noqa: E731
TEXT = matches(r"\S+")
WORDS = [lambda value: isinstance(value, str)]
LABEL = matches(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
QUANTITY = matches(r"\d+(\.\d+)?(m|[kMGTPE]i?)?")
DIRECTORY = matches(r"/\S*")
# A dictionary lists the fields, those with * have to be there; a list: of such; a function: is the value right?
CONTAINER = {
    "*name": LABEL, "*image": TEXT, "command": WORDS, "args": WORDS, "workingDir": DIRECTORY,
    "env": [{"*name": TEXT, "*value": lambda value: isinstance(value, str)}],
    "resources": {"limits": {"cpu": QUANTITY, "memory": QUANTITY}, "requests": {"cpu": QUANTITY, "memory": QUANTITY}},
    "readinessProbe": {"tcpSocket": {"*port": COUNT}, "initialDelaySeconds": COUNT, "periodSeconds": COUNT},
    "volumeMounts": [{"*name": LABEL, "*mountPath": DIRECTORY, "readOnly": FLAG}],
}
POD = {"*containers": [CONTAINER],
       "volumes": [{"*name": LABEL, "persistentVolumeClaim": {"*claimName": LABEL, "readOnly": FLAG}}]}
REPLICAS = {"replicas": COUNT, "restartPolicy": one_of("Never", "OnFailure"), "*template": {"*spec": POD}}
MPIJOB = {
    "*apiVersion": one_of("kubeflow.org/v2beta1"), "*kind": one_of("MPIJob"), "*metadata": {"*name": LABEL, "namespace": LABEL},
    "*spec": {
        "slotsPerWorker": COUNT, "launcherCreationPolicy": one_of("AtStartup", "WaitForWorkersReady"),
        "runLauncherAsWorker": FLAG, "sshAuthMountPath": DIRECTORY, "mpiImplementation": one_of("OpenMPI", "Intel", "MPICH"),
        "runPolicy": {"cleanPodPolicy": one_of("None", "Running", "All"), "backoffLimit": COUNT,
                      "ttlSecondsAfterFinished": COUNT, "activeDeadlineSeconds": COUNT, "suspend": FLAG},
        "*mpiReplicaSpecs": {"*Launcher": REPLICAS, "*Worker": REPLICAS},
    },
}


def faults(value, wanted, where="job"):
    """What is wrong with it, in words."""
    if callable(wanted):
        return [] if wanted(value) else [f"{where}: {value!r}"]
    if isinstance(wanted, list):
        if not isinstance(value, list) or not value:
            return [f"{where}: {value!r} is no list"]
        return [fault for k, one in enumerate(value) for fault in faults(one, wanted[0], f"{where}[{k}]")]
    if not isinstance(value, dict):
        return [f"{where}: {value!r} has no fields"]
    fields = {name.lstrip("*"): of for name, of in wanted.items()}
    out = [f"{where}.{name} is no field" for name in value if name not in fields]
    out += [f"{where}.{name[1:]} is missing" for name in wanted if name[0] == "*" and name[1:] not in value]
    return out + [fault for name, of in value.items() if name in fields for fault in faults(of, fields[name], f"{where}.{name}")]


@pytest.fixture(scope="module", name="job")
def read_job():
    return yaml.safe_load(PATH.read_text())


def container_of(job, role):
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]


def test_has_the_fields_of_an_mpijob(job):
    assert faults(job, MPIJOB) == []


def test_faults_are_found():
    for change, fault in ((lambda j: j["spec"].pop("mpiReplicaSpecs"), "job.spec.mpiReplicaSpecs is missing"),
                          (lambda j: j["spec"].update(slots=1), "job.spec.slots is no field"),
                          (lambda j: j["spec"].update(slotsPerWorker="1"), "job.spec.slotsPerWorker: '1'"),
                          (lambda j: container_of(j, "Worker").update(command="sshd"),
                           "job.spec.mpiReplicaSpecs.Worker.template.spec.containers[0].command: 'sshd' is no list")):
        broken = yaml.safe_load(PATH.read_text())
        change(broken)
        assert faults(broken, MPIJOB) == [fault]

def test_starts_as_many_processes_as_there_are_slots(job):
    spec = job["spec"]
    assert spec["mpiReplicaSpecs"]["Launcher"]["replicas"] == 1
    words = container_of(job, "Launcher")["command"]
    assert words[0] == "mpirun"
    assert int(words[words.index("-np") + 1]) == spec["slotsPerWorker"] * spec["mpiReplicaSpecs"]["Worker"]["replicas"]


def test_mounts_what_it_has(job):
    for role in ("Launcher", "Worker"):
        pod = job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        mounts = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
        assert mounts == volumes
    paths = [mount["mountPath"] for mount in container_of(job, "Worker")["volumeMounts"]]
    for option in ("data", "model-dir", "export-dir"):
        path = next(word.split("=")[1] for word in container_of(job, "Launcher")["args"] if word.startswith(f"--{option}="))
        assert any(path.startswith(mount + "/") for mount in paths), path


def test_threads_are_the_cores_of_a_worker(job):
    threads = next(word for word in container_of(job, "Launcher")["args"] if word.startswith("--threads="))
    assert threads.split("=")[1] == container_of(job, "Worker")["resources"]["limits"]["cpu"]


def test_lacuna_takes_the_command(job):
    words = container_of(job, "Launcher")["args"]
    assert words[0] == "lacuna"
    done = subprocess.run([build_dir() / "lacuna", *words[1:], "--print"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
