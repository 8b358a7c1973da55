"""The schemas of sources, read once and remembered for as long as the source does not change."""

from __future__ import annotations

import contextlib

from engine.errors import PapilioError
from engine.model.operator import Place, Source
from engine.model.types import Schema


class SourceSchemas:
    """Answers what a source's columns are: from the store where it has them, else from the source itself."""

    def __init__(self, url: str | None = None) -> None:
        self._url = url

    def discover(self, source: Source, place: Place) -> Schema | None:
        """A source's schema, None where it cannot be told cheaply. A store that fails only costs time."""
        try:
            mark = source.fingerprint(place)
        except OSError:
            return None
        identity = source.identity(place)
        known = self._known(identity, mark) if mark is not None else None
        if known is not None:
            return known
        try:
            schema = source.discover(place)
        except Exception:
            return None  # a broken file is told when it is read, with Spark's own reason
        if schema is not None and mark is not None:
            self._remember(identity, mark, schema)
        return schema

    def _known(self, identity: str, mark: str) -> Schema | None:
        with contextlib.suppress(PapilioError):
            from engine.store import MetadataStore

            with MetadataStore(self._url) as store:
                record = store.get_schema(identity, mark)
                return dict(record.columns) if record else None
        return None

    def _remember(self, identity: str, mark: str, schema: Schema) -> None:
        with contextlib.suppress(PapilioError):
            from engine.store import MetadataStore

            with MetadataStore(self._url) as store:
                store.put_schema(identity, mark, schema)
