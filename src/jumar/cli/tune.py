"""`jumar tune`: better settings, measured."""

from cyclopts import App

from jumar.cli.options import OPTIONS

app = App(
    name="tune",
    help="Find better settings by measuring.",
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.tune_rate:rate",
    name="rate",
    help="Find a learning rate for a recipe by a ramp of rising rates.",
    usage="Usage: jumar tune rate [OPTIONS] RECIPE",
)
