"""Configuration of the documentation site: ``python -m sphinx -W --keep-going -j auto docs site``."""

from __future__ import annotations

import importlib.metadata
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from site_pages import link_to_repository, write_api_pages  # noqa: E402

project = "gibbsite"
author = "the gibbsite developers"
copyright = "the gibbsite developers"
release = version = importlib.metadata.version("gibbsite")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["README.md", "**/README.rst", "**.ipynb", "**/*.py.md5"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

# pages
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]  # the order of the gallery is a function
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"

# the reference
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
numpydoc_xref_param_type = False
templates_path = ["_templates"]

# the gallery: every script is run when the site is built, and an error in one of them ends the build
sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": ["../examples/tutorials", "../examples/gallery"],
    "gallery_dirs": ["tutorials", "gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
    "min_reported_time": 10,
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
}
warnings.filterwarnings("ignore", message="Matplotlib is currently using agg")

# how it looks
html_theme = "pydata_sphinx_theme"
html_title = f"gibbsite {version}"
html_static_path = ["_static"]
html_css_files = ["gibbsite.css"]
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navbar_align": "left",
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {page: [] for page in ("from_other_tools", "lab", "benchmarks", "references")}  # no pages below them
html_context = {"default_mode": "auto"}


def setup(app: Any) -> None:
    """Write the pages of the reference from the lists of public names and from the command line."""
    write_api_pages(HERE / "api")
    app.connect("source-read", link_to_repository)
