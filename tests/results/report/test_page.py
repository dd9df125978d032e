"""Pages of reports are well formed, and what they show cannot act."""

from __future__ import annotations

from html.parser import HTMLParser

from gibbsite.results.report.page import Cell, Column, Section, bar, make_page, sortable_table

HOSTILE = "<script>alert(1)</script>\"' & \u202e \x1b[31m"


class Parsed(HTMLParser):
    """The elements of a page, and the texts outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "img", "br", "link"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text += data


def test_hostile_texts_stay_texts() -> None:
    table = sortable_table([Column(HOSTILE)], [[Cell("x", HOSTILE)]], "names", HOSTILE)
    page = make_page(HOSTILE, [], [Section(HOSTILE, table)], {HOSTILE: HOSTILE})
    parsed = Parsed(page)
    assert parsed.open == []
    scripts = [attributes for tag, attributes in parsed.tags if tag == "script"]
    assert len(scripts) == 2 and {one.get("type") for one in scripts} == {"application/json", None}
    assert (
        "<script>alert(1)</script>" in parsed.text and "\x1b" not in page and "\u202e" not in page.split("numbers")[0]
    )


def test_nothing_is_loaded_from_elsewhere() -> None:
    page = make_page("A", [], [Section("B", ["<p>c</p>"])], {})
    parsed = Parsed(page)
    assert not [tag for tag, attributes in parsed.tags if "src" in attributes or tag in ("link", "iframe", "object")]
    assert "default-src 'none'" in page and "http" not in page.replace("http-equiv", "")


def test_bars_mark_four_standard_errors() -> None:
    assert "left:10.00%;width:80.00%" in bar(0.5, 0.1)
    assert "left:0.00%;width:30.00%" in bar(0.1, 0.05)
