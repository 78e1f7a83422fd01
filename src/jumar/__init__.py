"""jumar: bring deep-learning models up onto Huawei Ascend NPUs."""

__version__ = "0.1.0"
