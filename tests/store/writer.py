"""One of several processes that write to a store at once: `python -m tests.store.writer URL PART COUNT`."""

from __future__ import annotations

import sys

from engine.store import MetadataStore
from tests.store.examples import a_plan, a_run


def main(url: str, part: int, count: int) -> None:
    with MetadataStore(url) as store:
        for number in range(count):
            store.put_workflow("shared", {"part": part, "number": number}, f"{part}/{number}")
            store.put_workflow(f"own-{part}", {"number": number}, str(number))
            store.put_run(a_run(part * count + number))
            store.put_schema("source", f"{part}/{number}", {"c": "int"})
            store.put_plan(a_plan(cost=float(number)))  # all write the same one


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
