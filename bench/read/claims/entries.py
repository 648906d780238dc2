"""The registry entry of the published claims."""

from bench.read.report.claims_part import ClaimsPart

CLAIMS = ClaimsPart("claims", "bench.read.claims.judging")
