"""Models over HTTP: coefficients with their intervals, and how the rounds went. For viewers."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path, Request

from hubbub.aggregator.query.models import LearnedModel, learned_model, learned_models
from hubbub.aggregator.web.parameters import Confidence, Questions, about, needs
from hubbub.aggregator.web.problems import PROBLEMS
from hubbub.analysis import CONFIDENCE

_LONGEST = 200

Name = Annotated[str, Path(max_length=_LONGEST, description="its name in the catalog")]


@dataclass(frozen=True, slots=True)
class ModelPage:
    """Every model there is."""

    models: list[LearnedModel]


def learned() -> APIRouter:
    """The routes."""
    router = APIRouter(prefix="/v1/models", responses=PROBLEMS, dependencies=[needs("viewer")])

    @router.get("")
    async def every(query: Questions, confidence: Confidence = CONFIDENCE) -> ModelPage:
        """Every model, as far as it has learned."""
        return ModelPage(await learned_models(query, confidence))

    @router.get("/{model}")
    async def one(
        query: Questions, request: Request, model: Name, confidence: Confidence = CONFIDENCE
    ) -> LearnedModel:
        """A model's coefficients, its rounds, and the state that devices learn by."""
        about(request).metric = model
        return await learned_model(query, model, confidence)

    return router
