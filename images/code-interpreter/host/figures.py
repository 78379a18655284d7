"""Figures come back to who drew them, whichever backend the code chose."""

import sys
import warnings

QUIET = "FigureCanvas\\w+ is non-interactive"


def show_open_figures():
    """
    After each call: models write `matplotlib.use("Agg")` out of habit, which takes the inline backend away that would show their figures.
    These are shown and closed here as that backend does; what it has shown is closed already. Never raises: a figure that cannot be drawn
    is reported as any error of the call's display.
    """
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    # What `show` says of such a backend is not so here.
    warnings.filterwarnings("ignore", message=QUIET, category=UserWarning)
    if pyplot.get_backend().lower() != "agg" or not pyplot.get_fignums():
        return
    from IPython.core.getipython import get_ipython
    from IPython.core.pylabtools import select_figure_formats
    from IPython.display import display

    select_figure_formats(get_ipython(), {"png"}, bbox_inches="tight")
    try:
        for number in pyplot.get_fignums():
            display(pyplot.figure(number))
    finally:
        pyplot.close("all")
