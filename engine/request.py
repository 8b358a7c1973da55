"""What a person asks of a run: the same settings from the command line, the run bar and a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.control import RunControl
from engine.errors import BadInput
from engine.events import Event
from engine.model.binding import Bound
from engine.partition.granularity import Granularity
from engine.plan.choice import BEST, NONE
from engine.schedule.costs import SimulationSettings
from engine.schedule.policy import ELASTIC, MIXED, policy_named
from engine.schedule.settings import ScheduleSettings


class RunRequest(BaseModel):
    """How to run a workflow. What is left out is the backend's own default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    backend: Literal["spark", "simulated"] = "spark"
    policy: str = MIXED
    granularity: Granularity | None = None
    master: str = "local[*]"
    pack_rows: int | None = Field(None, ge=1)
    queue_packs: int | None = Field(None, ge=1)
    queue_mb: float | None = Field(None, gt=0)
    queue_memory_mb: int | None = Field(None, ge=0)
    slot_ms: float | None = Field(None, gt=0)
    theta: int | None = Field(None, ge=0)
    thetas: dict[str, int] = Field(default_factory=dict)
    degree: int | Literal["auto"] = 1
    telemetry: bool = True
    driver_memory_mb: int | None = Field(None, ge=512)
    confs: dict[str, str] = Field(default_factory=dict)
    parallel: int | None = Field(None, ge=1)
    trust: bool = False
    plan: str = BEST  # the physical plan: the best, none, or the one of a signature
    resume: str | None = None
    paused: bool = False  # before the first decision
    speed: float | None = Field(None, gt=0, allow_inf_nan=False)  # of a simulated run
    lasts_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)  # instead of a speed: so long to watch

    @classmethod
    def from_plain(cls, settings: Mapping[str, Any]) -> RunRequest:
        """The request that plain data describes; what is wrong with it is named."""
        try:
            return cls.model_validate(dict(settings))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadInput(f"run settings: {where}: {first['msg']}") from None

    def check(self) -> None:
        """Refuse what cannot be, before anything starts."""
        if self.policy not in (MIXED, ELASTIC):
            policy_named(self.policy)
        if self.backend == "simulated" and self.plan not in (BEST, NONE):
            raise BadInput("--plan: a simulated run counts rows and costs; it has no physical plan")
        if self.backend == "simulated" and self.resume:
            raise BadInput("--resume: a simulated run is not resumed; simulate it anew")
        if self.backend == "spark" and (self.speed is not None or self.lasts_seconds is not None):
            raise BadInput("--speed: only a simulated run can be paced; Spark takes the time it needs")
        if self.speed is not None and self.lasts_seconds is not None:
            raise BadInput("--speed and --lasts: choose one of them")

    def control(self) -> RunControl:
        """What drives a run of this request."""
        return RunControl(paused=self.paused, speed=self.speed)

    def start(
        self,
        bound: Bound,
        *,
        folder: Path | None = None,
        store: str | None = None,
        events: str | None = None,
        listener: Callable[[Event], None] | None = None,
        control: RunControl | None = None,
        begun: Callable[[str, Path], None] | None = None,
    ) -> dict[str, Any]:
        """Run it here and now, to its end; gives the summary."""
        shared: dict[str, Any] = {"folder": folder, "store": store, "events": events, "listener": listener,
                                  "control": control or self.control(), "begun": begun}  # fmt: skip
        try:
            return self._start(bound, shared)
        except BadInput as error:
            from engine.experiments.data import how_to_make

            if hint := how_to_make(bound, str(error)):
                raise BadInput(f"{error}\n{hint}") from error
            raise

    def _start(self, bound: Bound, shared: dict[str, Any]) -> dict[str, Any]:
        if self.policy == ELASTIC:
            return self._scaled(bound, shared)
        chosen = self.model_dump(include={"pack_rows", "queue_packs", "queue_mb", "slot_ms", "theta"})
        chosen = {name: value for name, value in chosen.items() if value is not None}
        given = dict(shared)
        folder, store = given.pop("folder"), given["store"]
        if self.backend == "simulated":
            from engine.simulation import launch_simulated

            kind = self.granularity or Granularity.OPERATOR
            simulation = SimulationSettings(granularity=kind, policy=self.policy, thetas=self.thetas, **chosen)
            if self.lasts_seconds is not None:  # how long it takes is known once it was reckoned, in no time
                given["control"].speed = _seconds(bound, simulation, store) / self.lasts_seconds
            return launch_simulated(bound, simulation, folder=folder, telemetry=self.telemetry, **given)
        from engine.spark.launch import launch
        from engine.spark.runner import RunSettings
        from engine.spark.session import SparkSettings

        schedule = ScheduleSettings(
            granularity=self.granularity or Granularity.FUSED,
            policy=self.policy,
            thetas=self.thetas,
            queue_memory_mb=self.queue_memory_mb,
            degree=None if self.degree == "auto" else self.degree,
            telemetry=self.telemetry,
            **chosen,
        )
        settings = RunSettings(
            schedule=schedule,
            plan=self.plan,
            resume=self.resume,
            spark=SparkSettings(master=self.master, driver_memory_mb=self.driver_memory_mb, extra=self.confs),
            folder=folder,
            parallel_units=self.parallel,
            trusted=self.trust,
        )
        return launch(bound, settings, **given)

    def _scaled(self, bound: Bound, shared: dict[str, Any]) -> dict[str, Any]:
        """Keep the file's limits by adding and removing nodes; Workers of its own unless a cluster is named."""
        from engine.elastic.record import ElasticRecord
        from engine.model.file import WorkflowFile

        file = WorkflowFile(bound.workflow, bound.file or Path(f"{bound.name}.butterfly.yaml"))
        master = None if self.master.startswith("local") else self.master
        record = ElasticRecord(file, backend=self.backend, master=master, **shared)
        if self.backend == "simulated":
            from engine.elastic.rates import data_rate
            from engine.elastic.simulation import launch_simulation

            if self.lasts_seconds is not None:
                seconds = data_rate(record.limits.rate, file.path.parent).seconds
                record.control.speed = seconds / self.lasts_seconds
            return launch_simulation(record)[0]
        live = record.limits.live
        from engine.elastic.launch import launch_live
        from engine.experiments.elastic_data import make_lines

        return launch_live(
            bound,
            record,
            confs=self.confs,
            prepare=lambda tell: make_lines(bound, live, tell),
            trusted=self.trust,
        )


def _seconds(bound: Bound, settings: SimulationSettings, store: str | None) -> float:
    """How long a simulated run takes on its virtual clock."""
    from engine.schedule.costs import simulate
    from engine.store.statistics import known_rows

    return max(0.001, float(simulate(bound, settings, known_rows(bound, store))["seconds"]))
