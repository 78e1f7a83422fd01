"""Explains from the logs of its ranks why a job failed: the first cause among the faults."""

from jumar.failures.causes import Candidate, Explanation, explained
from jumar.failures.reading.job import read_job
from jumar.failures.reading.sightings import Job
from jumar.failures.table import Fault, Table, fault_table

__all__ = [
    "Candidate",
    "Explanation",
    "Fault",
    "Job",
    "Table",
    "explained",
    "fault_table",
    "read_job",
]
