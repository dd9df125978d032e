"""How answers to questions are shown: as text when they are printed, and as a piece of a page in notebooks."""

from __future__ import annotations

from collections.abc import Iterator

from gibbsite._common.html import escape


class Shown:
    """An answer that is a few lines of text.

    Examples
    --------
    >>> class Two(Shown):
    ...     def lines(self, most: int = 40):
    ...         yield from ["a < b", "c"][:most]
    >>> print(Two().summary(most=1))
    a < b
    >>> Two()._repr_html_()[:13]
    '<pre>a &lt; b'
    """

    def lines(self, most: int = 40) -> Iterator[str]:
        """Yield the answer line by line, the ``most`` important parts of long ones."""
        raise NotImplementedError

    def summary(self, most: int = 40) -> str:
        """Return the answer as readable text."""
        return "\n".join(self.lines(most))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return "<pre>" + "\n".join(map(escape, self.lines())) + "</pre>"
