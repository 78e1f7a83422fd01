"""`jumar tune`: choose settings by measuring them."""

from cyclopts import App

from jumar.cli.options import OPTIONS

app = App(
    name="tune",
    help="Choose settings by measuring them; write the files for Ascend's own tuner.",
    group_parameters=OPTIONS,
)
app.command(
    "jumar.cli.tune_speed:speed",
    help="Find the fastest settings of a recipe by short paired measurements.",
    usage="Usage: jumar tune speed [OPTIONS] RECIPE|RUN",
)
app.command(
    "jumar.cli.tune_accuracy:accuracy",
    help="Find the fastest precision setting that meets a target.",
)
app.command(
    "jumar.cli.tune_rate:rate",
    help="Find a learning rate for a recipe by training with rising rates.",
    usage="Usage: jumar tune rate [OPTIONS] RECIPE",
)
app.command(
    "jumar.cli.tune_aoe:aoe",
    help="Write the files that Ascend's tuner AOE needs for a ported script or a run.",
    usage="Usage: jumar tune aoe [OPTIONS] SCRIPT|RUN",
)
# Started by `tune speed` for each setting; not meant for users.
app.command("jumar.cli.tune_speed:measure", show=False)
