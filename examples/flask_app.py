"""A Flask app that reports about its own server: which database it is set up with.

flask --app examples/flask_app.py run      with app.hubbub here, or HUBBUB_BUNDLE set

To hubbub one state folder is one device. Reports of this app count servers, never visitors: a page
reports for its visitor itself, with the TypeScript SDK.
"""

import os

from flask import Flask

from hubbub.client import Client


def create_app() -> Flask:
    """The app, with one client for all of its threads; forked workers share its limits."""
    app = Flask(__name__)
    client = Client.from_bundle()

    @app.get("/")
    def page() -> str:
        # It returns at once, raises nothing in production, and counts once a server and epoch.
        client.report("database", os.environ.get("DATABASE", "sqlite"))
        return "a page"

    return app
