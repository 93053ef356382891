"""The honest scale: one operation timed after its result was checked, beside ceilings and peers of the same run.

See README.md in this folder. static/bench/ mirrors tensors, reference, arguments, cases, ceilings and timing for the
page.
"""
