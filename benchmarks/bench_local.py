"""Seconds and memory of a million local reports over 3052 categories, and of peers.

Run ``python benchmarks/bench_local.py``; prints one JSON object. Each row draws the
reports, counts their support and keeps to one gigabyte; it runs in a process of its
own, whose peak is stated. Seconds are those of one processor. A peer perturbs one user
after the other. The peers are multi-freq-ldpy and pure-ldp where they are installed,
and a plain Python loop; each is timed on a sample of users, after a call that compiles
it, and scaled to a million. The least ratio is against the libraries, or against the
loop where none is installed. The loop returns a set as a short list and draws a hash
seed of its own, so it does less than a report that is ready to be sent and counted.
"""

from __future__ import annotations

import json
import math
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource

CLIENTS = 1_000_000
CLIENTS_COUNTED = 50_000  # counting hashes costs one of them per client and category
CATEGORIES = 3052
PEER_SECONDS = 1.0
COMPARED = ("grr", "oue", "ss", "olh")
SOURCES = {"simulated": lambda: SimulatedSource(1), "secure": SecureSource}
PROTOCOLS: dict[str, Callable[[], LocalProtocol]] = {
    "grr": lambda: GeneralizedResponse(CATEGORIES, 5),
    "sue": lambda: SymmetricUnary(CATEGORIES, 5),
    "oue": lambda: OptimizedUnary(CATEGORIES, 5),
    "the": lambda: ThresholdHistogram(CATEGORIES, 5),
    "ss at 1": lambda: SubsetSelection(CATEGORIES, 1),
    "ss": lambda: SubsetSelection(CATEGORIES, 5),
    "olh": lambda: OptimizedHashing(CATEGORIES, 5),
}
Client = Callable[[int], object]


def measure(name: str, source: str, clients: int) -> dict[str, Any]:
    """Return one row: time to draw, time to count, largest error of the counts."""
    protocol, truths = PROTOCOLS[name](), np.arange(clients) % CATEGORIES
    start = process_time()
    reports = protocol.sample(truths, source=SOURCES[source]()).values
    drawn = process_time()
    if isinstance(protocol, LocalHashing):
        reports, truths = reports[:CLIENTS_COUNTED], truths[:CLIENTS_COUNTED]
    counts = protocol.support_counts(reports)
    counted = process_time()
    p, q = float(protocol.keep), float(protocol.noise)
    mean = len(truths) * q + np.bincount(truths, minlength=CATEGORIES) * (p - q)
    deviation = np.abs(counts - mean).max() / np.sqrt(len(truths) * q * (1 - q))
    return {
        "protocol": name,
        "epsilon": float(protocol.epsilon),
        "source": source,
        "clients": clients,
        "sample_s": round(drawn - start, 3),
        "count_s": round(counted - drawn, 3),
        "counted": len(truths),
        "largest_deviation": round(float(deviation), 2),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def apart(name: str, source: str, clients: int) -> dict[str, Any]:
    """Measure in a fresh process, so that the peak is that of this row."""
    command = [sys.executable, str(Path(__file__)), name, source, str(clients)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def scaled_seconds(client: Client, clients: int) -> dict[str, float]:
    """Time one user after the other for a while, and scale."""
    client(0)  # a peer may compile itself on the first call
    start, done = process_time(), 0
    while (taken := process_time() - start) < PEER_SECONDS and done < clients:
        client(done % CATEGORIES)
        done += 1
    return {"seconds": taken * clients / done, "measured": done}


def plain_clients(epsilon: float) -> dict[str, Client]:
    """Return the protocols written down in plain Python."""
    grow = math.exp(epsilon)
    size = max(1, round(CATEGORIES / (grow + 1)))
    hit = size * grow / (size * grow + CATEGORIES - size)
    buckets, draw = round(grow) + 1, random.random

    def respond(truth: int, among: int) -> int:
        if draw() < grow / (grow + among - 1):
            return truth
        other = random.randrange(among - 1)
        return other + (other >= truth)

    def unary(truth: int) -> list[bool]:
        bits = [draw() < 1 / (grow + 1) for _ in range(CATEGORIES)]
        bits[truth] = draw() < 0.5
        return bits

    def subset(truth: int) -> list[int]:
        held = draw() < hit
        rest = random.sample(range(CATEGORIES - 1), size - held)
        return [truth] * held + [other + (other >= truth) for other in rest]

    def hashed(truth: int) -> tuple[int, int]:
        seed = random.getrandbits(64)
        return seed, respond(hash((seed, truth)) % buckets, buckets)

    return {
        "grr": lambda truth: respond(truth, CATEGORIES),
        "oue": unary,
        "ss": subset,
        "olh": hashed,
    }


def multi_freq_clients(epsilon: float) -> dict[str, Client]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client

    return {
        "grr": lambda truth: GRR_Client(truth, CATEGORIES, epsilon),
        "oue": lambda truth: UE_Client(truth, CATEGORIES, epsilon, True),
        "ss": lambda truth: SS_Client(truth, CATEGORIES, epsilon),
        "olh": lambda truth: LH_Client(truth, CATEGORIES, epsilon, True),
    }


def pure_ldp_clients(epsilon: float) -> dict[str, Client]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient
    from pure_ldp.frequency_oracles.local_hashing import LHClient
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    direct = DEClient(epsilon, CATEGORIES)
    unary = UEClient(epsilon, CATEGORIES, use_oue=True)
    hashed = LHClient(epsilon, CATEGORIES, use_olh=True)
    # Its users are numbered from 1.
    return {
        "grr": lambda truth: direct.privatise(truth + 1),
        "oue": lambda truth: unary.privatise(truth + 1),
        "olh": lambda truth: hashed.privatise(truth + 1),
    }


PEERS = {
    "multi_freq_ldpy": multi_freq_clients,
    "pure_ldp": pure_ldp_clients,
    "plain_python": plain_clients,
}


def peer_seconds(clients: int) -> dict[str, dict[str, Any]]:
    """Return for each peer the seconds by protocol, or that it is not installed."""
    found: dict[str, dict[str, Any]] = {}
    for peer, build in PEERS.items():
        try:
            rows = build(5.0)
        except ImportError:
            found[peer] = {"installed": False}
            continue
        found[peer] = {name: scaled_seconds(c, clients) for name, c in rows.items()}
    return found


def run(clients: int = CLIENTS) -> dict[str, Any]:
    """Measure all protocols, those that peers have with both sources; then peers."""
    rows = [
        apart(name, source, clients)
        for source in SOURCES
        for name in PROTOCOLS
        if source == "simulated" or name in COMPARED
    ]
    peers = peer_seconds(clients)
    libraries = [peer for peer, taken in peers.items() if "grr" in taken]
    judges = [peer for peer in libraries if peer != "plain_python"] or libraries
    ratios = {
        f"{row['protocol']}_{row['source']}": {
            peer: round(taken[row["protocol"]]["seconds"] / row["sample_s"], 1)
            for peer, taken in peers.items()
            if row["protocol"] in taken
        }
        for row in rows
        if row["protocol"] in COMPARED
    }
    least = min(by[peer] for by in ratios.values() for peer in judges if peer in by)
    return {
        "categories": CATEGORIES,
        "rows": rows,
        "peers": peers,
        "ratios": ratios,
        "judged_by": judges,
        "least_ratio": least,
        "peak_mb": max(row["peak_mb"] for row in rows),
    }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        print(json.dumps(run()))
