"""The database of the service that runs here, or of a stopped data folder."""

from collections.abc import Iterator
from contextlib import contextmanager

from connectors.cli.console import REFUSED, fail, folder
from connectors.running.files import read_service


@contextmanager
def database() -> Iterator[str]:
    """Its DSN; the database of a stopped folder runs for so long."""
    from connectors.embedded.folder import DataFolder, FolderRefused
    from connectors.wiring import stores

    if not folder().exists():
        fail(REFUSED, f"{folder()} is no data folder", "name one with --data")
    service = read_service(folder())
    if service is not None:
        yield service.dsn
        return
    for clock in ("wall", "virtual"):
        try:
            opened = DataFolder.open(folder(), clock=clock)
        except FolderRefused as error:
            if clock == "virtual":
                fail(REFUSED, str(error))
            continue
        try:
            with stores.embedded(opened, lambda _: None) as server:
                yield server.dsn
        finally:
            opened.close()
        return
