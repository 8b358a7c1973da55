"""A plugin for Papilio: one file, one operator. `resources/help/plugins.md` explains it line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

from pydantic import Field, StringConstraints

from engine.model.operator import (
    BuildInputs,
    BuildTools,
    Built,
    Finding,
    Inputs,
    ManyColumns,
    Operator,
    column_type,
)
from engine.model.types import Schema


class MaskText(Operator):
    """Hides all but the last characters of a text, as on a receipt: `************1234`."""

    name: ClassVar[str] = "mask_text"
    title: ClassVar[str] = "Mask text"
    family: ClassVar[str] = "cleansing"
    keeps_rows: ClassVar[bool] = True

    columns: ManyColumns = Field(description="The columns whose values are hidden.")
    keep_last: int = Field(4, ge=0, description="How many characters at the end stay readable.")
    sign: Annotated[str, StringConstraints(pattern=r"^[^'\\]$")] = Field(
        "*", description="The character in place of a hidden one."
    )

    def check(self, inputs: Inputs) -> Iterator[Finding]:
        for index, name in enumerate(self.columns):
            kind = column_type(inputs.first(), name)
            if kind not in (None, "?", "string"):
                yield Finding(f"`{name}` is a `{kind}`, and only text can be masked", setting=f"columns[{index}]")

    def output_schemas(self, inputs: Inputs) -> Mapping[str, Schema | None]:
        return {"out": inputs.first()}  # the same columns, of the same types

    def build(self, inputs: BuildInputs, tools: BuildTools) -> Built:
        masked = {}
        for name in self.columns:
            column = f"`{name.replace('`', '``')}`"
            hidden = f"greatest(length({column}) - {self.keep_last}, 0)"
            text = f"concat(repeat('{self.sign}', {hidden}), substring({column}, {hidden} + 1))"
            masked[name] = tools.functions.expr(text)
        return inputs.first().withColumns(masked)
