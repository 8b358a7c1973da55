"""Signatures: a physical workflow as one line of text (physical design, section 4).

`a@p` is activity a implemented by p, dots make a path, `(…)//(…)` are paths side by side, `a_b(A,B)` is a sorter on the
edge from a to b and `V!(A,B)` one on the recordset V. A node that was named before and comes again, without its
implementation, is that node: so graphs can be written in which paths part and meet in any way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engine.errors import BadInput
from engine.model.physical import Key, Order, order_text
from engine.model.problems import did_you_mean
from engine.plan.constraints import check_choice, implementations
from engine.plan.graph import Activity, Edge, Graph, Position
from engine.plan.space import Misfit, Plan, Space

# ---------------------------------------------------------------- writing


def signature(graph: Graph, plan: Plan) -> str:
    """A plan in the paper's notation."""
    return _Writer(graph, plan).text()


@dataclass(frozen=True)
class _Path:
    """A path that was written, and the edges by which it leads to activities with several inputs."""

    text: str
    leads_to: tuple[Edge, ...]
    ends: bool  # it has no other ends


class _Writer:
    """Writes each node once where it can: a node of several inputs behind all the paths that lead to it."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.on_recordset = {at.node: order for at, order in plan.sorters.items() if at.edge is None}
        self.on_edge = {at.edge: order for at, order in plan.sorters.items() if at.edge is not None}
        self.written: set[str] = set()

    def text(self) -> str:
        starts = [id_ for id_ in self.graph.nodes if not self.graph.incoming[id_]]
        paths = [path.text for path in self.together([self.path(id_) for id_ in starts])]
        for id_ in self.graph.nodes:  # what the paths could not be laid out for stands behind them
            if id_ not in self.written:
                sides = [_dotted(edge.source, self.sorter(edge)) for edge in self.graph.incoming[id_]]
                paths.append(_dotted(_beside(sides), self.path(id_).text))
        return _beside(paths)

    def path(self, start: str) -> _Path:
        """From a node on, until a node of several inputs or the end."""
        parts = self.node(start)
        self.written.add(start)
        at = start
        while len(self.graph.outgoing[at]) == 1:
            (edge,) = self.graph.outgoing[at]
            if len(self.graph.incoming[edge.target]) > 1:
                break
            at = edge.target
            self.written.add(at)
            parts += [self.sorter(edge), *self.node(at)]
        branches = self.together([self.branch(edge) for edge in self.graph.outgoing[at]])
        if len(branches) == 1:
            (only,) = branches
            return _Path(_dotted(*parts, only.text), only.leads_to, only.ends)
        shown = [branch.text for branch in branches if branch.text]
        leads = tuple(edge for branch in branches for edge in branch.leads_to)
        ends = bool(branches) and all(branch.ends and branch.text for branch in branches)
        return _Path(_dotted(*parts, _beside(shown)), leads, ends)

    def branch(self, edge: Edge) -> _Path:
        """What an edge leads to."""
        if len(self.graph.incoming[edge.target]) > 1:
            return _Path(self.sorter(edge), (edge,), True)
        behind = self.path(edge.target)
        return _Path(_dotted(self.sorter(edge), behind.text), behind.leads_to, behind.ends)

    def together(self, paths: list[_Path]) -> list[_Path]:
        """Let paths meet in the activities all of whose inputs are the ends of paths that lead nowhere else."""
        if len(paths) < 2:
            return paths
        targets = dict.fromkeys(edge.target for path in paths for edge in path.leads_to)
        for target in targets:
            leading = [path for path in paths if path.text and path.ends and len(path.leads_to) == 1]
            leading = [path for path in leading if path.leads_to[0].target == target]
            if len(leading) < len(self.graph.incoming[target]) or target in self.written:
                continue
            at = paths.index(leading[0])
            sides = [path.text for path in sorted(leading, key=lambda path: path.leads_to[0].number)]
            behind = self.path(target)
            met = _Path(_dotted(_beside(sides), behind.text), behind.leads_to, behind.ends)
            others = [path for path in paths if path not in leading]
            return self.together([*others[:at], met, *others[at:]])
        return paths

    def node(self, id_: str) -> list[str]:
        """A node, and its sorter behind it."""
        if id_ in self.on_recordset:
            return [id_, f"{id_}!({order_text(self.on_recordset[id_])})"]
        if id_ in self.plan.implementations and id_ not in self.plan.by_itself:
            return [f"{id_}@{self.plan.implementations[id_]}"]
        return [id_]

    def sorter(self, edge: Edge) -> str:
        """The sorter on an edge, or nothing."""
        order = self.on_edge.get(edge)
        return "" if order is None else f"{edge.source}_{edge.target}({order_text(order)})"


def _dotted(*parts: str) -> str:
    return ".".join(part for part in parts if part)


def _beside(paths: Sequence[str]) -> str:
    """Paths side by side. Two make a path, which may stand beside a third."""
    text = paths[0] if paths else ""
    for other in paths[1:]:
        text = f"(({text})//({other}))"
    return text


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class Item:
    """A node with its implementation, or a sorter with its order."""

    name: str
    way: str | None = None
    order: Order | None = None
    position: int = 0

    @property
    def is_sorter(self) -> bool:
        """Whether it sorts."""
        return self.order is not None


@dataclass(frozen=True)
class Sequel:
    """A path: parts one behind the other."""

    parts: tuple[Item | Beside, ...]


@dataclass(frozen=True)
class Beside:
    """Paths side by side."""

    paths: tuple[Sequel, ...]


_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>//|[().@!,])|(?P<word>[A-Za-z0-9_][A-Za-z0-9_-]*)|`(?P<quoted>(?:[^`]|``)+)`)""", re.VERBOSE
)


class _Reader:
    """A signature's grammar: path := part ("." part)*; part := item | "(" path ")" ("//" "(" path ")")*."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str, int]] = []
        at = 0
        while text[at:].strip():
            match = _TOKEN.match(text, at)
            if match is None:
                raise BadInput(f"the signature cannot be read at {text[at:].strip()[:20]!r} (position {at + 1})")
            kind = str(match.lastgroup)
            self.tokens.append((kind, match[kind], match.start(kind) + 1))
            at = match.end()
        self.tokens.append(("end", "", len(text) + 1))
        self.at = 0

    def read(self) -> Sequel:
        """The whole signature. Paths side by side need no parentheses around all of them."""
        whole = self.side_by_side()
        if self.tokens[self.at][0] != "end":
            raise self.unexpected("a dot or the end")
        return whole

    def side_by_side(self) -> Sequel:
        paths = [self.path()]
        while self.skip("//"):
            paths.append(self.path())
        return paths[0] if len(paths) == 1 else Sequel((Beside(tuple(paths)),))

    def path(self) -> Sequel:
        parts: list[Item | Beside] = []
        while True:
            if self.skip("("):
                inner = self.side_by_side()
                self.expect(")")
                parts += inner.parts
            else:
                parts.append(self.item())
            if not self.skip("."):
                return Sequel(tuple(parts))

    def item(self) -> Item:
        name, position = self.word("a node")
        if self.skip("@"):
            return Item(name, self.word("an implementation")[0], None, position)
        if self.skip("!"):
            self.expect("(")
            return Item(f"{name}!", None, self.order(), position)
        if self.skip("("):
            return Item(name, None, self.order(), position)
        return Item(name, None, None, position)

    def order(self) -> Order:
        keys = [self.key()]
        while self.skip(","):
            keys.append(self.key())
        self.expect(")")
        return tuple(keys)

    def key(self) -> Key:
        kind, text, _ = self.tokens[self.at]
        if kind not in ("word", "quoted"):
            raise self.unexpected("a column")
        self.at += 1
        descending = self.tokens[self.at][:2] == ("word", "desc")
        self.at += descending
        return Key(text.replace("``", "`") if kind == "quoted" else text, descending)

    def word(self, what: str) -> tuple[str, int]:
        kind, text, position = self.tokens[self.at]
        if kind != "word":
            raise self.unexpected(what)
        self.at += 1
        return text, position

    def skip(self, mark: str) -> bool:
        found = self.tokens[self.at][:2] == ("mark", mark)
        self.at += found
        return found

    def expect(self, mark: str) -> None:
        if not self.skip(mark):
            raise self.unexpected(f"`{mark}`")

    def unexpected(self, wanted: str) -> BadInput:
        _, text, position = self.tokens[self.at]
        found = f"`{text}`" if text else "nothing more"
        return BadInput(f"the signature cannot be read at position {position}: {wanted} is expected, found {found}")


def parse(text: str) -> Sequel:
    """A signature as paths, whatever workflow it is of."""
    return _Reader(text).read()


def read_signature(text: str, space: Space) -> Plan:
    """The plan that a signature stands for, in the space of its workflow. All that does not fit is refused by name."""
    return _Meaning(space).plan(parse(text))


class _Meaning:
    """Takes a signature for a plan of a graph: every node once, every edge as the workflow has it."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.graph = space.graph
        self.ways: dict[str, str | None] = {}
        self.edges: list[tuple[str, str, Item | None]] = []
        self.recordsets: dict[str, Item] = {}

    def plan(self, tree: Sequel) -> Plan:
        self.walk(tree, [])
        self.check_nodes()
        return self.decide(self.match_edges())

    # -- what the text says

    def walk(self, tree: Sequel, before: list[tuple[str, Item | None]]) -> list[tuple[str, Item | None]]:
        """Note nodes and edges along a path; returns its ends, each with the sorter that stands behind it."""
        for part in tree.parts:
            if isinstance(part, Beside):
                before = [end for path in part.paths for end in self.walk(path, before)]
            elif part.is_sorter:
                before = self.sorted(part, before)
            else:
                self.note(part)
                self.edges += [(source, part.name, sorter) for source, sorter in before]
                before = [(part.name, None)]
        return before

    def sorted(self, item: Item, before: list[tuple[str, Item | None]]) -> list[tuple[str, Item | None]]:
        if len(before) != 1:
            raise BadInput(f"the sorter `{item.name}` stands behind no single node (position {item.position})")
        ((node, _),) = before
        if item.name.endswith("!"):
            if item.name[:-1] != node:
                raise BadInput(f"the sorter `{item.name}` stands behind `{node}` (position {item.position})")
            self.recordsets[node] = item
            return before
        if not item.name.startswith(f"{node}_"):
            raise BadInput(f"the sorter `{item.name}` stands behind `{node}` (position {item.position})")
        return [(node, item)]

    def note(self, item: Item) -> None:
        if item.name not in self.graph.nodes:
            near = did_you_mean(item.name, self.graph.nodes)
            raise BadInput(f"the signature names `{item.name}`, and the workflow has no such node{near}")
        if item.way is not None:
            check_choice(self.graph, item.name, item.way)
            if self.ways.get(item.name) is not None:
                raise BadInput(f"the signature says twice how `{item.name}` is implemented")
        self.ways[item.name] = item.way or self.ways.get(item.name)

    # -- whether it is this workflow

    def check_nodes(self) -> None:
        missing = [id_ for id_ in self.graph.nodes if id_ not in self.ways]
        if missing:
            raise BadInput(f"the signature leaves out {', '.join(f'`{id_}`' for id_ in missing[:5])}")

    def match_edges(self) -> Mapping[Edge, Item]:
        """The sorters on edges. Edges between the same two nodes stand in the order of the inputs."""
        waiting: dict[tuple[str, str], list[Edge]] = {}
        for id_ in self.graph.nodes:
            for edge in self.graph.incoming[id_]:
                waiting.setdefault((edge.source, edge.target), []).append(edge)
        sorters = {}
        for source, target, sorter in self.edges:
            ends = waiting.get((source, target))
            if not ends:
                raise BadInput(f"the signature leads from `{source}` to `{target}`, and the workflow does not")
            edge = ends.pop(0)
            if sorter is not None:
                if sorter.name != f"{source}_{target}":
                    raise BadInput(
                        f"the sorter `{sorter.name}` stands between `{source}` and `{target}` "
                        f"(position {sorter.position})"
                    )
                sorters[edge] = sorter
        for (source, target), left in waiting.items():
            if left:
                raise BadInput(f"the workflow leads from `{source}` to `{target}`, and the signature does not")
        return sorters

    # -- the plan

    def decide(self, on_edges: Mapping[Edge, Item]) -> Plan:
        digits: dict[Position | str, int] = {}
        found: set[int] = set()
        for position in self.space.positions:
            item = self.recordsets.get(position.node) if position.edge is None else on_edges.get(position.edge)
            digits[position] = len(position.orders)
            if item is not None:
                found.add(item.position)
                digits[position] = self.order_of(item, position)
        for item in (*self.recordsets.values(), *on_edges.values()):
            if item.position not in found:
                raise BadInput(f"there is no place for the sorter `{item.name}`: no order is of interest there")
        for id_ in self.space.choices:
            digits[id_] = self.choice(id_)
        plan = self.space.plan_of(digits)
        if isinstance(plan, Misfit):
            misfit = self.ways[plan.node] or self.space.choices[plan.node][0].ways[0].name
            raise BadInput(f"`{plan.node}@{misfit}` does not fit: {self.needs(plan.node, misfit)}")
        for id_, way in self.ways.items():
            if way is not None and plan.implementations[id_] != way:
                raise BadInput(f"`{id_}@{way}`: {self.needs(id_, way)}")
        return plan

    def order_of(self, item: Item, position: Position) -> int:
        assert item.order is not None
        if item.order not in position.orders:
            offered = ", ".join(f"({order_text(order)})" for order in position.orders)
            wanted = order_text(item.order)
            raise BadInput(f"the sorter `{item.name}` by ({wanted}) serves nobody; it could be by {offered}")
        return position.orders.index(item.order)

    def choice(self, id_: str) -> int:
        """The digit of the implementation that is named, or of the one the activity takes by itself."""
        way, choices = self.ways[id_], self.space.choices[id_]
        activity = self.graph.nodes[id_]
        assert isinstance(activity, Activity)
        if way is None and activity.physical.named:
            known = ", ".join(implementations(activity))
            raise BadInput(f"the signature does not say how `{id_}` is implemented: {known}")
        for number, choice in enumerate(choices):
            if way is None or any(one.name == way for one in choice.ways):
                return number
        raise BadInput(f"`{id_}@{way}` is forbidden")

    def needs(self, id_: str, way: str) -> str:
        activity = self.graph.nodes[id_]
        assert isinstance(activity, Activity)
        (one,) = (one for one in activity.physical.implementations if one.name == way)
        return f"a {one.title} needs {one.needs()}" if one.needs() else f"it is not the {one.title} here"
