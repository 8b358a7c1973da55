"""What the store remembers of a workflow's parts.

The schemas of sources: read from the sources themselves, remembered for when they are out of reach.

Reading a file's footer takes less time than opening the store does, so a source that is there is asked itself. One
that is not (the data is on another machine, the disk is not mounted) has the schema it had when it was last run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from engine.errors import PapilioError
from engine.model.binding import Bound
from engine.model.operator import Place, Source
from engine.model.types import Schema


class SourceSchemas:
    """Answers what a source's columns are, for `bind`."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url

    def discover(self, source: Source, place: Place) -> Schema | None:
        """A source's schema, None where it cannot be told. A store that fails only costs knowledge."""
        try:
            if source.remote or source.missing(place):
                return self._last_known(source.identity(place))
            return source.discover(place)
        except Exception:
            return None  # a broken file is told when it is read, with the reason

    def _last_known(self, identity: str) -> Schema | None:
        from engine.store.peek import CannotPeek, last_schema  # most sources are there, and nobody asks the store

        with contextlib.suppress(CannotPeek):
            return last_schema(self._url, identity)
        with contextlib.suppress(PapilioError):
            from engine.store import MetadataStore

            with MetadataStore(self._url) as store:
                records = sorted(store.list_schemas(identity), key=lambda record: record.seen)
                return dict(records[-1].columns) if records else None
        return None


def remember_operators(bound: Bound, url: str | None = None) -> None:
    """Write down what the operators of a workflow say about themselves, once for each version of Papilio."""
    from engine import __version__
    from engine.store import MetadataStore, OperatorSpecification

    with contextlib.suppress(PapilioError), MetadataStore(url) as store:
        known = {one.name for one in store.list_operators() if one.version == __version__}
        for kind in {type(operator) for operator in bound.operators.values()}:
            if kind.name not in known:
                ports = {"in": [port.name for port in kind.inputs], "out": [port.name for port in kind.outputs]}
                store.put_operator(
                    OperatorSpecification(
                        name=kind.name,
                        version=__version__,
                        category=kind.category.value,
                        ports=ports,
                        settings=kind.model_json_schema(),
                    )
                )


def remember_schemas(bound: Bound, nodes: Iterable[str], url: str | None = None) -> None:
    """Write down the schemas of a workflow's sources as they are now, for the time they are out of reach."""
    from engine.store import MetadataStore

    place = bound.place()
    with contextlib.suppress(PapilioError), MetadataStore(url) as store:
        known = [(bound.operators[node], bound.source_schemas.get(node)) for node in nodes]
        store.replace_schemas(
            (source.identity(place), source.fingerprint(place) or "", schema)
            for source, schema in known
            if isinstance(source, Source) and schema is not None
        )
