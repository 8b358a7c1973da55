"""`papilio export --to pyspark`: the workflow as a script that a Spark engineer can take over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine.errors import BadInput
from engine.model.binding import Bound
from engine.model.meanings import Meaning
from engine.model.operator import (
    BuildInputs,
    Built,
    Operator,
    Role,
    Split,
    Target,
    is_secret_reference,
    port_frame,
    way_frame,
)
from engine.partition.fused import FusedPlan, Held, counted_ports, fuse
from engine.partition.tables import is_streaming
from engine.spark.script import Code, ScriptTools, assignment, frame, source

_HEADER = '''"""{title}

{description}
Written by Papilio from the workflow `{name}`. It needs PySpark 4.2 or newer and nothing else{needs}.
Run it with `spark-submit {file}`, or with Python.
"""

'''


def export_pyspark(bound: Bound, file_name: str = "workflow.py") -> str:
    """The script's text. Everything that runs is what the engine's operators build."""
    if is_streaming(bound):
        raise BadInput(f"{bound.file or bound.name}: a streaming warehouse has no script; `papilio stream run` runs it")
    bound.raise_errors()
    try:
        return _Writer(bound, file_name).text()
    except BadInput as error:
        raise BadInput(f"{bound.file or bound.name}: {error}") from None


class _Writer:
    def __init__(self, bound: Bound, file_name: str) -> None:
        self.bound = bound
        self.file_name = file_name
        self.plan: FusedPlan = fuse(bound)
        self.names = _variable_names(bound)
        self.frames: dict[tuple[str, str], Code] = {}
        self.lines: list[str] = []
        self.preambles: list[str] = []
        self.imports: set[str] = set()
        self.staged = {unit.result for unit in self.plan.units if unit.held is not Held.TARGET}

    def text(self) -> str:
        for node in self.bound.order:
            self.node(node)
        body = "\n".join(f"    {line}" if line else "" for line in "\n".join(self.lines).splitlines())
        return self.header() + self.constants() + "".join(self.preambles) + self.main(body)

    # -- the parts of the script

    def header(self) -> str:
        workflow = self.bound.workflow
        description = f"{workflow.description.strip()}\n\n" if workflow.description else ""
        papilio = any("engine" in line for line in self.imports)
        needs = ", and Papilio itself for its connections to databases" if papilio else ""
        text = _HEADER.format(
            title=workflow.name or self.bound.name,
            description=description.replace("\\", "\\\\").replace('"""', "'''"),
            name=self.bound.name,
            needs=needs,
            file=self.file_name,
        )
        used = "\n".join(self.lines) + "".join(self.preambles)
        imports = ["import os"] if "os.environ" in used else []
        spark = ["from pyspark.sql import SparkSession"]
        if "Window" in used:
            spark = ["from pyspark.sql import SparkSession, Window"]
        if re.search(r"\bF\.", used):
            spark.append("from pyspark.sql import functions as F")
        imports = sorted({*imports, *(line for line in self.imports if "engine" not in line)})
        ours = sorted(line for line in self.imports if "engine" in line)
        groups = ["\n".join(group) for group in (imports, spark, ours) if group]
        return text + "\n\n".join(groups) + "\n\n"

    def constants(self) -> str:
        lines = [f"{name.upper()} = {source(str(path))}" for name, path in self.bound.roots.items() if name]
        return "\n".join(lines) + "\n\n\n" if lines else "\n"

    def main(self, body: str) -> str:
        return (
            "def main() -> None:\n"
            "    spark = (\n"
            "        SparkSession.builder\n"
            f"        .appName({source(self.bound.name)})\n"
            '        .config("spark.sql.ansi.enabled", "true")\n'
            '        .config("spark.sql.session.timeZone", "UTC")\n'
            "        .getOrCreate()\n"
            "    )\n\n"
            f"{self.registration()}"
            f"{body.rstrip()}\n\n\n"
            'if __name__ == "__main__":\n'
            "    main()\n"
        )

    def registration(self) -> str:
        """What a script that reads or writes databases says to its session first."""
        if not any("engine.spark.adbc" in line for line in self.imports):
            return ""
        secrets = {
            text[6:-1]
            for operator in self.bound.operators.values()
            for _, text, means in operator.texts()
            if means.meaning is Meaning.SECRET and is_secret_reference(text)
        }
        return f"    register(spark, secrets={source(sorted(secrets))})\n\n"

    # -- one node

    def node(self, node: str) -> None:
        operator = self.bound.operators[node]
        self.imports.update(operator.script_imports())
        self.comment(node, operator)
        inputs: dict[str, list[Code]] = {}
        for link in self.bound.incoming.get(node, ()):
            inputs.setdefault(link.target_port, []).append(self.frames[link.source, link.source_port])
        schema = self.bound.source_schemas.get(node)
        tools = ScriptTools(node, operator, self.paths(operator), self.names[node], schema)
        if operator.role is Role.TARGET:
            self.target(node, operator, inputs, tools)
        elif operator.role is Role.STAGING:
            self.keep(node, operator.output_ports()[0].name, _first(inputs))
        else:
            self.activity(node, operator.build(BuildInputs(inputs), tools))
            self.preambles.extend(f"{text}\n\n\n" for text in tools.definitions.values())
        self.lines.append("")

    def comment(self, node: str, operator: Operator) -> None:
        described = self.bound.workflow.nodes[node]
        title = described.title or node
        self.lines.append(f"# {title} ({operator.title.lower()})")
        for line in (described.note or "").splitlines():
            self.lines.append(f"# {line}".rstrip())
        for port in counted_ports(self.bound, node):
            self.lines.append(f"# Rows that would leave by `{port}` are left out here; Papilio counts them.")

    def activity(self, node: str, built: Built) -> None:
        ports = list(dict.fromkeys(link.source_port for link in self.bound.outgoing.get(node, ())))
        if isinstance(built, Split) and len(ports) > 1:
            shared = Split(Code(self.names[node]), built.ways, built.working, built.overlapping)
            self.lines.append(assignment(self.names[node], built.frame.cache()))
            for port in ports:
                self.assign(node, port, way_frame(shared, port), f"{self.names[node]}_{_word(port)}")
            return
        for port in ports:
            code = port_frame(built, port)
            name = self.names[node] if len(ports) == 1 else f"{self.names[node]}_{_word(port)}"
            if node in self.staged:
                self.keep(node, port, code, name)
            else:
                self.assign(node, port, code, name)

    def keep(self, node: str, port: str, code: Code, name: str | None = None) -> None:
        """A result that several read: computed once."""
        self.assign(node, port, code.cache(), name or self.names[node])

    def assign(self, node: str, port: str, code: Code, name: str) -> None:
        if str(code) != name:
            self.lines.append(assignment(name, code))
        self.frames[node, port] = frame(name, self.bound.schemas.get((node, port)))

    def target(self, node: str, operator: Operator, inputs: dict[str, list[Code]], tools: ScriptTools) -> None:
        assert isinstance(operator, Target)
        self.lines.extend(operator.script_write(_first(inputs), tools))
        readers = self.bound.consumers(node)
        holders = [key for key, holder in self.plan.holders.items() if holder == node and key[0] != node]
        if readers or holders:
            self.assign(node, "out", operator.script_read(_first(inputs), tools), self.names[node])
            for key in holders:  # what else read the same rows goes on from the table
                self.frames[key] = self.frames[node, "out"]

    def paths(self, operator: Operator) -> dict[str, Any]:
        place = self.bound.place()
        return {
            setting: self.path(place.path(text))
            for setting, text, means in operator.texts()
            if means.meaning is Meaning.PATH
        }

    def path(self, path: Path) -> Code:
        for name, root in self.bound.roots.items():
            if name and (path == root or root in path.parents):
                rest = path.relative_to(root).as_posix()
                if any(character in rest for character in '{}"\\'):
                    break
                return Code(name.upper() if rest == "." else f'f"{{{name.upper()}}}/{rest}"')
        return Code(source(str(path)))


def _first(inputs: Mapping[str, list[Code]]) -> Code:
    return next(iter(inputs.values()))[0]


def _word(text: str) -> str:
    return re.sub(r"\W", "_", text)


def _variable_names(bound: Bound) -> dict[str, str]:
    """A Python name for each node: its id where that is one, and never the same twice."""
    import builtins
    import keyword

    taken = {"spark", "F", "Window", "os", "main", "SparkSession", *dir(builtins)}
    taken |= {name.upper() for name in bound.roots}
    names = {}
    for node in bound.order:
        name = _word(node)
        if name[0].isdigit():
            name = f"node_{name}"
        while name in taken or keyword.iskeyword(name):
            name += "_"
        taken.add(name)
        names[node] = name
    if not names:
        raise BadInput("the workflow has no nodes")
    return names
