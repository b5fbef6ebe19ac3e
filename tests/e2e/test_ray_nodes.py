"""Actors on two Ray nodes that are two hosts (network namespaces, a machine name each) train with DDP over HCCL. ANYNPU_TEST_FULL=1."""
from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys

import pytest

from conftest import ROOT, WHEELS, find_program

sys.path.insert(0, str(ROOT / "tests" / "coll"))
from hosts import Hosts, possible  # noqa: E402

HAS_RAY = [python for python in WHEELS.values()
           if subprocess.run([python, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('ray') is None)"]).returncode == 0]
why_not = possible() or ("" if HAS_RAY else "ray is not installed") or ("" if os.environ.get("ANYNPU_TEST_FULL") == "1" else "a minute: ANYNPU_TEST_FULL=1")

JOB = '''
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

def alone(steps):
    import torch
    torch.manual_seed(3)
    net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(64, 8, generator=torch.Generator().manual_seed(4)); y = x.sum(1, keepdim=True)
    for _ in range(steps):
        sgd.zero_grad(); torch.nn.functional.mse_loss(net(x), y).backward(); sgd.step()
    return [p.detach().numpy() for p in net.parameters()]

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


@pytest.mark.skipif(bool(why_not), reason=why_not)
def test_actors_on_two_nodes(tmp_path):
    python = HAS_RAY[-1]
    ray = os.path.join(os.path.dirname(python), "ray")
    job = tmp_path / "job.py"
    job.write_text(JOB)
    # A token of this cluster's own; workers at the nice value of the test, not 15.
    env = {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32),
           "RAY_worker_niceness": "0", "HCCL_SOCKET_IFNAME": "eth0", "GLOO_SOCKET_IFNAME": "eth0", "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
           "PYTHONPATH": ""}
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
        driver = hosts[0].start(run(hosts[0], python, str(job), f"{hosts[0].address}:6379"), env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            text = driver.communicate(timeout=600)[0]
        finally:
            for node in nodes:  # a node that is asked to end takes its processes along
                node.send_signal(signal.SIGTERM)
            for node in nodes:
                node.wait(timeout=90)
        said = text + "".join(open(log.name).read()[-800:] for log in logs)
        assert driver.returncode == 0, said
        for line in ("nodes: 2", "ranks equal: True", "as one process: True"):
            assert line in text, said
