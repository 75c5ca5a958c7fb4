"""A Flask app that reports which theme its pages are asked in.

flask --app examples/flask_app.py run      with app.hubbub here, or HUBBUB_BUNDLE set
"""

from flask import Flask, request

from hubbub.client import Client


def create_app() -> Flask:
    """The app, with one client for all of its threads; forked workers share its limits."""
    app = Flask(__name__)
    client = Client.from_bundle()

    @app.get("/")
    def page() -> str:
        theme = request.cookies.get("theme", "system")
        client.report("theme", theme)  # returns at once, and never raises in production
        return f"a page in {theme}"

    return app
