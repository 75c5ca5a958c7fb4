"""The part of an app's own server by which its people get tokens: it says for whom it asks.

ISSUER=https://issuer.example.org:7090 ISSUER_KEY=... flask --app examples/token_backend.py run
"""

import os

import httpx2
from flask import Flask, Response, abort, request


def create_app(people: dict[str, str]) -> Flask:
    """The app. people: the account of each login; a random number, which says nothing of them."""
    app = Flask(__name__)
    issuer, key = os.environ["ISSUER"], os.environ["ISSUER_KEY"]

    @app.post("/tokens")
    def tokens() -> Response:
        account = people.get(request.headers.get("Authorization", ""))
        if account is None:
            abort(401)
        headers = {"Authorization": f"Bearer {key}", "Hubbub-Account": account}
        headers["Content-Type"] = "application/protobuf"
        response = httpx2.post(
            f"{issuer}/v1/tokens", content=request.data, headers=headers, timeout=10
        )
        return Response(
            response.content, response.status_code, content_type=response.headers["content-type"]
        )

    return app
