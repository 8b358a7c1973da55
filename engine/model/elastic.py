"""The limits of an elastic workflow: how fast data come, what each stage may take, and the nodes there are.

What the configuration file is in the elastic paper (its figure 1, component 12). Limits that contradict each other
are refused with the reason.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from engine.model.kept import Kept
from engine.model.problems import did_you_mean

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


def _no_copy(policy: object) -> object:
    if policy == "copy":
        raise ValueError(
            "with `copy` every node would get every row, and the warehouse each row as often; it is dimensions "
            "that are copied"
        )
    return policy


Policy = Annotated[Literal["round_robin", "on_demand", "hash", "range"], BeforeValidator(_no_copy)]

QUERIES = ("Q1.1", "Q2.1", "Q3.1", "Q4.1")


def _queries(given: object) -> object:
    """A list of names, or names with queries of one's own, each of which can be read."""
    from engine.model.star_queries import read_query

    if isinstance(given, list):
        unknown = [str(name) for name in given if name not in QUERIES]
        if unknown or not given:
            raise ValueError(
                f"queries must be some of {', '.join(QUERIES)}, not {', '.join(unknown) or 'none'}; those of your own "
                "are written as `name: SELECT …`"
            )
        return given
    if not isinstance(given, dict) or not given:
        raise ValueError("queries are a list of SSB's, or `name: SELECT …` for each of your own")
    problems = []
    for name, sql in given.items():
        try:
            read_query(sql if isinstance(sql, str) else "")
        except ValueError as error:
            problems.append(f"query `{name}`: {error}")
    if problems:
        raise ValueError("; ".join(problems))
    return given


Queries = Annotated[list[str] | dict[str, str], BeforeValidator(_queries)]


class StageNodes(Kept):
    """How many nodes a stage may have."""

    min: int = Field(1, ge=1, description="Never fewer than these.")
    max: int | None = Field(None, ge=1, description="Never more than these; none given: as many as the pool has.")

    @model_validator(mode="after")
    def _in_order(self) -> StageNodes:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"at least {self.min} nodes and at most {self.max} contradict each other")
        return self


class Extraction(Kept):
    """How often data are extracted, and how long that may take (elastic, figures 3 and 4)."""

    every_s: Seconds = Field(2.0, description="An extraction begins every so many seconds.")
    limit_s: Seconds | None = Field(None, description="How long one may take; none given: until the next begins.")
    margin_s: NotNegative = Field(0.0, description="X: scale-in asks for half of the limit minus this.")
    nodes: StageNodes = Field(default_factory=StageNodes, description="How many nodes it may have.")
    distribution: Policy = Field("round_robin", description="How the sources are dealt to the extraction nodes.")

    @property
    def longest_s(self) -> float:
        """How long an extraction may take."""
        return self.every_s if self.limit_s is None else self.limit_s

    @model_validator(mode="after")
    def _possible(self) -> Extraction:
        if self.limit_s is not None and self.limit_s > self.every_s:
            raise ValueError(
                f"an extraction may take {self.limit_s:g} s (limit_s) but the next begins after {self.every_s:g} s "
                "(every_s)"
            )
        if self.margin_s >= self.longest_s / 2:
            raise ValueError(
                f"with a margin X of {self.margin_s:g} s (margin_s) no time is below half of {self.longest_s:g} s "
                "minus X, so nodes could never be removed"
            )
        return self


class Transformation(Kept):
    """The queue before each transformation node (elastic, figure 5), and how long its rows may take (section 5.2)."""

    queue_mb: Amount = Field(100.0, description="The size of a node's queue, in MB.")
    limit_share: Share = Field(0.5, description="A queue filled above this share asks for another node.")
    limit_s: Seconds | None = Field(
        None, description="How long rows may wait in a queue and be transformed; none given: their share of limit_s."
    )
    nodes: StageNodes = Field(default_factory=StageNodes, description="How many nodes it may have.")
    distribution: Policy = Field("round_robin", description="How extracted rows are dealt to the nodes.")

    @property
    def limit_mb(self) -> float:
        """The size from which on a queue is too long."""
        return self.queue_mb * self.limit_share


class Buffer(Kept):
    """Memory and disk of the nodes that hold transformed rows until they are loaded (elastic, figure 6)."""

    memory_mb: Amount = Field(1000.0, description="Memory of a buffer node, in MB.")
    swap_share: Share = Field(
        0.5, description="Above this share of memory rows are swapped to disk, until it is empty."
    )
    disk_mb: Amount = Field(100_000.0, description="Disk of a buffer node, in MB.")
    disk_share: Share = Field(0.9, description="Disk filled above this share asks for another node.")
    scale_in: bool = Field(False, description="Remove a buffer whose data fit into another: only by request.")
    nodes: StageNodes = Field(default_factory=StageNodes, description="How many nodes it may have.")
    distribution: Policy = Field("round_robin", description="How transformed rows are dealt to the buffers.")


class Switch(Kept):
    """The data rate that a switch may have (elastic, figure 7)."""

    limit_rows_s: Amount = Field(500_000.0, description="Rows a second through one switch; more asks for another.")
    margin_rows_s: NotNegative = Field(0.0, description="Z: scale-in asks for so much less than the limit.")
    hold_s: Seconds | None = Field(None, description="For how long the rate must be that low; none given: hold_s.")
    nodes: StageNodes = Field(default_factory=StageNodes, description="How many nodes it may have.")

    @model_validator(mode="after")
    def _possible(self) -> Switch:
        if self.margin_rows_s >= self.limit_rows_s:
            raise ValueError(
                f"the margin Z of {self.margin_rows_s:g} rows/s (margin_rows_s) is not below the limit of "
                f"{self.limit_rows_s:g}, so switches could never be removed"
            )
        return self


class Warehouse(Kept):
    """How long a load and a query may take (elastic, figures 8 and 9)."""

    every_s: Seconds = Field(2.0, description="A load begins every so many seconds.")
    load_limit_s: Seconds | None = Field(None, description="How long a load may take.")
    batch_mb: Amount = Field(100.0, description="A node loads files of this size at most, in MB.")
    query_limit_s: Seconds | None = Field(None, description="How long a query may take on average.")
    sessions: int = Field(0, ge=0, description="How many ask queries at the same time, all the time.")
    queries: Queries = Field(
        default_factory=lambda: list(QUERIES), description="The SSB queries that they ask, or queries of one's own."
    )
    margin_s: NotNegative = Field(0.0, description="X: scale-in asks for half of each limit minus this.")
    nodes: StageNodes = Field(default_factory=StageNodes, description="How many nodes it may have.")

    @model_validator(mode="after")
    def _possible(self) -> Warehouse:
        if self.load_limit_s is not None and self.load_limit_s > self.every_s:
            raise ValueError(
                f"a load may take {self.load_limit_s:g} s (load_limit_s) but the next begins after "
                f"{self.every_s:g} s (every_s)"
            )
        for name, limit in (("load_limit_s", self.load_limit_s), ("query_limit_s", self.query_limit_s)):
            if limit is not None and self.margin_s >= limit / 2:
                raise ValueError(
                    f"with a margin X of {self.margin_s:g} s (margin_s) no time is below half of {limit:g} s ({name}) "
                    "minus X, so nodes could never be removed"
                )
        return self


class Step(Kept):
    """A data rate from a moment on."""

    at_s: NotNegative = Field(description="From this moment on, in seconds.")
    rows_s: NotNegative = Field(description="Rows a second.")


class StepsRate(Kept):
    """A data rate that changes from one moment to the next."""

    kind: Literal["steps"]
    steps: list[Step] = Field(min_length=1, description="The rates in the order of their moments.")
    seconds: Seconds = Field(description="How long it all lasts.")

    @model_validator(mode="after")
    def _in_order(self) -> StepsRate:
        moments = [step.at_s for step in self.steps]
        if moments != sorted(set(moments)):
            raise ValueError("the moments of the steps (at_s) must grow from step to step")
        if moments[-1] >= self.seconds:
            raise ValueError(f"a step begins at {moments[-1]:g} s, but all lasts {self.seconds:g} s")
        return self


class RampRate(Kept):
    """A data rate that grows or falls evenly, in stairs where asked."""

    kind: Literal["ramp"]
    from_rows_s: NotNegative = Field(description="The first rate.")
    to_rows_s: NotNegative = Field(description="The last rate.")
    stairs: int | None = Field(None, ge=2, description="In so many even stairs, the first and last rate among them.")
    seconds: Seconds = Field(description="How long it all lasts.")


class RecordedRate(Kept):
    """A data rate as it was recorded: a CSV file with the columns `seconds` and `rows_s`."""

    kind: Literal["recorded"]
    path: str = Field(description="The CSV file, relative to the workflow file.")


class DiurnalRate(Kept):
    """A data rate that rises by day and falls by night."""

    kind: Literal["diurnal"]
    low_rows_s: NotNegative = Field(description="The lowest rate of the day.")
    high_rows_s: NotNegative = Field(description="The highest rate of the day.")
    peak_hour: float = Field(14.0, ge=0, lt=24, description="The hour of the highest rate.")
    seconds: Seconds = Field(86_400.0, description="How long it all lasts.")

    @model_validator(mode="after")
    def _in_order(self) -> DiurnalRate:
        if self.low_rows_s > self.high_rows_s:
            raise ValueError(f"the lowest rate {self.low_rows_s:g} is above the highest, {self.high_rows_s:g}")
        return self


class BurstsRate(Kept):
    """A steady data rate with bursts, the same ones each time."""

    kind: Literal["bursts"]
    base_rows_s: NotNegative = Field(description="The rate between bursts.")
    burst_rows_s: NotNegative = Field(description="The rate in a burst.")
    every_s: Seconds = Field(description="The mean time from burst to burst.")
    burst_s: Seconds = Field(description="How long a burst lasts.")
    seed: int = Field(1, description="Other bursts with another number.")
    seconds: Seconds = Field(description="How long it all lasts.")


Rate = Annotated[StepsRate | RampRate | RecordedRate | DiurnalRate | BurstsRate, Field(discriminator="kind")]


class Sources(Kept):
    """Where the rows come from."""

    number: int = Field(1, ge=1, description="How many sources there are.")
    skew: NotNegative = Field(
        0.0, description="How unequal they are: the k-th gives 1/k**skew of the first one's rows."
    )


class Capacity(Kept):
    """What one node can do: the simulator's model of the machines. The defaults are those of the paper's scenario."""

    row_bytes: Amount = Field(131.0, description="Bytes of a row between the stages (50 MB are about 380,000 rows).")
    extraction_rows_s: Amount = Field(520_000.0, description="Rows a second that an extraction node extracts.")
    transformation_rows_s: Amount = Field(400_000.0, description="Rows a second that a transformation node transforms.")
    swap_mb_s: Amount = Field(30.0, description="MB a second that a buffer node swaps to disk.")
    load_rows_s: Amount = Field(360_000.0, description="Rows a second that a warehouse node loads, indexes included.")
    load_fixed_s: NotNegative = Field(0.05, description="Seconds that every load takes: before and after its rows.")
    scan_mb_s: Amount = Field(200.0, description="MB a second that a warehouse node reads for a query.")
    query_fixed_s: NotNegative = Field(1.0, description="Seconds that every query takes.")
    session_share: NotNegative = Field(0.3, description="By what share each further session slows the queries down.")
    rebalance_mb_s: Amount = Field(100.0, description="MB a second that move to or from one node on rebalancing.")
    dimensions_mb: NotNegative = Field(100.0, description="Size of the dimensions, which each warehouse node holds.")
    warehouse_mb: NotNegative = Field(0.0, description="Facts that the warehouse holds at the beginning.")
    keep_s: Seconds | None = Field(None, description="Facts older than this leave the warehouse; none given: never.")
    start_s: NotNegative = Field(4.0, description="Seconds that a ready node takes to begin.")
    node_hour_cost: NotNegative = Field(1.0, description="What a node costs in an hour.")


class Live(Kept):
    """How `papilio scale run` makes it real: the rows, the Workers, and which nodes of the workflow are what."""

    scale: Amount = Field(0.1, description="The TPC-H scale whose rows are replayed.")
    source: str = Field("lineitem", description="The source whose rows come at the asked rate.")
    facts: str = Field(
        "ssb_lineorder", description="The target whose rows are the facts; other targets are dimensions."
    )
    key: str = Field("lo_orderkey", description="The column by whose hash facts are distributed.")
    worker_cores: int = Field(1, ge=1, description="Cores of a Worker.")
    worker_mb: int = Field(1024, ge=512, description="Memory of a Worker, in MB.")
    pack_rows: int = Field(50_000, ge=1, description="Rows in a pack.")


class Elastic(Kept):
    """The limits of an elastic workflow, the nodes that are ready to keep them, and the data rate."""

    pool: int = Field(12, ge=1, description="All nodes there are: those at work and those that are ready.")
    limit_s: Seconds | None = Field(
        None,
        description="How long extraction, transformation and load may take in all; those that have no limit of their "
        "own share what the others leave.",
    )
    sample_s: Seconds = Field(2.0, description="The stages are looked at every so many seconds.")
    settle_s: NotNegative = Field(6.0, description="After a change a stage is left alone for so long.")
    hold_s: Seconds = Field(20.0, description="Scale-in comes when its condition has held for so long.")
    step_share: NotNegative = Field(
        0.0, le=1, description="How many nodes at a time: this share of the stage's, and one at least."
    )
    rate: Rate = Field(description="How fast the rows come.")
    sources: Sources = Field(default_factory=Sources, description="Where the rows come from.")
    extraction: Extraction = Field(default_factory=Extraction, description="Limits of the extraction.")
    transformation: Transformation = Field(default_factory=Transformation, description="Limits of the transformation.")
    buffer: Buffer = Field(default_factory=Buffer, description="Limits of the buffers.")
    switch: Switch = Field(default_factory=Switch, description="Limits of the switches.")
    warehouse: Warehouse = Field(default_factory=Warehouse, description="Limits of the warehouse.")
    capacity: Capacity = Field(default_factory=Capacity, description="What one node can do, for the simulator.")
    live: Live = Field(default_factory=Live, description="How it is run live.")

    @property
    def least_nodes(self) -> int:
        """The nodes that all stages need together."""
        stages = (self.extraction, self.transformation, self.buffer, self.switch, self.warehouse)
        return sum(stage.nodes.min for stage in stages)

    def completed(self) -> Elastic:
        """With the limits of extraction, transformation and load that follow from that of all three.

        As in the paper's scenario (its section 5.2: 3 s in all, 1 s each), whoever has no limit gets an equal share.
        """
        share = self._share_s
        if share is None:
            return self
        extraction, transformation, warehouse = self.extraction, self.transformation, self.warehouse
        if extraction.limit_s is None:
            extraction = extraction.model_copy(update={"limit_s": min(share, extraction.every_s)})
        if transformation.limit_s is None:
            transformation = transformation.model_copy(update={"limit_s": share})
        if warehouse.load_limit_s is None:
            warehouse = warehouse.model_copy(update={"load_limit_s": min(share, warehouse.every_s)})
        completed = {"extraction": extraction, "transformation": transformation, "warehouse": warehouse}
        return self.model_copy(update=completed)

    @property
    def _stated_s(self) -> list[float]:
        """The time limits of single stages that a person wrote."""
        parts = (self.extraction.limit_s, self.transformation.limit_s, self.warehouse.load_limit_s)
        return [part for part in parts if part is not None]

    @property
    def _share_s(self) -> float | None:
        """What each stage without a time limit has of the limit of all; none where nothing follows from it."""
        if self.limit_s is None:
            return None
        left, without = self.limit_s - sum(self._stated_s), 3 - len(self._stated_s)
        return left / without if left > 0 and without else None

    @model_validator(mode="after")
    def _possible(self) -> Elastic:
        if self.least_nodes > self.pool:
            raise ValueError(
                f"the stages need {self.least_nodes} nodes at least (the sum of their nodes.min), and the pool has "
                f"{self.pool}"
            )
        if self.hold_s < self.settle_s:
            raise ValueError(
                f"scale-in after {self.hold_s:g} s (hold_s) would come before a change has settled, "
                f"{self.settle_s:g} s (settle_s)"
            )
        known = sum(self._stated_s)
        if self.limit_s is not None and known > self.limit_s:
            raise ValueError(
                f"extraction, transformation and load may take {known:g} s together by their own limits, but all "
                f"stages {self.limit_s:g} s (limit_s)"
            )
        share = self._share_s
        for name, stage, limit in (
            ("extraction", self.extraction, self.extraction.limit_s),
            ("load", self.warehouse, self.warehouse.load_limit_s),
        ):
            if share is not None and limit is None and stage.margin_s >= min(share, stage.every_s) / 2:
                has = min(share, stage.every_s)
                raise ValueError(
                    f"of {self.limit_s:g} s for all stages (limit_s) the {name} has {has:g} s; with a margin X of "
                    f"{stage.margin_s:g} s (margin_s) nodes could never be removed"
                )
        return self


def unheeded(limits: Elastic) -> list[str]:
    """What a person wrote among the limits and nobody heeds."""
    found = _unknown(limits, "elastic")
    if limits.warehouse.query_limit_s is not None and not limits.warehouse.sessions:
        found.append("`elastic.warehouse.query_limit_s` is not heeded: nobody asks queries (`sessions` is 0)")
    return found


def _unknown(part: Kept, place: str) -> list[str]:
    """What is no limit: it is kept in the file."""
    fields = type(part).model_fields
    found = [
        f"`{place}.{name}` is no limit, so it is not heeded{did_you_mean(name, fields)}"
        for name in part.model_extra or ()
    ]
    for name in fields:
        value = getattr(part, name)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Kept):
                found += _unknown(one, f"{place}.{name}")
    return found
