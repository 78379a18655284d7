"""Figures come back to who drew them, whichever backend the code chose."""

import sys
import warnings

NOT_SO_HERE = "FigureCanvas\\w+ is non-interactive"


def bring_figures_back(shell):
    """
    Models write `matplotlib.use("Agg")` out of habit, which takes away the inline backend that would show their figures. After each call
    those that are still open are shown and closed, as that backend does with its own.
    """
    warnings.filterwarnings("ignore", message=NOT_SO_HERE, category=UserWarning)
    shell.events.register("post_execute", lambda: show_open_figures(shell))


def show_open_figures(shell):
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or pyplot.get_backend().lower() != "agg" or not pyplot.get_fignums():
        return
    from IPython.core.pylabtools import select_figure_formats
    from IPython.display import display

    select_figure_formats(shell, {"png"}, bbox_inches="tight")
    try:
        for number in pyplot.get_fignums():
            display(pyplot.figure(number))
    finally:
        pyplot.close("all")
