"""Every target, by name."""

import shutil
from collections.abc import Mapping

from tests.fuzz.aggregators import aggregators
from tests.fuzz.analysts import analysts
from tests.fuzz.bundles import bundles
from tests.fuzz.decoders import decoders
from tests.fuzz.http_input import faces
from tests.fuzz.readers import readers
from tests.fuzz.shufflers import shufflers
from tests.fuzz.states import states
from tests.fuzz.target import Target
from tests.fuzz.urls import urls


def targets() -> Mapping[str, Target]:
    """All of them: decoders, a device's files, bundles, answers of strangers, HTTP.

    And, where there is Node, both SDKs' readers of one text.
    """
    return {
        **decoders(),
        **states(),
        **bundles(),
        **shufflers(),
        **aggregators(),
        **analysts(),
        **faces(),
        **urls(),
        **(readers() if shutil.which("node") else {}),
    }
