"""Kinds of effects that equations may have. Equal kinds are the same object."""


class Effect:
    """What an equation does besides computing: it is never dropped; if `ordered`, it keeps its place among its kind."""

    __slots__ = ("name", "ordered")

    def __init__(self, name: str, ordered: bool):
        self.name = name
        self.ordered = ordered

    def __repr__(self) -> str:
        return self.name

    def __lt__(self, other: "Effect") -> bool:
        return self.name < other.name


DEBUG = Effect("Debug", ordered=False)
ORDERED_DEBUG = Effect("OrderedDebug", ordered=True)
IO = Effect("IO", ordered=False)
ORDERED_IO = Effect("OrderedIO", ordered=True)
