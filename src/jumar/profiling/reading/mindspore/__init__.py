"""MindSpore's files of 2020 to 2022."""
