"""`jumar tune`: settings chosen by measurements."""

from cyclopts import App

from jumar.cli.options import OPTIONS

app = App(
    name="tune",
    help="Choose settings by measuring: the fastest precision that keeps a target.",
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.tune_accuracy:accuracy",
    name="accuracy",
    help="Find the fastest precision setting that keeps a target.",
)
