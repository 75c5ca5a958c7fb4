"""A Flask app that reports for its visitors: which theme each of them chose.

flask --app examples/flask_app.py run      with app.hubbub here, or HUBBUB_BUNDLE set

Each visitor has a secret, limits and a consent of their own, in PERSONS (a file of SQLite) under a
hash with PERSONS_KEY (secrets.token_hex(32), for ever the same). Workers and hosts share them.
"""

import contextlib
import os
import secrets
import sqlite3

from flask import Flask, Response, make_response, request

from hubbub.client import Client, Persons, SQLStore

TABLE = (
    "CREATE TABLE IF NOT EXISTS hubbub_persons"
    " (person BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID"
)


def connect() -> sqlite3.Connection:
    """A connection to the visitors' records."""
    return sqlite3.connect(os.environ["PERSONS"])


def create_app() -> Flask:
    """The app, with one client for all of its threads; a forked worker goes on with it."""
    app = Flask(__name__)
    with contextlib.closing(connect()) as rows:
        rows.execute(TABLE)
    persons = Persons(SQLStore(connect), bytes.fromhex(os.environ["PERSONS_KEY"]))
    client = Client.from_bundle(persons=persons)

    def visitor() -> str:
        """What the app calls this browser; the id of an account, if there is one, is better."""
        return request.cookies.get("visitor") or secrets.token_hex(16)

    def page(text: str, name: str) -> Response:
        response = make_response(text)
        response.set_cookie("visitor", name, max_age=366 * 86_400, httponly=True, samesite="Lax")
        return response

    @app.post("/theme/<theme>")
    def choose(theme: str) -> Response:
        # It waits for the store, raises nothing in production, and counts once a visitor and epoch.
        name = visitor()
        client.person(name).report("theme", theme)
        return page(theme, name)

    @app.post("/no")
    def refuse() -> Response:
        # What waits of this visitor is not sent. It raises StateUnusable if it cannot be stored.
        name = visitor()
        client.person(name).disable()
        return page("nothing is sent of you", name)

    return app
