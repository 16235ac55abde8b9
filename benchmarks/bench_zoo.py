"""The default audit on a zoo of a hundred mechanisms: 89 flawed, 11 correct.

Run ``python -m benchmarks.bench_zoo`` in the root of the repository; options are
``--trials N`` for other than the default number of runs, ``--seed N``, ``--repeats N``
to audit each mechanism several times, and names, or parts of names, of mechanisms. Each
is audited as an ordinary user would: the function, two inputs, the claim, nothing else.
A line comes back for each of them and at the end one line of JSON: how many flawed ones
were caught, passed or were refused, how many correct ones were accused or refused, and
the seconds of the processor.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Any

from undertow.audit import AuditError, CallableSubject, Claim, audit_pair

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.zoo import ZOO, Animal, reset

OUTCOMES = {"violated": "caught", "not refuted": "passed"}


def audit(
    animal: Animal, *, seed: int = 0, trials: int | None = None
) -> tuple[str, str]:
    """Return what the default audit says of one mechanism, and why."""
    reset(seed)
    subject = CallableSubject(animal.function, animal.inputs, name=animal.name)
    claim = Claim.approx(animal.epsilon, animal.delta)
    try:
        found = audit_pair(subject, claim, trials=trials, seed=seed)
    except AuditError as error:
        return "refused", str(error)
    words = found.witness.summary if found.witness else found.methods[0].name
    outcome = OUTCOMES[found.verdict]
    if not animal.flawed and outcome == "caught":
        outcome = "accused"
    return outcome, f"{found.certified:.3f} of {animal.loss}: {words}"


def run(
    *,
    names: Sequence[str] = (),
    trials: int | None = None,
    seed: int = 0,
    repeats: int = 1,
    show: bool = False,
) -> dict[str, Any]:
    counts: Counter[str] = Counter()
    start = process_time()
    for animal in ZOO:
        if names and not any(name in animal.name for name in names):
            continue
        for number in range(seed, seed + repeats):
            begun = process_time()
            outcome, why = audit(animal, seed=number, trials=trials)
            kind = "flawed" if animal.flawed else "correct"
            counts[f"{kind}_{outcome}"] += 1
            if show:
                seconds = process_time() - begun
                line = f"{outcome:8} {seconds:6.2f} s  {kind:7} {animal.name}: {why}"
                print(line[:200], flush=True)
    return {**dict(sorted(counts.items())), "seconds": round(process_time() - start, 1)}


def main(words: Sequence[str]) -> None:
    """Audit the zoo, or the mechanisms that are named."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=1)
    given = vars(parser.parse_args(words))
    print(json.dumps({"benchmark": "bench_zoo", **run(**given, show=True)}))


if __name__ == "__main__":
    main(sys.argv[1:])
