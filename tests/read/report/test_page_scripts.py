"""The scripts of a report's page are one program: what one of them names, no other may, or none of it runs."""

from __future__ import annotations

import re
from collections import Counter

from bench.read.report.page_html import script


def test_no_name_is_declared_twice() -> None:
    names = Counter(re.findall(r"^(?:const|let|var|(?:async )?function\*?|class) +(\w+)", script(), re.MULTILINE))
    assert len(names) > 20
    assert [name for name, times in names.items() if times > 1] == []
