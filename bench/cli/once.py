"""A command whose options are given once each: the last of two would win in silence."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperOption

from bench.errors import ConfigError


class Once(TyperCommand):
    """Refuses an option that takes one value and is given two."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raise ConfigError for an option that is repeated and may not be."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for option in given:
            single = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if single and given.count(option) > 1:
                raise ConfigError(f"{option.opts[0]} is given {given.count(option)} times; give it once")
        return super().parse_args(ctx, args)
