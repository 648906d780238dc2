"""The entries of the forms of export."""

from bench.read.report.export_part import ExportPart

EXPORTS = (
    ExportPart("csv", "bench.read.export.csv:files"),
    ExportPart("otel", "bench.read.export.otel:files", extra="otel"),
    ExportPart("parquet", "bench.read.export.parquet:files", extra="parquet"),
)
