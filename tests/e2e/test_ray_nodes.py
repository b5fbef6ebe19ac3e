"""Two Ray nodes that are two hosts (network namespaces, a machine name each): actors, and Ray Train, train with DDP over HCCL.
ANYNPU_TEST_FULL=1."""
from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import time

import pytest

from conftest import ROOT, WHEELS, find_program

sys.path.insert(0, str(ROOT / "tests" / "coll"))
from hosts import Hosts, possible  # noqa: E402



def with_packages(*names: str) -> list[str]:
    look = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {names}))"
    return [python for python in WHEELS.values() if subprocess.run([python, "-c", look]).returncode == 0]


HAS_RAY = with_packages("ray")
HAS_TRAIN = with_packages("ray", "pandas", "pyarrow")  # what ray[train] brings
why_not = possible() or ("" if HAS_RAY else "ray is not installed") or ("" if os.environ.get("ANYNPU_TEST_FULL") == "1" else "a minute: ANYNPU_TEST_FULL=1")

ALONE = '''
def alone(steps):
    import torch
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(4)); y = x.sum(1, keepdim=True)
    for _ in range(steps):
        sgd.zero_grad(); loss = torch.nn.functional.mse_loss(net(x), y); loss.backward(); sgd.step()
    return [p.detach().numpy() for p in net.parameters()]
'''

ACTORS = '''
import socket, sys, time
import numpy as np
import ray

ray.init(address=sys.argv[1], log_to_driver=False)
until = time.monotonic() + 240
while ray.cluster_resources().get("NPU", 0) < 2:
    assert time.monotonic() < until, ray.cluster_resources()
    time.sleep(0.5)

@ray.remote(resources={"NPU": 1}, num_cpus=1)
class Rank:
    def address(self):
        with socket.socket() as s:
            s.bind(("", 0))
            return f"tcp://{ray.util.get_node_ip_address()}:{s.getsockname()[1]}"

    def join(self, rank, world, url):
        import torch, torch_npu, torch.distributed as dist
        torch.npu.set_device(0)
        dist.init_process_group("hccl", init_method=url, rank=rank, world_size=world)
        self.rank, self.world = rank, world
        return ray.get_runtime_context().get_node_id()

    def train(self, steps):
        import torch, torch.distributed as dist
        torch.manual_seed(3)
        net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)).npu()
        model = torch.nn.parallel.DistributedDataParallel(net)
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(64, 8, generator=torch.Generator().manual_seed(4)); y = x.sum(1, keepdim=True)
        for _ in range(steps):
            sgd.zero_grad()
            torch.nn.functional.mse_loss(model(x[self.rank::self.world].npu()), y[self.rank::self.world].npu()).backward()
            sgd.step()
        return [p.detach().cpu().numpy() for p in net.parameters()]

    def end(self):
        import torch.distributed as dist
        dist.destroy_process_group()

ranks = [Rank.remote() for _ in range(2)]
url = ray.get(ranks[0].address.remote(), timeout=240)
nodes = ray.get([rank.join.remote(r, 2, url) for r, rank in enumerate(ranks)], timeout=240)
a, b = ray.get([r.train.remote(10) for r in ranks], timeout=240)
print("nodes:", len(set(nodes)))
print("ranks equal:", all(np.array_equal(p, q) for p, q in zip(a, b)))
# Ten steps of fp32 sums in another order.
print("as one process:", all(np.allclose(p, q, rtol=1e-4, atol=1e-5) for p, q in zip(a, alone(10))))
ray.get([r.end.remote() for r in ranks], timeout=120)
'''

TRAIN = '''
import os, sys, time
import numpy as np
import ray
import ray.train
from ray.train.torch import TorchConfig, TorchTrainer

ray.init(address=sys.argv[1], log_to_driver=False)
until = time.monotonic() + 240
while ray.cluster_resources().get("NPU", 0) < 2:
    assert time.monotonic() < until, ray.cluster_resources()
    time.sleep(0.5)

def work(config):
    import numpy, tempfile, torch, torch_npu, torch.distributed as dist
    import ray, ray.train, ray.train.torch
    assert dist.get_backend() == "hccl", dist.get_backend()
    device = ray.train.torch.get_device()
    assert device.type == "npu", device
    torch.npu.set_device(device)
    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model = ray.train.torch.prepare_model(net)
    assert isinstance(model, torch.nn.parallel.DistributedDataParallel), type(model)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(4)); y = x.sum(1, keepdim=True)
    for step in range(config["steps"]):
        sgd.zero_grad()
        loss = torch.nn.functional.mse_loss(model(x[rank::world].to(device)), y[rank::world].to(device))
        loss.backward(); sgd.step()
        metrics = {"loss": loss.item(), "step": step}
        if step < config["steps"] - 1:
            ray.train.report(metrics)
            continue
        with tempfile.TemporaryDirectory() as kept:
            if rank == 0:
                torch.save({k: v.cpu() for k, v in model.module.state_dict().items()}, os.path.join(kept, "model.pt"))
            ray.train.report(metrics, checkpoint=ray.train.Checkpoint.from_directory(kept) if rank == 0 else None)
    numpy.savez(os.path.join(config["folder"], f"rank{rank}.npz"), *[p.detach().cpu().numpy() for p in model.module.parameters()])
    with open(os.path.join(config["folder"], f"node{rank}"), "w") as out:
        out.write(ray.get_runtime_context().get_node_id())

folder = sys.argv[2]
trainer = TorchTrainer(work, train_loop_config={"steps": 10, "folder": folder}, torch_config=TorchConfig(backend="hccl"),
                       scaling_config=ray.train.ScalingConfig(num_workers=2, resources_per_worker={"NPU": 1, "CPU": 1}, placement_strategy="SPREAD"),
                       run_config=ray.train.RunConfig(name="two", storage_path=folder))
result = trainer.fit()
a, b = ([np.load(f"{folder}/rank{r}.npz")[k] for k in np.load(f"{folder}/rank{r}.npz").files] for r in range(2))
print("nodes:", len({open(f"{folder}/node{r}").read() for r in range(2)}))
print("ranks equal:", all(np.array_equal(p, q) for p, q in zip(a, b)))
# Ten steps of fp32 sums in another order.
print("as one process:", all(np.allclose(p, q, rtol=1e-4, atol=1e-5) for p, q in zip(a, alone(10))))
import torch
with result.checkpoint.as_directory() as kept:
    state = torch.load(os.path.join(kept, "model.pt"))
print("checkpoint:", all(np.array_equal(p.numpy(), q) for p, q in zip(state.values(), a)))
print("metrics:", result.metrics["step"], np.isfinite(result.metrics["loss"]))
'''


def two_nodes(tmp_path, python: str, job_text: str, lines: tuple, **more: str) -> None:
    """Starts two Ray nodes on two hosts, runs the job on the first, and looks for what it has to say."""
    ray = os.path.join(os.path.dirname(python), "ray")
    job = tmp_path / "job.py"
    job.write_text(ALONE + job_text)
    # A token of this cluster's own; workers at the nice value of the test, not 15.
    env = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
           "RAY_worker_niceness": "0", "HCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
           "PYTHONPATH": "", **more}
    with Hosts(2) as hosts:
        run = lambda host, *words: [find_program(), "run", "-q", "-n", "1", "--machine", host.machine, "--", *words]  # noqa: E731
        nodes, logs = [], []
        for k, host in enumerate(hosts):
            which = ["--head", "--port=6379", "--include-dashboard=false"] if k == 0 else [f"--address={hosts[0].address}:6379"]
            log = open(tmp_path / f"node{k}", "w+")
            logs.append(log)
            nodes.append(host.start(run(host, ray, "start", "--block", "--disable-usage-stats", f"--node-ip-address={host.address}", "--num-cpus=2",
                                        "--object-store-memory=100000000", f"--temp-dir=/tmp/{host.machine}", *which),
                                    env, stdout=log, stderr=subprocess.STDOUT))
        until = time.monotonic() + 240
        while "Ray runtime started" not in (tmp_path / "node0").read_text():
            assert nodes[0].poll() is None and time.monotonic() < until, (tmp_path / "node0").read_text()
            time.sleep(0.5)
        results = tmp_path / "results"
        results.mkdir()
        driver = hosts[0].start(run(hosts[0], python, str(job), f"{hosts[0].address}:6379", str(results)), env, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)
        try:
            text = driver.communicate(timeout=600)[0]
        finally:
            for node in nodes:  # a node that is asked to end takes its processes along
                node.send_signal(signal.SIGTERM)
            for node in nodes:
                node.wait(timeout=90)
        said = text + "".join(open(log.name).read()[-800:] for log in logs)
        assert driver.returncode == 0, said
        for line in lines:
            assert line in text, said


SAME = ("nodes: 2", "ranks equal: True", "as one process: True")


@pytest.mark.skipif(bool(why_not), reason=why_not)
def test_actors_on_two_nodes(tmp_path):
    two_nodes(tmp_path, HAS_RAY[-1], ACTORS, SAME)


@pytest.mark.skipif(bool(why_not), reason=why_not)
@pytest.mark.skipif(not HAS_TRAIN, reason="ray[train] is not installed")
def test_ray_train_on_two_nodes(tmp_path):
    two_nodes(tmp_path, HAS_TRAIN[-1], TRAIN, (*SAME, "checkpoint: True", "metrics: 9 True"))
