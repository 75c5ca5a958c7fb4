"""The shuffler's doors in this process, for devices with limits of a test's own."""

from contextlib import AbstractAsyncContextManager
from functools import partial

import pytest

from tests.conftest import CatalogFiles
from tests.services.test_guards import Front, Serving, serving_front
from tests.services.test_http_door import Door, Opening, open_door


@pytest.fixture
def serving(catalog_files: CatalogFiles, redis_url: str) -> Serving:
    return partial(serving_front, catalog_files, redis_url)


@pytest.fixture
def front(serving: Serving) -> AbstractAsyncContextManager[Front]:
    return serving()


@pytest.fixture
def opening(catalog_files: CatalogFiles, redis_url: str) -> Opening:
    return partial(open_door, catalog_files, redis_url)


@pytest.fixture
def door(opening: Opening) -> AbstractAsyncContextManager[Door]:
    return opening()
