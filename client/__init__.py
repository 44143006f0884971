"""Run streamgauge from Python.

    import streamgauge

    result = streamgauge.run(engine="jobs/ad-counts", fault="kill@c3:batch=3")
    result.assert_pass()

Each function is a command of the program, and its arguments are the command's flags. The program runs in an environment
of its own, which its first use makes, so that none of its packages meets yours. These modules import nothing but the
standard library.

In the project's checkout this package is the folder `client`; a wheel calls it `streamgauge`.
"""

from .commands import compare, gate, load, run, search
from .program import ProgramError, UsageError
from .result import Check, Experiment, Failed, Result, Unknown, Witness
from .servers import Servers, servers

__all__ = [
    "Check",
    "Experiment",
    "Failed",
    "ProgramError",
    "Result",
    "Servers",
    "Unknown",
    "UsageError",
    "Witness",
    "compare",
    "gate",
    "load",
    "run",
    "search",
    "servers",
]
