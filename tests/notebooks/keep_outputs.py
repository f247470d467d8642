"""A pytest plugin for the nbval run: keeps what each cell printed, so that the checks can be read afterwards.

Loaded with `-p keep_outputs` in the process that runs nbval; writes JSON to the path in KVLAB_KEEP_OUTPUTS.
"""

import json
import os

import pytest

_KEPT = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "call" and hasattr(item, "test_outputs"):
        _KEPT.append(
            {
                "cell": item.cell.get("id"),
                "source": item.cell.source,
                "tags": item.cell.metadata.get("tags", []),
                "seconds": call.duration,
                "outputs": item.test_outputs or [],
                "passed": report.passed,
            }
        )
    return report


def pytest_sessionfinish():
    with open(os.environ["KVLAB_KEEP_OUTPUTS"], "w", encoding="utf-8") as file:
        json.dump(_KEPT, file)
