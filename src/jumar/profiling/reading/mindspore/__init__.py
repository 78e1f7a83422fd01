"""Readers for the files of MindSpore from 2020 to 2022."""
