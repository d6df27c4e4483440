"""Reports made once for all tests of this folder: a small fleet, six successive dumps, and a hostile dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_analysis.report.html import report_html
from spark_analysis.report.load import load_report
from spark_analysis.report.model import Report
from tests.spark_analysis.report import samples


@pytest.fixture(scope="session")
def fleet_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = samples.fleet_rows(30, pairs_of=12, brokers_max=24)
    return samples.write_tables(tmp_path_factory.mktemp("fleet"), rows, file_count=2)


@pytest.fixture(scope="session")
def fleet(fleet_out: Path) -> Report:
    return load_report(fleet_out, samples.FLEET_RUN)


@pytest.fixture(scope="session")
def dumps_out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return samples.write_tables(tmp_path_factory.mktemp("dumps"), samples.dumps_rows())


@pytest.fixture(scope="session")
def dumps(dumps_out: Path) -> Report:
    return load_report(dumps_out, samples.DUMPS_RUN)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Report:
    out = samples.write_tables(tmp_path_factory.mktemp("hostile"), samples.hostile_rows())
    return load_report(out, samples.DUMPS_RUN)


@pytest.fixture(scope="session")
def fleet_page(fleet: Report) -> str:
    return report_html(fleet)


@pytest.fixture(scope="session")
def dumps_page(dumps: Report) -> str:
    return report_html(dumps)


@pytest.fixture(scope="session")
def hostile_page(hostile: Report) -> str:
    return report_html(hostile)
