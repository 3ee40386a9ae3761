import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="write golden files anew, then read the difference"
    )


@pytest.fixture(scope="session")
def update(pytestconfig: pytest.Config) -> bool:
    """Whether golden files are to be written. The option is there when this folder is named."""
    return bool(pytestconfig.getoption("--update", default=False))
