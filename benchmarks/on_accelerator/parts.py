"""The parts, the most valuable first."""

from on_accelerator.measuring import Part

RATES = Part(name="rates", title="What the device reaches", module="on_accelerator.rates")
"""Always first: the shares of the others are shares of these."""

PARTS = (
    RATES,
    Part(name="tests", title="Tests", module="on_accelerator.device_tests"),
    Part(name="classifiers", title="Classifiers", module="on_accelerator.classifiers"),
    Part(name="pretraining", title="BERT and NEZHA", module="on_accelerator.pretraining"),
    Part(name="networks", title="Other networks", module="on_accelerator.networks"),
    Part(name="profiles", title="Profiles", module="on_accelerator.profiles"),
    Part(name="lab", title="Precision lab", module="on_accelerator.lab"),
    Part(name="learning", title="Learning", module="on_accelerator.learning"),
)
