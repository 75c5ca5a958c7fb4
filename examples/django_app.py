"""A Django app that reports for its visitors: which theme each of them chose.

python examples/django_app.py runserver      with app.hubbub here, or HUBBUB_BUNDLE set

Each visitor has a secret, limits and a consent of their own, in the app's own database under a hash
with PERSONS_KEY (secrets.token_hex(32), for ever the same). Workers and hosts share them.
"""

import contextlib
import os
import secrets
import sys
from functools import cache
from typing import Any

from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_POST

from hubbub.client import Client, Persons, SQLStore

# A project has these in its settings, and the table in a migration (migrations.RunSQL).
settings.configure(
    ALLOWED_HOSTS=["127.0.0.1", "localhost", "testserver"],
    DATABASES={
        "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["PERSONS"]},
    },
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ["PERSONS_KEY"],
)
TABLE = (
    "CREATE TABLE IF NOT EXISTS hubbub_persons"
    " (person BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"
)


def connect() -> Any:
    """A connection beside the request's own: its transaction must not take a record back."""
    return connection.copy()


@cache
def client() -> Client:
    """One client for all threads of a worker."""
    with contextlib.closing(connect()) as rows, rows.cursor() as cursor:
        cursor.execute(TABLE)
    store = SQLStore(connect, placeholder="%s")
    return Client.from_bundle(persons=Persons(store, bytes.fromhex(os.environ["PERSONS_KEY"])))


def visitor(request: HttpRequest) -> str:
    """What the app calls this browser; the id of an account, if there is one, is better."""
    return request.COOKIES.get("visitor") or secrets.token_hex(16)


def page(text: str, name: str) -> HttpResponse:
    """An answer that gives the browser its name for a year."""
    response = HttpResponse(text)
    response.set_cookie("visitor", name, max_age=366 * 86_400, httponly=True, samesite="Lax")
    return response


@require_POST
def choose(request: HttpRequest, theme: str) -> HttpResponse:
    """A choice. It waits for the store, and counts once a visitor and epoch."""
    name = visitor(request)
    client().person(name).report("theme", theme)
    return page(theme, name)


@require_POST
def refuse(request: HttpRequest) -> HttpResponse:
    """A no: what waits of this visitor is not sent. Raises StateUnusable if it is not stored."""
    name = visitor(request)
    client().person(name).disable()
    return page("nothing is sent of you", name)


urlpatterns = [path("theme/<str:theme>", choose), path("no", refuse)]
application = get_wsgi_application()

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
