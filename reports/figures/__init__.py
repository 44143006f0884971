"""Drawings, one per file: plain numbers in, a figure out. None of them knows a run, a store or a page.

Each module has values for what it draws and `draw(..., canvas)`; reports/figures/style.py gives the canvas its size and
colours and turns the figure into pictures.
"""
