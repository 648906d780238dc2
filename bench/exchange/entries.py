"""The entries of the forms of export."""

from bench.report.export_part import ExportPart

EXPORTS = (
    ExportPart("csv", "bench.exchange.csv:files"),
    ExportPart("otel", "bench.exchange.otel:files", send="bench.exchange.otel:send", extra="otel"),
    ExportPart("atif", "bench.exchange.atif:files"),
    ExportPart("inspect", "bench.exchange.inspect:files", extra="inspect"),
    ExportPart("parquet", "bench.exchange.parquet:files", extra="parquet"),
)
