"""A judged run put together by hand; the selftest, which ships with the program, plants its bugs in the same one."""

from harness.selftest.by_hand import CAMPAIGNS, EPOCH_MS, SPEC, VALID, WINDOW_MS, case, events

__all__ = ["CAMPAIGNS", "EPOCH_MS", "SPEC", "VALID", "WINDOW_MS", "case", "events"]
