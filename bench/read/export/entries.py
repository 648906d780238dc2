"""The entries of the forms of export."""

from bench.read.report.export_part import ExportPart

EXPORTS = (
    ExportPart("csv", "bench.read.export.csv:files"),
    ExportPart("otel", "bench.read.export.otel:files", send="bench.read.export.otel:send", extra="otel"),
    ExportPart("atif", "bench.read.export.atif:files"),
    ExportPart("inspect", "bench.read.export.inspect:files", extra="inspect"),
    ExportPart("parquet", "bench.read.export.parquet:files", extra="parquet"),
)
